import type { Context } from 'hono'
import type { Log } from '../base/log.js'
import type { Clock } from '../base/time.js'
import type { Faults } from './faults.js'
import type { SandboxHooks } from './hooks.js'
import type { Payloads } from './payloads.js'
import { requireFound, GitHubError } from './protocol.js'
import type { Issue, StoredRepo, SandboxState } from './state.js'
import type { OAuth } from './tokens.js'

/** Dependencies of all routes of the sandbox. */
export interface SandboxContext {
  readonly state: SandboxState
  readonly payloads: Payloads
  readonly hooks: SandboxHooks
  readonly oauth: OAuth
  readonly faults: Faults
  readonly clock: Clock
  readonly log: Log
  /** True: nothing keeps the process alive. */
  readonly background: boolean
}

/** The repository that the route names. @throws GitHubError 404 */
export function findRepo(c: Context, state: SandboxState): StoredRepo {
  return state.repo(`${c.req.param('owner')}/${c.req.param('repo')}`)
}

/** The issue or pull request that the route names. @throws GitHubError 404, 410 */
export function findIssue(c: Context, state: SandboxState): Issue {
  const repo = findRepo(c, state)
  if (!repo.hasIssues) throw new GitHubError(410, 'Issues are disabled for this repo')
  return requireFound(state.issue(repo.fullName, Number(c.req.param('number'))))
}
