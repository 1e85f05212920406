// The calls to Gitea about hooks; loaded when the first is made.
import { z } from 'zod'
import { repoPath } from '../common-calls.js'
import type { HookSettings, RepoHook } from '../hooks.js'
import { send, type UserApi } from '../http.js'
import type { RepoTarget } from '../provider.js'

/** Gitea's usual largest page; a server may be set to a smaller one. */
const PAGE_SIZE = '50'
/** More hooks than a repository has. */
const MAX_PAGES = 50

/** The names for every event in Gitea's API; `issues` and `pull_request` include those with a suffix. */
const EVERY_EVENT = [
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

/** POST /repos/{owner}/{repo}/hooks. `active` is false by default. */
export async function createHook(api: UserApi, repo: RepoTarget, settings: HookSettings): Promise<RepoHook> {
  const { url, secret, events = EVERY_EVENT } = settings
  const config = { url, content_type: 'json', secret: secret.reveal() }
  const body = { type: 'gitea', active: true, events, config }
  return (await send(api, { method: 'POST', path: hooksPath(repo), body, answer: hook })).value
}

/** A new hook in place of the old: PATCH does not change the secret (routers/api/v1/utils/hook.go, `editHook`). */
export async function replaceHook(
  api: UserApi,
  repo: RepoTarget,
  id: number,
  settings: HookSettings,
): Promise<RepoHook> {
  const replacement = await createHook(api, repo, settings)
  await removeHook(api, repo, id)
  return replacement
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
