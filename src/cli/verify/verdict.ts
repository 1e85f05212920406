import type { Recorded } from '../../journal/fixture.js'
import type { Explanation } from '../../webhook/explanation.js'
import { type Paint, printable } from '../output.js'
import { fit } from '../wrap.js'

/** What is the matter with one signature, or that nothing is. */
export interface Verdict {
  readonly name: string
  readonly recorded: Pick<Recorded, 'provider' | 'event' | 'deliveryId'>
  readonly explanation: Explanation
}

export interface VerdictLayout {
  /** That of the longest name. */
  readonly width: number
  /** Where that leaves a line no room, the reason gets lines of its own. */
  readonly columns: number
  readonly paint: Paint
}

/** `valid    push.json`, `invalid  push.json  the signature is empty: …`. */
export function verdictLine(
  { name, explanation }: Verdict,
  { width, columns, paint }: VerdictLayout,
): string {
  const verdict = explanation.valid ? paint.green('valid  ') : paint.red('invalid')
  const why = printable(explanation.valid ? SIGNED[explanation.by] : explanation.hint)
  if (why === '') return `${verdict}  ${printable(name)}`
  if (INDENT.length + width + 2 + why.length <= columns)
    return `${verdict}  ${printable(name).padEnd(width)}  ${why}`
  return `${verdict}  ${printable(name)}\n${fit(INDENT + why, columns)}`
}

const INDENT = ' '.repeat('invalid  '.length)
const SIGNED = { current: '', previous: 'signed with the previous secret' }

export function verdictObject({ name, recorded, explanation }: Verdict): Record<string, unknown> {
  const { provider, event, deliveryId: delivery } = recorded
  return { type: 'signature', name, provider, event, delivery, ...explanation }
}
