// The calls to Gitea about hooks; loaded when the first is made.
import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import { repoPath } from '../common-calls.js'
import type { HookSettings, RepoHook } from '../hooks.js'
import { send, type UserApi } from '../http.js'
import type { RepoTarget } from '../provider.js'

/** Gitea's usual largest page; a server may be set to a smaller one. */
const PAGE_SIZE = '50'
/** More hooks than a repository has. */
const MAX_PAGES = 50

/**
 * The names for every event in the APIs of Gitea and Forgejo (`addHook` in routers/api/v1/utils/hook.go); `issues` and
 * `pull_request` include those with a suffix. A server ignores the names that it does not know.
 */
const EVERY_EVENT = [
  'action_run_failure',
  'action_run_recover',
  'action_run_success',
  'create',
  'delete',
  'fork',
  'issue_comment',
  'issues',
  'package',
  'pull_request',
  'push',
  'release',
  'repository',
  'status',
  'wiki',
  'workflow_job',
  'workflow_run',
]

const hook = z
  .object({
    id: z.int(),
    active: z.boolean(),
    events: z.array(z.string()).nullable(),
    config: z.object({ url: z.string().default(''), content_type: z.string().default('form') }),
  })
  .transform(({ id, active, events, config }): RepoHook => ({
    id,
    active,
    events: events ?? [],
    url: config.url,
    contentType: config.content_type,
    hasSecret: undefined,
    lastResponse: undefined,
  }))

/** GET /repos/{owner}/{repo}/hooks, page by page until one is empty (routers/api/v1/repo/hook.go). */
export async function listHooks(api: UserApi, repo: RepoTarget): Promise<readonly RepoHook[]> {
  const all: RepoHook[] = []
  for (let page = 1; page <= MAX_PAGES; page++) {
    const query = { limit: PAGE_SIZE, page: String(page) }
    const call = { method: 'GET', path: hooksPath(repo), query, answer: z.array(hook) } as const
    const { value } = await send(api, call)
    if (value.length === 0) break
    all.push(...value)
  }
  return all
}

/** What a person may have set on the hook's page, and relay leaves as it is. */
const ownSettings = z.object({
  branch_filter: z.string().default(''),
  // A secret. The newest versions do not show it.
  authorization_header: z.string().default(''),
})

/**
 * POST /repos/{owner}/{repo}/hooks. `active` is false by default. Gitea makes a second hook with the same address, so that two
 * relays that do this at the same moment make two; each then removes all but the newest.
 */
export async function createHook(
  api: UserApi,
  repo: RepoTarget,
  settings: HookSettings,
  kept: z.infer<typeof ownSettings> = { branch_filter: '', authorization_header: '' },
): Promise<RepoHook> {
  const { url, secret, events = EVERY_EVENT } = settings
  const config = { url, content_type: 'json', secret: secret.reveal() }
  const body = { type: 'gitea', active: true, events, config, ...kept }
  const { value } = await send(api, { method: 'POST', path: hooksPath(repo), body, answer: hook })
  const same = (await listHooks(api, repo)).filter((each) => each.url === url)
  const newest = Math.max(value.id, ...same.map(({ id }) => id))
  for (const { id } of same) if (id !== newest) await removeIfThere(api, repo, id)
  return same.find(({ id }) => id === newest) ?? value
}

/** A new hook in place of the old: PATCH does not change the secret (routers/api/v1/utils/hook.go, `editHook`). */
export async function replaceHook(
  api: UserApi,
  repo: RepoTarget,
  id: number,
  settings: HookSettings,
): Promise<RepoHook> {
  const call = { method: 'GET', path: [...hooksPath(repo), id], answer: ownSettings } as const
  const before = await send(api, call).catch(ignoreGone)
  const replacement = await createHook(api, repo, settings, before?.value)
  await removeIfThere(api, repo, id)
  return replacement
}

async function removeIfThere(api: UserApi, repo: RepoTarget, id: number): Promise<void> {
  await removeHook(api, repo, id).catch(ignoreGone)
}

/** Another relay may have removed it a moment ago. */
function ignoreGone(error: unknown): undefined {
  if (!(error instanceof RelayError && error.kind === 'not_found')) throw error
}

export async function removeHook(api: UserApi, repo: RepoTarget, id: number): Promise<void> {
  await send(api, { method: 'DELETE', path: [...hooksPath(repo), id], answer: z.unknown() })
}

/** POST /repos/{owner}/{repo}/hooks/{id}/tests: a `push` of the last commit. Gitea has no ping. */
export async function testHook(api: UserApi, repo: RepoTarget, id: number): Promise<void> {
  await send(api, { method: 'POST', path: [...hooksPath(repo), id, 'tests'], answer: z.unknown() })
}

function hooksPath(repo: RepoTarget): string[] {
  return [...repoPath(repo), 'hooks']
}
