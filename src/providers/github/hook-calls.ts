// The calls to GitHub about hooks; loaded when the first is made.
import { z } from 'zod'
import { repoPath } from '../common-calls.js'
import type { DeliveryPage, HookSettings, RepoHook } from '../hooks.js'
import { send, type UserApi } from '../http.js'
import { nextLink } from '../next-link.js'
import type { RepoTarget } from '../provider.js'

/** GitHub's largest page. */
const PAGE_SIZE = '100'
/** A repository has far fewer hooks: 20 for each event. */
const MAX_PAGES = 50

const hook = z
  .object({
    id: z.int(),
    active: z.boolean(),
    events: z.array(z.string()),
    config: z.object({
      url: z.string().default(''),
      content_type: z.string().default('form'),
      secret: z.string().optional(),
    }),
    last_response: z.object({ code: z.int().nullable(), message: z.string().nullable() }).nullish(),
  })
  .transform(({ id, active, events, config, last_response: last }): RepoHook => ({
    id,
    active,
    events,
    url: config.url,
    contentType: config.content_type,
    hasSecret: config.secret !== undefined,
    lastResponse: last && last.code !== null ? { code: last.code, message: last.message ?? '' } : undefined,
  }))

const delivery = z
  .object({
    id: z.union([z.int(), z.string()]),
    guid: z.string(),
    event: z.string(),
    action: z.string().nullable(),
    delivered_at: z.string(),
    redelivery: z.boolean(),
    status: z.string(),
    status_code: z.int(),
  })
  .transform(({ id, delivered_at: deliveredAt, status_code: statusCode, ...rest }) => ({
    ...rest,
    id: String(id),
    deliveredAt: Date.parse(deliveredAt),
    statusCode,
  }))

/** GET /repos/{owner}/{repo}/hooks, all pages (https://docs.github.com/rest/repos/webhooks). */
export async function listHooks(api: UserApi, repo: RepoTarget): Promise<readonly RepoHook[]> {
  const all: RepoHook[] = []
  for (let page = 1; page <= MAX_PAGES; page++) {
    const query = { per_page: PAGE_SIZE, page: String(page) }
    const call = { method: 'GET', path: hooksPath(repo), query, answer: z.array(hook) } as const
    const { value, header } = await send(api, call)
    all.push(...value)
    if (!nextLink(header)) break
  }
  return all
}

/** POST /repos/{owner}/{repo}/hooks; 422 `Hook already exists on this repository` for one with the same address. */
export async function createHook(api: UserApi, repo: RepoTarget, settings: HookSettings): Promise<RepoHook> {
  const body = { name: 'web', ...bodyOf(settings) }
  return (await send(api, { method: 'POST', path: hooksPath(repo), body, answer: hook })).value
}

/** PATCH /repos/{owner}/{repo}/hooks/{id}, with all settings: `config` replaces the former one, its secret included. */
export async function changeHook(
  api: UserApi,
  repo: RepoTarget,
  id: number,
  settings: HookSettings,
): Promise<RepoHook> {
  const path = [...hooksPath(repo), id]
  return (await send(api, { method: 'PATCH', path, body: bodyOf(settings), answer: hook })).value
}

export async function removeHook(api: UserApi, repo: RepoTarget, id: number): Promise<void> {
  await send(api, { method: 'DELETE', path: [...hooksPath(repo), id], answer: z.unknown() })
}

export async function pingHook(api: UserApi, repo: RepoTarget, id: number): Promise<void> {
  await send(api, { method: 'POST', path: [...hooksPath(repo), id, 'pings'], answer: z.unknown() })
}

/** GET /repos/{owner}/{repo}/hooks/{id}/deliveries: one page, and the cursor of the next from `Link`. */
export function listDeliveries(
  api: UserApi,
  repo: RepoTarget,
  id: number,
  cursor: string | undefined,
): Promise<DeliveryPage> {
  return pageOfLog(api, [...hooksPath(repo), id, 'deliveries'], cursor)
}

/** One page of a delivery log at this path, of a repository's hook or an App's. */
export async function pageOfLog(
  api: UserApi,
  path: readonly (string | number)[],
  cursor: string | undefined,
): Promise<DeliveryPage> {
  const { value, header } = await send(api, {
    method: 'GET',
    path,
    query: { per_page: PAGE_SIZE, ...(cursor !== undefined && { cursor }) },
    exactIntegers: true,
    answer: z.array(delivery),
  })
  return { deliveries: value, next: nextLink(header)?.searchParams.get('cursor') ?? undefined }
}

/** POST /repos/{owner}/{repo}/hooks/{id}/deliveries/{delivery_id}/attempts: 202. */
export async function redeliver(
  api: UserApi,
  repo: RepoTarget,
  id: number,
  deliveryId: string,
): Promise<void> {
  const path = [...hooksPath(repo), id, 'deliveries', deliveryId, 'attempts']
  await send(api, { method: 'POST', path, answer: z.unknown() })
}

function hooksPath(repo: RepoTarget): string[] {
  return [...repoPath(repo), 'hooks']
}

function bodyOf({ url, secret, events = ['*'] }: HookSettings) {
  const config = { url, content_type: 'json', insecure_ssl: '0', secret: secret.reveal() }
  return { active: true, events, config }
}
