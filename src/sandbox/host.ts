import type { Context } from 'hono'
import type { Log } from '../base/log.js'
import type { Clock } from '../base/time.js'
import type { Faults } from './faults.js'
import type { Hooks } from './hooks.js'
import type { Payloads } from './payloads.js'
import { found, GitHubError } from './protocol.js'
import type { Issue, Repo, State } from './state.js'
import type { OAuth } from './tokens.js'

/** Dependencies of all routes of the sandbox. */
export interface Host {
  readonly state: State
  readonly payloads: Payloads
  readonly hooks: Hooks
  readonly oauth: OAuth
  readonly faults: Faults
  readonly clock: Clock
  readonly log: Log
}

/** The repository that the route names. @throws GitHubError 404 */
export function findRepo(c: Context, state: State): Repo {
  return state.repo(`${c.req.param('owner')}/${c.req.param('repo')}`)
}

/** The issue or pull request that the route names. @throws GitHubError 404, 410 */
export function findIssue(c: Context, state: State): Issue {
  const repo = findRepo(c, state)
  if (!repo.hasIssues) throw new GitHubError(410, 'Issues are disabled for this repo')
  return found(state.issue(repo.fullName, Number(c.req.param('number'))))
}
