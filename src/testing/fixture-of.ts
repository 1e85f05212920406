import type { Fixture } from '../journal/fixture.js'
import { synthesize } from '../templates/synthesize.js'

export interface FixtureOfOptions {
  /** The code host that sends it. Default: `github`. */
  readonly provider?: 'github' | 'gitea'
}

/**
 * Makes up a delivery of this event, `push` or `issues.opened`, as the code host would send it now: with every field that
 * a real one has, about the sandbox's repository `octo/demo`. Issue events are about #1, those of pull requests about #2.
 * @throws RelayError `usage` for an event that `relay trigger --list` does not name.
 */
export function fixtureOf(event: string, { provider = 'github' }: FixtureOfOptions = {}): Fixture {
  return synthesize(provider, event, Date.now())
}
