import { createHmac, randomUUID } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { parseUrl } from '../base/address.js'
import { Secret } from '../base/secret.js'
import { isTimeout } from '../base/wait.js'
import type { Clock } from '../base/time.js'
import { memberOf, sentEvents } from '../codehost/events.js'
import { WEBHOOK } from '../codehost/github/webhook.js'
import { DeliverySender } from '../net/delivery-sender.js'
import { describeConnectionError } from '../net/errors.js'
import { type Json, nodeId } from './payloads.js'
import {
  cursorPageOf,
  findRepo,
  found,
  type Host,
  invalidField,
  pageOf,
  readObject,
  responseSent,
} from './protocol.js'
import { timestamp } from './state.js'
import type { Grant } from './tokens.js'
import type { HttpEnv } from '../http/body.js'

/** Environment of the routes behind the bearer check, which sets `grant` to that of the token. */
export type RestEnv = HttpEnv & { Variables: { grant: Grant } }

/** What a client chooses about a hook. */
export interface HookInput {
  readonly active: boolean
  /** Names of events; `*` is every event. */
  readonly events: readonly string[]
  readonly config: {
    /** A function, since the sandbox's own hook is made before its receiver listens. */
    readonly url: () => string
    /** `json`: the body is the payload. `form`: the payload is its only field, `payload`. */
    readonly contentType: 'json' | 'form'
    /** Shown only: the sandbox always verifies certificates. */
    readonly insecureSsl: '0' | '1'
    /** Absent: deliveries are not signed. */
    readonly secret: Secret | undefined
  }
}

/** Registration that makes the sandbox send deliveries: a repository's, an App's, or the sandbox's own. */
export interface Hook extends HookInput {
  readonly id: number
  /** Full name of the repository whose events it gets. Undefined: every repository. */
  readonly repo: string | undefined
  /** App whose webhook it is. */
  readonly app?: { readonly id: number; readonly installationId: number | undefined } | undefined
  readonly createdAt: string
  readonly updatedAt: string
}

/** What is sent, and sent again by a redelivery: the same bytes under the same GUID. */
interface Message {
  /** Shared by all hooks that get the event. */
  readonly guid: string
  readonly event: string
  readonly action: string | null
  readonly repositoryId: number | null
  /** Installation of the App whose webhook it is. */
  readonly installationId: number | null
  /** JSON text. */
  readonly payload: string
  readonly contentType: 'json' | 'form'
  readonly redelivery: boolean
}

/** A delivery that was sent once. A redelivery is another one with the same GUID. */
interface Logged extends Message {
  readonly id: bigint
  readonly hookId: number
  /** Address that it was sent to. */
  readonly url: string
  /** Milliseconds since 1970-01-01 UTC. */
  readonly deliveredAt: number
  /** Seconds from the request to the end of the response. */
  readonly duration: number
  /** How the receiver answered, in the words of GitHub's log. */
  readonly status: string
  readonly statusCode: number
  /** Why it counts as failed, for people; undefined if it succeeded. */
  readonly failure: string | undefined
}

/** First id of a hook made over REST; the sandbox's own hook has a smaller one. */
const FIRST_HOOK_ID = 601
/** Maximum number of queued deliveries. Further ones are dropped, as an overloaded code host would lose them. */
const QUEUE_LIMIT = 1000
/** GitHub gives up on an answer after 10 s (https://docs.github.com/webhooks/using-webhooks/best-practices-for-using-webhooks). */
const TIME_LIMIT_MS = 10_000
/** Version of GitHub Enterprise Server in the headers of deliveries. */
const SERVER_VERSION = '3.19.0'
/** GitHub can show and redeliver the last 3 days (https://docs.github.com/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks). */
const LOG_PERIOD_MS = 3 * 86_400_000
/** Maximum number of logged deliveries of all hooks; the oldest are removed first. */
const LOG_LIMIT = 10_000
/** Maximum size of their payloads, 64 MiB: a payload is about 8 KB, one with a long comment 70 KB. */
const MAX_PAYLOADS = 67_108_864
/** GitHub's ids have 64 bits, and neighbours are equal once read as JavaScript numbers. They grow, also from one sandbox to the next. */
const FIRST_DELIVERY_ID = 3_842_091_948_768_772_096n

/** Hooks, their deliveries, sent in order, one at a time for each hook, each once, and the log of how each ended. */
export class Hooks {
  readonly #host: Host
  readonly #hooks = new Map<number, Hook>()
  readonly #log: DeliveryLog
  readonly #stopped = new AbortController()
  /** End of the last delivery of each hook that has any queued. */
  readonly #last = new Map<number, Promise<void>>()
  #nextId = FIRST_HOOK_ID
  #queued = 0

  constructor(host: Host) {
    this.#host = host
    this.#log = new DeliveryLog(host.clock)
  }

  get(id: number | undefined): Hook | undefined {
    return id === undefined ? undefined : this.#hooks.get(id)
  }

  /** Hooks of a repository, in the order in which they were made. */
  of(repo: string): readonly Hook[] {
    return [...this.#hooks.values()].filter((hook) => hook.repo === repo)
  }

  /** Adds a hook, with a new id unless it has one. */
  add(hook: HookInput & Pick<Hook, 'repo' | 'app'> & Partial<Pick<Hook, 'id'>>): Hook {
    const now = timestamp(this.#host.clock())
    const made = { id: hook.id ?? this.#nextId++, ...hook, createdAt: now, updatedAt: now }
    this.#hooks.set(made.id, made)
    return made
  }

  change(hook: Hook, input: Partial<HookInput & Pick<Hook, 'app'>>): Hook {
    const changed = { ...hook, ...input, updatedAt: timestamp(this.#host.clock()) }
    this.#hooks.set(hook.id, changed)
    return changed
  }

  remove(hook: Hook): void {
    this.#hooks.delete(hook.id)
  }

  /** Deliveries of a hook that were sent, newest first. */
  deliveries(hook: Hook): readonly Logged[] {
    return this.#log.of(hook.id)
  }

  /** Queues an event of a repository for every hook subscribed to it, and sends it once `after` has resolved. */
  publish(event: string, repo: string, describe: () => Json, after?: Promise<void>): void {
    const hooks = [...this.#hooks.values()].filter(
      (hook) =>
        hook.active &&
        (hook.repo === undefined || hook.repo === repo) &&
        (hook.events.includes('*') || hook.events.includes(event)),
    )
    if (hooks.length === 0) return
    const guid = randomUUID()
    const payload = describe()
    for (const hook of hooks) this.#queue(hook, messageOf(hook, guid, event, payload), after)
  }

  /** Queues an event for one hook, whatever it is subscribed to. */
  send(hook: Hook, event: string, payload: Json, after?: Promise<void>): void {
    this.#queue(hook, messageOf(hook, randomUUID(), event, payload), after)
  }

  /** Queues the bytes of an earlier delivery again, under its GUID, for its hook as it is now. */
  redeliver(hook: Hook, delivery: Message, after?: Promise<void>): void {
    this.#queue(hook, { ...delivery, redelivery: true }, after)
  }

  /** Resolves when the queues are empty: every delivery was sent or has failed. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values())
  }

  /** Cancels running and queued deliveries without logging them. */
  async close(): Promise<void> {
    this.#stopped.abort()
    await this.idle()
  }

  #queue({ id }: Hook, message: Message, after: Promise<void> | undefined): void {
    if (this.#queued >= QUEUE_LIMIT)
      return this.#host.log.warn(`The sandbox dropped a webhook: ${QUEUE_LIMIT} are queued`)
    this.#queued += 1
    const sent = this.#deliver(Promise.all([this.#last.get(id), after]), id, message).finally(() => {
      this.#queued -= 1
      if (this.#last.get(id) === sent) this.#last.delete(id)
    })
    this.#last.set(id, sent)
  }

  /** To the hook as it is by then; a hook that was removed gets nothing more. */
  async #deliver(earlier: Promise<unknown>, hookId: number, message: Message): Promise<void> {
    const { clock, log, payloads } = this.#host
    try {
      await earlier
      const hook = this.#hooks.get(hookId)
      if (!hook) return
      const [deliveredAt, began] = [clock(), performance.now()]
      const outcome = await post(hook, message, new URL(payloads.web).hostname, this.#stopped.signal)
      const duration = Math.round(performance.now() - began) / 1000
      this.#log.add({ ...message, ...outcome, hookId, url: hook.config.url(), deliveredAt, duration })
      if (outcome.failure !== undefined)
        log.warn(`The sandbox could not deliver the webhook ${message.event}: ${outcome.failure}`)
    } catch (error) {
      if (!this.#stopped.signal.aborted) log.error('The sandbox failed to deliver', error)
    }
  }
}

/** The payload is text from here on: what is queued does not change. */
function messageOf({ config, app }: Hook, guid: string, event: string, payload: Json): Message {
  const id = app?.installationId
  const installation = id !== undefined && {
    installation: { id, node_id: nodeId('IntegrationInstallation', id) },
  }
  const [action, repositoryId] = [payload['action'], memberOf(payload, 'repository.id')]
  return {
    guid,
    event,
    action: typeof action === 'string' ? action : null,
    repositoryId: typeof repositoryId === 'number' ? repositoryId : null,
    installationId: id ?? null,
    payload: JSON.stringify({ ...installation, ...payload }),
    contentType: config.contentType,
    redelivery: false,
  }
}

/**
 * Sends one delivery, once, on a connection of its own: a code host does not retry by itself. A failure is an outcome.
 * @throws the signal's reason once `stop` aborts.
 */
async function post(
  hook: Hook,
  message: Message,
  host: string,
  stop: AbortSignal,
): Promise<Pick<Logged, 'status' | 'statusCode' | 'failure'>> {
  const { secret, url } = hook.config
  const isJson = message.contentType === 'json'
  const { payload } = message
  const body = Buffer.from(isJson ? payload : new URLSearchParams({ payload }).toString())
  // https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers
  const headers = {
    ...WEBHOOK.headers(message.event, message.guid, body, secret),
    'Content-Type': isJson ? 'application/json' : 'application/x-www-form-urlencoded',
    'X-GitHub-Enterprise-Host': host,
    'X-GitHub-Enterprise-Version': SERVER_VERSION,
    'X-GitHub-Hook-ID': String(hook.id),
    'X-GitHub-Hook-Installation-Target-ID': String(hook.app?.id ?? message.repositoryId),
    'X-GitHub-Hook-Installation-Target-Type': hook.app ? 'integration' : 'repository',
    ...(secret && {
      'X-Hub-Signature': `sha1=${createHmac('sha1', secret.reveal()).update(body).digest('hex')}`,
    }),
  }
  try {
    await using sender = new DeliverySender(url(), TIME_LIMIT_MS)
    const { status: statusCode } = await sender.post(Object.entries(headers), body, stop)
    return statusCode >= 200 && statusCode <= 299
      ? { status: 'OK', statusCode, failure: undefined }
      : {
          status: `Invalid HTTP Response: ${statusCode}`,
          statusCode,
          failure: `it was answered ${statusCode}`,
        }
  } catch (error) {
    stop.throwIfAborted()
    const failure = describeConnectionError(error)
    // GitHub's log shows a receiver that did not answer with a status code of its own.
    return isTimeout(error)
      ? { status: 'timed out', statusCode: 504, failure }
      : { status: 'failed to connect to host', statusCode: 502, failure }
  }
}

/** What the sandbox sent, of all hooks, in memory and bounded. */
export class DeliveryLog {
  readonly #clock: Clock
  readonly #limits: { readonly entries: number; readonly payloads: number }
  readonly #entries = new Map<bigint, Logged>()
  #payloads = 0
  #nextId: bigint

  constructor(clock: Clock, limits = { entries: LOG_LIMIT, payloads: MAX_PAYLOADS }) {
    this.#clock = clock
    this.#limits = limits
    this.#nextId = FIRST_DELIVERY_ID + BigInt(clock()) * 1000n
  }

  add(delivery: Omit<Logged, 'id'>): void {
    const id = this.#nextId++
    this.#entries.set(id, { ...delivery, id })
    this.#payloads += delivery.payload.length
    this.#removeOld()
  }

  /** Deliveries of a hook, newest first. */
  of(hookId: number): readonly Logged[] {
    this.#removeOld()
    return [...this.#entries.values()].filter((entry) => entry.hookId === hookId).toReversed()
  }

  /** Entries are in the order of their ends, so that the first is the oldest to within one time limit. */
  #removeOld(): void {
    const since = this.#clock() - LOG_PERIOD_MS
    for (const { id, deliveredAt, payload } of this.#entries.values()) {
      const full = this.#entries.size > this.#limits.entries || this.#payloads > this.#limits.payloads
      if (!full && deliveredAt >= since) return
      this.#entries.delete(id)
      this.#payloads -= payload.length
    }
  }
}

const HOOKS = '/repos/:owner/:repo/hooks'
const HOOK = `${HOOKS}/:hook{\\d+}`

/** Routes for the hooks of a repository (https://docs.github.com/rest/repos/webhooks). */
export function hookRoutes(hooks: Hooks, host: Host): Hono<RestEnv> {
  const { state, payloads } = host
  const fault = host.faults.inject('hook')
  return new Hono<RestEnv>()
    .get(HOOKS, fault, (c) => c.json(pageOf(c, hooks.of(findRepo(c, state).fullName)).map(show)))
    .post(HOOKS, fault, async (c) => {
      const { fullName: repo } = findRepo(c, state)
      const hook = hooks.add({ repo, ...accepted(repo, readHook(await readObject(c))) })
      ping(c, hook)
      return c.json(show(hook), 201, { Location: urlOf(hook) })
    })
    .get(HOOK, fault, (c) => c.json(show(findHook(c))))
    .patch(HOOK, fault, async (c) => {
      const hook = findHook(c)
      const input = accepted(hook.repo ?? '', readHook(await readObject(c), hook), hook)
      return c.json(show(hooks.change(hook, input)))
    })
    .delete(HOOK, fault, (c) => {
      hooks.remove(findHook(c))
      return c.body(null, 204)
    })
    .post(`${HOOK}/pings`, fault, (c) => {
      ping(c, findHook(c))
      return c.body(null, 204)
    })
    .route(`${HOOK}/deliveries`, deliveryRoutes(hooks, host, findHook))

  function findHook(c: Context): Hook {
    const { fullName } = findRepo(c, state)
    return found(hooks.of(fullName).find(({ id }) => id === Number(c.req.param('hook'))))
  }

  function ping(c: Context<RestEnv>, hook: Hook): void {
    const context = payloads.context(hook.repo ?? '', c.get('grant').login)
    hooks.send(hook, 'ping', { ...pingOf(hook, show(hook)), ...context }, responseSent(c))
  }

  /** Returns the settings. @throws GitHubError 422 when another hook of the repository has the same receiver and event */
  function accepted(repo: string, input: HookInput, itself?: Hook): HookInput {
    if (hooks.of(repo).some((hook) => hook.id !== itself?.id && conflicts(hook, input)))
      throw invalidField('Hook', { code: 'custom', message: 'Hook already exists on this repository' })
    return input
  }

  function urlOf({ repo = '', id }: Hook): string {
    return `${payloads.repoApi(repo)}/hooks/${id}`
  }

  function show(hook: Hook): Json & { readonly id: number } {
    return hookResource(hook, urlOf(hook), hooks.deliveries(hook)[0])
  }
}

/** Whether GitHub takes both for one hook. The secret, which it does not show, is no part of that here (unverified). */
function conflicts(one: HookInput, other: HookInput): boolean {
  const [{ url, contentType, insecureSsl }, { config }] = [one.config, other]
  const isSame = url() === config.url() && contentType === config.contentType
  const overlaps =
    [...one.events, ...other.events].includes('*') || one.events.some((each) => other.events.includes(each))
  return isSame && insecureSsl === config.insecureSsl && overlaps
}

/** Hook of a repository (https://docs.github.com/rest/repos/webhooks). `last` is its last delivery. */
export function hookResource(hook: Hook, url: string, last?: Logged): Json & { readonly id: number } {
  const { id, active, events, createdAt, updatedAt } = hook
  // Each of GitHub's codes for a receiver that did not answer, 502 and 504, may also be a receiver's answer.
  const isReached = last && /^(?:OK|Invalid)/.test(last.status)
  const kind = last?.failure === undefined ? 'active' : isReached ? 'misconfigured' : 'connection_error'
  return {
    type: 'Repository',
    id,
    name: 'web',
    active,
    events,
    config: configResource(hook),
    updated_at: updatedAt,
    created_at: createdAt,
    url,
    test_url: `${url}/test`,
    ping_url: `${url}/pings`,
    deliveries_url: `${url}/deliveries`,
    last_response: last
      ? { code: last.statusCode, status: kind, message: last.status }
      : { code: null, status: 'unused', message: null },
  }
}

/** Settings of a hook. The secret is never shown. */
export function configResource({ config: { url, contentType, insecureSsl, secret } }: Hook): Json {
  const shown = secret && { secret: '********' }
  return { content_type: contentType, insecure_ssl: insecureSsl, ...shown, url: url() }
}

/** First fields of the payload of `ping`. */
export function pingOf(hook: Hook, resource: Json): Json {
  return { zen: 'Half measures are as bad as nothing at all.', hook_id: hook.id, hook: resource }
}

/** Routes for the delivery log of a hook, which `findHook` finds (https://docs.github.com/rest/repos/webhooks). */
export function deliveryRoutes(
  hooks: Hooks,
  { faults }: Host,
  findHook: (c: Context) => Hook,
): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
    .get('/', faults.inject('deliveries'), (c) => {
      const page = cursorPageOf(c, hooks.deliveries(findHook(c)))
      // As text, since JSON.stringify cannot write an id of 64 bits.
      const text = `[${page.map(deliveryText).join(',')}]`
      return c.body(text, 200, { 'Content-Type': 'application/json; charset=utf-8' })
    })
    .post('/:delivery{\\d+}/attempts', faults.inject('redeliver'), (c) => {
      const hook = findHook(c)
      const id = BigInt(c.req.param('delivery'))
      hooks.redeliver(hook, found(hooks.deliveries(hook).find((each) => each.id === id)), responseSent(c))
      return c.json({}, 202)
    })
}

/** Entry in the list of a hook's deliveries (https://docs.github.com/rest/repos/webhooks#list-deliveries-for-a-repository-webhook). */
function deliveryText(delivery: Logged): string {
  const { guid, deliveredAt, redelivery, duration, status, event, action, url } = delivery
  const fields = {
    guid,
    delivered_at: new Date(deliveredAt).toISOString(),
    redelivery,
    duration,
    status,
    status_code: delivery.statusCode,
    event,
    action,
    installation_id: delivery.installationId,
    repository_id: delivery.repositoryId,
    throttled_at: null,
    url,
  }
  return `{"id":${delivery.id},${JSON.stringify(fields).slice(1)}`
}

export const isHttpUrl = (url: string): boolean => /^https?:$/.test(parseUrl(url)?.protocol ?? '')

const CONFIG = z.object({
  url: z.string().refine(isHttpUrl).optional(),
  content_type: z.enum(['json', 'form']).optional(),
  insecure_ssl: z.union([z.string(), z.number()]).optional(),
  secret: z.string().optional(),
})
const HOOK_BODY = z.object({
  name: z.literal('web').optional(),
  active: z.boolean().optional(),
  events: z.array(z.enum(['*', ...sentEvents(WEBHOOK.events).keys()])).optional(),
  config: CONFIG.optional(),
})

/**
 * Reads the settings of a new hook, with GitHub's defaults, event `push` and format `form`, or changes of a `known` one. Like
 * GitHub, `config` replaces all settings, and so removes a secret that it does not repeat.
 * @throws GitHubError 422
 */
function readHook(body: Json, known?: HookInput): HookInput {
  const { active, events, config } = parsed(HOOK_BODY, body)
  return {
    active: active ?? known?.active ?? true,
    events: [...new Set(events ?? known?.events ?? ['push'])],
    config: config || !known ? readConfig(config ?? {}) : known.config,
  }
}

/** Reads the settings of a hook; those absent are `known`'s, or GitHub's defaults. @throws GitHubError 422 */
export function readConfig(config: unknown, known?: HookInput['config']): HookInput['config'] {
  const { url, content_type: contentType, insecure_ssl: insecure, secret } = parsed(CONFIG, config)
  if (url === undefined && !known)
    throw invalidField('Hook', { code: 'custom', message: 'Config must contain URL for webhooks' })
  return {
    url: url === undefined && known ? known.url : () => url ?? '',
    contentType: contentType ?? known?.contentType ?? 'form',
    insecureSsl: String(insecure ?? known?.insecureSsl) === '1' ? '1' : '0',
    secret: secret === undefined ? known?.secret : secret === '' ? undefined : new Secret(secret),
  }
}

function parsed<T>(schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value)
  if (!error) return data
  const field = error.issues[0]?.path.find((step) => typeof step === 'string' && step !== 'config')
  throw invalidField('Hook', { code: 'invalid', field: String(field ?? 'config') })
}
