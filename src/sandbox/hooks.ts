import { randomUUID } from 'node:crypto'
import type { Log } from '../base/log.js'
import type { Secret } from '../base/secret.js'
import type { Clock } from '../base/time.js'
import { isTimeout } from '../base/wait.js'
import { memberOf } from '../json/parse.js'
import { senderOf } from '../senders/senders.js'
import { DeliverySender } from '../net/delivery-sender.js'
import { describeConnectionError } from '../net/errors.js'
import { nodeId, type Payloads } from './payloads.js'
import { type JsonObject, SERVER_VERSION } from './protocol.js'
import { DEMO, timestamp } from './state.js'

const GITHUB = senderOf('github')

/** Settings of a hook that a client chooses, in GitHub's names. */
export interface HookInput {
  readonly active: boolean
  /** Names of events; `*` is every event. */
  readonly events: readonly string[]
  readonly config: {
    /** A function, since the sandbox's own hook is made before its receiver listens. */
    readonly url: () => string
    /** `json`: the body is the payload. `form`: the payload is its only field, `payload`. */
    readonly content_type: 'json' | 'form'
    /** Reported only: the sandbox always verifies certificates. */
    readonly insecure_ssl: '0' | '1'
    /** Absent: deliveries are not signed. */
    readonly secret: Secret | undefined
  }
}

/** Registration that makes the sandbox send deliveries: a repository's, an App's, or the sandbox's own. */
export interface Hook extends HookInput {
  readonly id: number
  /** Full name of the repository whose events it gets. Undefined: every repository. */
  readonly repo: string | undefined
  /** App that the webhook belongs to. It receives no events before the App is installed. */
  readonly app?: { readonly id: number; readonly installationId: number | undefined } | undefined
  readonly createdAt: string
  readonly updatedAt: string
}

/** Content of a delivery. A redelivery sends the same bytes under the same GUID. */
interface Message {
  /** Part that GitHub's log shows. All hooks that receive the event share its GUID. */
  readonly shown: {
    readonly guid: string
    readonly event: string
    readonly action: unknown
    readonly repository_id: unknown
    readonly installation_id: number | null
    readonly redelivery: boolean
  }
  readonly type: string
  readonly body: string
}

/** Response of the receiver, in the words of GitHub's log. */
interface Outcome {
  readonly status: string
  readonly status_code: number
}

/** A delivery that was sent. A redelivery is another one with the same GUID. */
interface Logged extends Message {
  readonly id: bigint
  readonly hookId: number
  /** Milliseconds since 1970-01-01 UTC. */
  readonly deliveredAt: number
  /** Response, with the address of the request and the seconds from the request to the end of the response. */
  readonly outcome: Outcome & { readonly url: string; readonly duration: number }
}

interface HookDependencies {
  readonly payloads: Payloads
  readonly clock: Clock
  readonly log: Log
}

/** First id of a hook made over REST; the sandbox's own hook has a smaller one. */
const FIRST_HOOK_ID = 601
/**
 * GitHub's time limit for a response
 * (https://docs.github.com/webhooks/using-webhooks/best-practices-for-using-webhooks).
 */
const TIME_LIMIT_MS = 10_000
/**
 * Age up to which GitHub shows and redelivers deliveries
 * (https://docs.github.com/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks).
 */
const LOG_PERIOD_MS = 3 * 86_400_000
/** Maximum number of logged deliveries of all hooks; the oldest are removed first. */
const LOG_LIMIT = 10_000
/** Maximum length of all logged bodies, 64 Mi characters. A body has about 8000, one with a long comment 70,000. */
const MAX_BODIES = 67_108_864
/**
 * First delivery id. As at GitHub, ids have 64 bits, and neighbours are equal once read as JavaScript numbers. They
 * grow, also from one sandbox to the next.
 */
const FIRST_DELIVERY_ID = 3_842_091_948_768_772_096n

/**
 * Hooks, the queue of each hook's deliveries, and the delivery log. A hook's deliveries are sent in order, one at a
 * time, each once.
 */
export class SandboxHooks {
  readonly #host: HookDependencies
  readonly #hooks = new Map<number, Hook>()
  /** Oldest first. */
  readonly #log: Logged[] = []
  readonly #stopped = new AbortController()
  /** End of the last delivery of each hook that has any queued. */
  readonly #last = new Map<number, Promise<void>>()
  #nextId = FIRST_HOOK_ID
  #nextDelivery: bigint
  #bodies = 0

  constructor(host: HookDependencies) {
    this.#host = host
    this.#nextDelivery = FIRST_DELIVERY_ID + BigInt(host.clock()) * 1000n
  }

  get(id: number | undefined): Hook | undefined {
    return id === undefined ? undefined : this.#hooks.get(id)
  }

  /** Hooks of a repository, in the order in which they were made. */
  of(repo: string): readonly Hook[] {
    return [...this.#hooks.values()].filter((hook) => hook.repo === repo)
  }

  /** Adds a hook, with a new id unless it has one. */
  add(hook: HookInput & Pick<Hook, 'repo' | 'app'> & { readonly id?: number }): Hook {
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

  /** Sent deliveries of a hook, newest first. */
  deliveries(hook: Hook): readonly Logged[] {
    const since = this.#host.clock() - LOG_PERIOD_MS
    return this.#log
      .filter(({ hookId, deliveredAt }) => hookId === hook.id && deliveredAt >= since)
      .toReversed()
  }

  /** Describes a hook for REST and `ping` (https://docs.github.com/rest/repos/webhooks). */
  resource(hook: Hook): JsonObject & { readonly id: number; readonly url: string } {
    const { id, active, events, app, repo = DEMO, createdAt, updatedAt } = hook
    const { payloads } = this.#host
    const url = app ? `${payloads.api}/app/hook` : `${payloads.repoApi(repo)}/hooks/${id}`
    const deliveries_url = `${url}/deliveries`
    const config = configResource(hook)
    const shown = { id, name: 'web', active, events, config, updated_at: updatedAt, created_at: createdAt }
    if (app) return { type: 'App', ...shown, app_id: app.id, url, deliveries_url }
    const links = { url, test_url: `${url}/test`, ping_url: `${url}/pings`, deliveries_url }
    const last = this.deliveries(hook)[0]?.outcome
    const last_response = last
      ? { code: last.status_code, status: healthOf(last), message: last.status }
      : { code: null, status: 'unused', message: null }
    return { type: 'Repository', ...shown, ...links, last_response }
  }

  /** Queues a `ping` (https://docs.github.com/webhooks/webhook-events-and-payloads#ping). */
  ping(hook: Hook, after?: Promise<void>): void {
    const zen = 'Half measures are as bad as nothing at all.'
    const context = hook.app ? {} : this.#host.payloads.context(hook.repo ?? DEMO)
    this.send(hook, 'ping', { zen, hook_id: hook.id, hook: this.resource(hook), ...context }, after)
  }

  /** Queues an event of a repository for every hook subscribed to it, and sends it once `after` has resolved. */
  publish(event: string, repo: string, describe: () => JsonObject, after?: Promise<void>): void {
    const hooks = [...this.#hooks.values()].filter(
      (hook) =>
        hook.active &&
        (hook.repo === undefined || hook.repo === repo) &&
        (hook.app === undefined || hook.app.installationId !== undefined) &&
        (hook.events.includes('*') || hook.events.includes(event)),
    )
    if (hooks.length === 0) return
    const guid = randomUUID()
    const payload = describe()
    for (const hook of hooks) this.#queue(hook, messageOf(hook, guid, event, payload), after)
  }

  /** Queues an event for one hook, regardless of its subscriptions. */
  send(hook: Hook, event: string, payload: JsonObject, after?: Promise<void>): void {
    this.#queue(hook, messageOf(hook, randomUUID(), event, payload), after)
  }

  /** Queues the bytes of an earlier delivery again, under its GUID, for the hook's current settings. */
  redeliver(hook: Hook, { shown, ...message }: Message, after?: Promise<void>): void {
    this.#queue(hook, { ...message, shown: { ...shown, redelivery: true } }, after)
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
    const sent = this.#deliver(Promise.all([this.#last.get(id), after]), id, message).finally(() => {
      if (this.#last.get(id) === sent) this.#last.delete(id)
    })
    this.#last.set(id, sent)
  }

  /** Sends a message with the hook's settings at that time. A removed hook receives nothing more. */
  async #deliver(earlier: Promise<unknown>, hookId: number, message: Message): Promise<void> {
    const { clock, log } = this.#host
    try {
      await earlier
      const hook = this.#hooks.get(hookId)
      if (!hook) return
      const [deliveredAt, began] = [clock(), performance.now()]
      const outcome = await this.#post(hook, message)
      const duration = Math.round(performance.now() - began) / 1000
      const { shown, type, body } = message
      const id = this.#nextDelivery++
      const url = hook.config.url()
      this.#log.push({ id, hookId, deliveredAt, shown, type, body, outcome: { ...outcome, url, duration } })
      this.#bodies += body.length
      while (this.#log.length > LOG_LIMIT || this.#bodies > MAX_BODIES)
        this.#bodies -= this.#log.shift()?.body.length ?? 0
    } catch (error) {
      if (!this.#stopped.signal.aborted) log.error('The sandbox failed to deliver', error)
    }
  }

  /**
   * Sends one delivery, once, on its own connection: a code host does not retry by itself. A failure is an outcome.
   * @throws the signal's reason once the sandbox closes
   */
  async #post({ id, app, config }: Hook, { shown, type, body: text }: Message): Promise<Outcome> {
    const { payloads, log } = this.#host
    const { signal } = this.#stopped
    const { secret, url } = config
    const body = Buffer.from(text)
    const failed = (why: string): void =>
      log.warn(`The sandbox could not deliver the webhook ${shown.event}: ${why}`)
    // https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers
    const unsigned = Object.entries({
      ...Object.fromEntries(GITHUB.headersOf(shown.event, shown.guid)),
      'Content-Type': type,
      'X-GitHub-Enterprise-Host': new URL(payloads.web).hostname,
      'X-GitHub-Enterprise-Version': SERVER_VERSION,
      'X-GitHub-Hook-ID': String(id),
      'X-GitHub-Hook-Installation-Target-ID': String(app?.id ?? shown.repository_id),
      'X-GitHub-Hook-Installation-Target-Type': app ? 'integration' : 'repository',
      ...(secret && { 'X-Hub-Signature': '' }),
    })
    const kind = GITHUB.kindOf(body, shown.event)
    const { headers } = secret
      ? GITHUB.sign({ headers: unsigned, body }, { current: secret }, 0, kind)
      : { headers: unsigned }
    try {
      await using sender = new DeliverySender(url(), TIME_LIMIT_MS)
      const { status: code } = await sender.post({ lines: headers, body }, signal)
      if (code >= 200 && code <= 299) return { status: 'OK', status_code: code }
      failed(`it was answered ${code}`)
      return { status: `Invalid HTTP Response: ${code}`, status_code: code }
    } catch (error) {
      signal.throwIfAborted()
      failed(describeConnectionError(error))
      // GitHub's log uses status codes of its own for a receiver that did not respond.
      return isTimeout(error)
        ? { status: 'timed out', status_code: 504 }
        : { status: 'failed to connect to host', status_code: 502 }
    }
  }
}

/** Serializes a payload when it is queued, so that later changes do not affect it. */
function messageOf({ config, app }: Hook, guid: string, event: string, payload: JsonObject): Message {
  const id = app?.installationId
  const installation = id !== undefined && {
    installation: { id, node_id: nodeId('IntegrationInstallation', id) },
  }
  const shown = {
    guid,
    event,
    action: payload['action'] ?? null,
    repository_id: memberOf(payload, 'repository.id') ?? null,
    installation_id: id ?? null,
    redelivery: false,
  }
  const json = JSON.stringify({ ...installation, ...payload })
  if (config.content_type === 'json') return { shown, type: 'application/json', body: json }
  const body = new URLSearchParams({ payload: json }).toString()
  return { shown, type: 'application/x-www-form-urlencoded', body }
}

/**
 * GitHub's word for the state of a hook with this last response. A receiver's own response may have the codes 502 and
 * 504, which GitHub uses for none.
 */
function healthOf({ status }: Outcome): string {
  if (status === 'OK') return 'active'
  return status.startsWith('Invalid') ? 'misconfigured' : 'connection_error'
}

/** Settings of a hook. The secret is never shown. */
export function configResource({ config: { url, content_type, insecure_ssl, secret } }: Hook): JsonObject {
  return { content_type, insecure_ssl, ...(secret && { secret: '********' }), url: url() }
}
