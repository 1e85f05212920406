import { codeHostOf } from '../../providers/code-hosts.js'
import { whyNeverSent } from '../../providers/never-sent.js'
import type { Prepared } from '../settings/prepare.js'

/** Warns of matches that nothing will ever fit, with the nearest right ones. */
export function warnOfMatches(
  { output, options: { provider } }: Pick<Prepared, 'output' | 'options'>,
  matches: readonly string[],
): void {
  const { actions } = codeHostOf(provider)
  for (const match of matches) {
    const why = whyNeverSent(match, provider, actions)
    if (why !== undefined) output.log.warn(why)
  }
}
