import { printable } from '../../../base/printable.js'
import type { Recorded } from '../../../fixtures/fixture.js'
import type { Explanation } from '../../../webhook/explain.js'
import { green, type Line, red } from '../../output/line.js'
import { fit } from '../../output/wrap.js'

/** Whether one signature is valid, and why not. */
export interface Verdict {
  readonly name: string
  readonly recorded: Pick<Recorded, 'provider' | 'event' | 'deliveryId'>
  readonly explanation: Explanation
}

export interface VerdictLayout {
  /** The length of the longest name. */
  readonly width: number
  /** The width of a line; a reason that does not fit gets lines of its own. */
  readonly columns: number
}

/** `valid    push.json`, `invalid  push.json  the signature is empty: …`. */
export function verdictLines({ name, explanation }: Verdict, { width, columns }: VerdictLayout): Line[] {
  const verdict = explanation.valid ? green('valid  ') : red('invalid')
  const why = printable(explanation.valid ? SIGNED[explanation.by] : explanation.hint)
  if (why === '') return [[verdict, `  ${name}`]]
  if (INDENT.length + width + 2 + why.length <= columns)
    return [[verdict, `  ${printable(name).padEnd(width)}  ${why}`]]
  return [[verdict, `  ${name}`], ...fit(INDENT + why, columns).split('\n')]
}

const INDENT = ' '.repeat('invalid  '.length)
const SIGNED = { current: '', previous: 'signed with the previous secret' }

export function verdictObject({ name, recorded, explanation }: Verdict): Record<string, unknown> {
  const { provider, event, deliveryId: delivery } = recorded
  return { type: 'signature', name, provider, event, delivery, ...explanation }
}
