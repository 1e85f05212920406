import { z } from 'zod'
import { hooksPath } from '../github-like.js'
import type * as host from '../host.js'
import { nextLink, path, type Rest } from '../rest.js'

/** GitHub's largest page. */
const LARGE_PAGE = '100'

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
  .transform(({ id, active, events, config, last_response: last }): host.RepoHook => ({
    id,
    active,
    events,
    url: config.url,
    contentType: config.content_type,
    // GitHub shows stars for a secret. Servers that copy its API may show nothing.
    hasSecret: config.secret === undefined ? undefined : true,
    lastResponse: last && last.code !== null ? { code: last.code, message: last.message ?? '' } : undefined,
  }))

/** https://docs.github.com/rest/repos/webhooks */
export class GitHubHooks implements host.Hooks {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  async list(repo: host.Repo): Promise<readonly host.RepoHook[]> {
    const all: host.RepoHook[] = []
    const query = { per_page: LARGE_PAGE }
    for await (const page of this.#rest.pages(hooksPath(repo), z.array(hook), query)) all.push(...page)
    // A server that shows one secret would show the others.
    const shows = all.some(({ hasSecret }) => hasSecret)
    return shows ? all.map((each) => ({ ...each, hasSecret: each.hasSecret ?? false })) : all
  }

  /** 422 `Hook already exists on this repository` for one with the same address. */
  async create(repo: host.Repo, settings: host.HookSettings): Promise<host.RepoHook> {
    const body = { name: 'web', ...bodyOf(settings) }
    return (await this.#rest.call('POST', hooksPath(repo), { body, answer: hook })).value
  }

  /** With all settings: `config` replaces the former one, its secret included. */
  async change(repo: host.Repo, id: number, settings: host.HookSettings): Promise<host.RepoHook> {
    const call = { body: bodyOf(settings), answer: hook }
    return (await this.#rest.call('PATCH', `${hooksPath(repo)}/${id}`, call)).value
  }

  async remove(repo: host.Repo, id: number): Promise<void> {
    await this.#rest.call('DELETE', `${hooksPath(repo)}/${id}`)
  }

  async test(repo: host.Repo, id: number): Promise<void> {
    await this.#rest.call('POST', `${hooksPath(repo)}/${id}/pings`)
  }

  log(repo: host.Repo, id: number): host.DeliveryLog {
    return deliveryLog(this.#rest, `${hooksPath(repo)}/${id}/deliveries`)
  }
}

function bodyOf({ url, secret, events = ['*'] }: host.HookSettings) {
  const config = { url, content_type: 'json', insecure_ssl: '0', secret: secret.reveal() }
  return { active: true, events, config }
}

const delivery = z
  .object({
    // 64 bits: of more than 15 digits as text.
    id: z.union([z.int(), z.string().regex(/^\d+$/)]),
    guid: z.string(),
    event: z.string(),
    action: z.string().nullable(),
    delivered_at: z.string(),
    redelivery: z.boolean(),
    status: z.string(),
    status_code: z.int(),
  })
  .transform(({ id, delivered_at: deliveredAt, status_code: statusCode, ...rest }): host.HookDelivery => ({
    ...rest,
    id: String(id),
    deliveredAt: Date.parse(deliveredAt),
    statusCode,
  }))

/** The log at this path, of a repository's hook or an App's. */
export function deliveryLog(rest: Rest, where: string): host.DeliveryLog {
  return {
    async page(cursor) {
      const query = { per_page: LARGE_PAGE, ...(cursor !== undefined && { cursor }) }
      const call = { query, exact: true, answer: z.array(delivery) }
      const { value, header } = await rest.call('GET', where, call)
      return { deliveries: value, next: nextLink(header)?.searchParams.get('cursor') ?? undefined }
    },
    async redeliver(id) {
      await rest.call('POST', `${where}${path`/${id}/attempts`}`)
    },
  }
}
