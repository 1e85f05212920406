import { z } from 'zod/mini'
import { hookSchema, hooksPath } from '../github-like.js'
import type * as host from '../host.js'
import { nextLink, apiPath, type RestClient } from '../rest.js'

/** GitHub's largest page. */
const LARGE_PAGE = '100'

/** https://docs.github.com/rest/repos/webhooks */
export function githubHooks(rest: RestClient): host.RepoHooks {
  return {
    async list(repo) {
      const all = await rest.all(hooksPath(repo), z.array(hookSchema), { per_page: LARGE_PAGE })
      // A server that shows one secret would also show the others.
      const shows = all.some(({ hasSecret }) => hasSecret)
      return shows ? all.map((each) => ({ ...each, hasSecret: each.hasSecret ?? false })) : all
    },
    /** GitHub answers 422 `Hook already exists on this repository` for a second one with the same address. */
    async create(repo, settings) {
      const body = { name: 'web', ...bodyOf(settings) }
      return (await rest.call('POST', hooksPath(repo), { body, answer: hookSchema })).value
    },
    /** Sends all settings, because `config` replaces the former one with its secret. */
    async change(repo, id, settings) {
      const call = { body: bodyOf(settings), answer: hookSchema }
      return (await rest.call('PATCH', `${hooksPath(repo)}/${id}`, call)).value
    },
    async remove(repo, id) {
      await rest.call('DELETE', `${hooksPath(repo)}/${id}`)
    },
    async test(repo, id) {
      await rest.call('POST', `${hooksPath(repo)}/${id}/pings`)
    },
    log: (repo, id) => deliveryLog(rest, `${hooksPath(repo)}/${id}/deliveries`),
  }
}

function bodyOf({ url, secret, events = ['*'] }: host.HookSettings) {
  const config = { url, content_type: 'json', insecure_ssl: '0', secret: secret.reveal() }
  return { active: true, events, config }
}

const delivery = z.pipe(
  z.object({
    // 64-bit number. One of more than 15 digits arrives as text.
    id: z.union([z.int(), z.string().check(z.regex(/^\d+$/))]),
    guid: z.string(),
    event: z.string(),
    action: z.nullable(z.string()),
    delivered_at: z.string(),
    status: z.string(),
    status_code: z.int(),
  }),
  z.transform(({ id, delivered_at: deliveredAt, status_code: statusCode, ...rest }): host.HookDelivery => ({
    ...rest,
    id: String(id),
    deliveredAt: Date.parse(deliveredAt),
    statusCode,
  })),
)

/** Delivery log at this path, of a repository's hook or an App's. */
export function deliveryLog(rest: RestClient, where: string): host.DeliveryLog {
  return {
    async page(cursor) {
      const query = { per_page: LARGE_PAGE, ...(cursor !== undefined && { cursor }) }
      const call = { query, exact: true, answer: z.array(delivery) }
      const { value, header } = await rest.call('GET', where, call)
      return { deliveries: value, next: nextLink(header)?.searchParams.get('cursor') ?? undefined }
    },
    async redeliver(id) {
      await rest.call('POST', `${where}${apiPath`/${id}/attempts`}`)
    },
  }
}
