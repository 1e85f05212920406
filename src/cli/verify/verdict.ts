import type { Fixture } from '../../journal/fixture.js'
import type { Explanation } from '../../webhook/explanation.js'
import { type Paint, printable } from '../output.js'

/** What is the matter with one signature, or that nothing is. */
export interface Verdict {
  readonly name: string
  readonly fixture: Pick<Fixture, 'provider' | 'event' | 'delivery'>
  readonly explanation: Explanation
}

/** `valid    push.json  signed with the previous secret`, `invalid  push.json  the signature is empty: …`. */
export function verdictLine({ name, explanation }: Verdict, width: number, paint: Paint): string {
  const verdict = explanation.valid ? paint.green('valid  ') : paint.red('invalid')
  const why = explanation.valid ? SIGNED[explanation.by] : explanation.hint
  return `${verdict}  ${printable(name).padEnd(width)}  ${printable(why)}`
}

const SIGNED = { current: 'signed with the secret', previous: 'signed with the previous secret' }

export function verdictObject({ name, fixture, explanation }: Verdict): Record<string, unknown> {
  const { provider, event, delivery } = fixture
  return { type: 'signature', name, provider, event, delivery, ...explanation }
}
