import { schemeOf } from '../../codehost/schemes.js'
import { whyNeverSent } from '../../codehost/events.js'
import type { Prepared } from '../settings/prepare.js'

/** Warns of matches that nothing will ever fit, with the nearest right ones. */
export function warnOfMatches(
  { output, options: { provider } }: Pick<Prepared, 'output' | 'options'>,
  matches: readonly string[],
): void {
  const { events } = schemeOf(provider)
  for (const match of matches) {
    const why = whyNeverSent(match, provider, events)
    if (why !== undefined) output.log.warn(why)
  }
}
