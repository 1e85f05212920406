import { type Context, Hono } from 'hono'
import { z } from 'zod/mini'
import { parseUrl } from '../base/address.js'
import { Secret } from '../base/secret.js'
import { sentEvents } from '../senders/events.js'
import { GITHUB_WEBHOOK } from '../senders/github.js'
import type { HttpEnv } from '../http/body.js'
import type { Hook, HookInput } from './hooks.js'
import { findRepo, type SandboxContext } from './host.js'
import { cursorPageOf, requireFound, invalidField, pageOf, readObject, responseSent } from './protocol.js'

const HOOKS = '/repos/:owner/:repo/hooks'
const HOOK = `${HOOKS}/:hook{\\d+}`

/** Routes for the hooks of a repository (https://docs.github.com/rest/repos/webhooks). */
export function hookRoutes(host: SandboxContext): Hono<HttpEnv> {
  const { state, hooks, faults } = host
  const fault = faults.inject('hook')
  return new Hono<HttpEnv>()
    .get(HOOKS, fault, (c) =>
      c.json(pageOf(c, hooks.of(findRepo(c, state).fullName)).map((hook) => hooks.resource(hook))),
    )
    .post(HOOKS, fault, async (c) => {
      const { fullName: repo } = findRepo(c, state)
      const hook = hooks.add({ repo, ...(await readHook(c, repo)) })
      hooks.ping(hook, responseSent(c))
      const resource = hooks.resource(hook)
      return c.json(resource, 201, { Location: resource.url })
    })
    .get(HOOK, fault, (c) => c.json(hooks.resource(findHook(c))))
    .patch(HOOK, fault, async (c) => {
      const hook = findHook(c)
      return c.json(hooks.resource(hooks.change(hook, await readHook(c, hook.repo ?? '', hook))))
    })
    .delete(HOOK, fault, (c) => {
      hooks.remove(findHook(c))
      return c.body(null, 204)
    })
    .post(`${HOOK}/pings`, fault, (c) => {
      hooks.ping(findHook(c), responseSent(c))
      return c.body(null, 204)
    })
    .route(`${HOOK}/deliveries`, deliveryRoutes(host, findHook))

  function findHook(c: Context): Hook {
    const { fullName } = findRepo(c, state)
    return requireFound(hooks.of(fullName).find(({ id }) => id === Number(c.req.param('hook'))))
  }

  /**
   * Reads the settings of a new hook, with GitHub's defaults, event `push` and format `form`, or the changes of a
   * `known` one. As at GitHub, `config` replaces all settings, and so removes a secret that it does not repeat.
   * @throws GitHubError 422, also when another hook of the repository has the same receiver and event
   */
  async function readHook(c: Context<HttpEnv>, repo: string, known?: Hook): Promise<HookInput> {
    const { active, events, config } = parsed(HOOK_BODY, await readObject(c))
    const input = {
      active: active ?? known?.active ?? true,
      events: [...new Set(events ?? known?.events ?? ['push'])],
      config: config || !known ? readConfig(config ?? {}) : known.config,
    }
    if (hooks.of(repo).some((hook) => hook.id !== known?.id && conflicts(hook, input)))
      throw invalidField('Hook', { code: 'custom', message: 'Hook already exists on this repository' })
    return input
  }
}

/** True if GitHub considers both the same hook. The secret, which it does not show, is not compared (unverified). */
function conflicts(one: HookInput, other: HookInput): boolean {
  const keyOf = ({ config }: HookInput): string =>
    `${config.content_type} ${config.insecure_ssl} ${config.url()}`
  const overlaps =
    [...one.events, ...other.events].includes('*') || one.events.some((each) => other.events.includes(each))
  return overlaps && keyOf(one) === keyOf(other)
}

/** Routes for the delivery log of the hook that `findHook` returns (https://docs.github.com/rest/repos/webhooks). */
export function deliveryRoutes(
  { faults, hooks }: SandboxContext,
  findHook: (c: Context) => Hook,
): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
    .get('/', faults.inject('deliveries'), (c) => {
      const entries = cursorPageOf(c, hooks.deliveries(findHook(c))).map(
        ({ id, shown, outcome, deliveredAt }) => {
          const delivered_at = new Date(deliveredAt).toISOString()
          // Written as text, since JSON.stringify cannot write an id of 64 bits.
          return `{"id":${id},${JSON.stringify({ ...shown, delivered_at, throttled_at: null, ...outcome }).slice(1)}`
        },
      )
      return c.body(`[${entries.join(',')}]`, 200, { 'Content-Type': 'application/json; charset=utf-8' })
    })
    .post('/:delivery{\\d+}/attempts', faults.inject('redeliver'), (c) => {
      const hook = findHook(c)
      const id = BigInt(c.req.param('delivery'))
      hooks.redeliver(
        hook,
        requireFound(hooks.deliveries(hook).find((each) => each.id === id)),
        responseSent(c),
      )
      return c.json({}, 202)
    })
}

export const isHttpUrl = (url: string): boolean => /^https?:$/.test(parseUrl(url)?.protocol ?? '')

const CONFIG = z.object({
  url: z.optional(z.string().check(z.refine(isHttpUrl))),
  content_type: z.optional(z.enum(['json', 'form'])),
  insecure_ssl: z.optional(z.union([z.string(), z.number()])),
  secret: z.optional(z.string()),
})
const HOOK_BODY = z.object({
  name: z.optional(z.literal('web')),
  active: z.optional(z.boolean()),
  events: z.optional(z.array(z.enum(['*', ...sentEvents(GITHUB_WEBHOOK.events).keys()]))),
  config: z.optional(CONFIG),
})

/** Reads the settings of a hook. Missing ones are those of `known`, or GitHub's defaults. @throws GitHubError 422 */
export function readConfig(given: unknown, known?: HookInput['config']): HookInput['config'] {
  const config = parsed(CONFIG, given)
  const { secret } = config
  const url = config.url ?? known?.url()
  if (url === undefined)
    throw invalidField('Hook', { code: 'custom', message: 'Config must contain URL for webhooks' })
  return {
    url: () => url,
    content_type: config.content_type ?? known?.content_type ?? 'form',
    insecure_ssl: String(config.insecure_ssl ?? known?.insecure_ssl) === '1' ? '1' : '0',
    secret: secret === undefined ? known?.secret : secret === '' ? undefined : new Secret(secret),
  }
}

function parsed<T>(schema: z.ZodMiniType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value)
  if (!error) return data
  const field = error.issues[0]?.path.find((step) => typeof step === 'string' && step !== 'config')
  throw invalidField('Hook', { code: 'invalid', field: String(field ?? 'config') })
}
