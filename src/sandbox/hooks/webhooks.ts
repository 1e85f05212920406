import { randomUUID } from 'node:crypto'
import type { Log } from '../../base/log.js'
import type { Clock } from '../../base/time.js'
import { nodeId } from '../resources/node-id.js'
import type { DeliveryLog, LoggedDelivery } from './delivery-log.js'
import type { Hook } from './hook.js'
import type { Hooks } from './hooks.js'
import { type Message, send } from './send.js'

/** Maximum number of queued deliveries. Further ones are dropped, as an overloaded code host would lose them. */
const QUEUE_LIMIT = 1000

/** Events that the sandbox sends by itself. */
export type EventName =
  | 'check_run'
  | 'check_suite'
  | 'installation'
  | 'issue_comment'
  | 'ping'
  | 'pull_request'
  | 'push'
  | 'status'

/** Payload of an event, with the fields that its delivery names. */
export interface Payload {
  readonly action?: string
  readonly repository?: { readonly id: number }
  readonly [field: string]: unknown
}

export interface WebhookParts {
  readonly hooks: Hooks
  readonly deliveries: DeliveryLog
  /** Name of this host, for the headers. */
  readonly host: () => string
  readonly log: Log
  readonly clock: Clock
}

/** Sends deliveries in order, one at a time for each hook, each once, and logs how each ended. */
export class Webhooks {
  readonly #parts: WebhookParts
  readonly #stopped = new AbortController()
  /** End of the last delivery of each hook that has any queued. */
  readonly #last = new Map<number, Promise<void>>()
  #queued = 0

  constructor(parts: WebhookParts) {
    this.#parts = parts
  }

  /** Queues an event of a repository for every hook subscribed to it, and sends it once `after` has resolved. */
  publish(event: EventName, repo: string, describe: () => Payload, after?: Promise<void>): void {
    const hooks = this.#parts.hooks.subscribers(event, repo)
    if (hooks.length === 0) return
    const guid = randomUUID()
    const payload = describe()
    for (const hook of hooks) this.#queue(hook, messageOf(hook, guid, event, payload), false, after)
  }

  /** Queues an event for one hook, whatever it is subscribed to. */
  send(hook: Hook, event: EventName, payload: Payload, after?: Promise<void>): void {
    this.#queue(hook, messageOf(hook, randomUUID(), event, payload), false, after)
  }

  /** Queues the bytes of an earlier delivery again, under its GUID, for its hook as it is now. */
  redeliver(hook: Hook, delivery: LoggedDelivery, after?: Promise<void>): void {
    const { guid, event, action, repositoryId, installationId, payload, contentType } = delivery
    const message = { guid, event, action, repositoryId, installationId, payload, contentType }
    this.#queue(hook, message, true, after)
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

  #queue({ id }: Hook, message: Message, redelivery: boolean, after: Promise<void> | undefined): void {
    const { log } = this.#parts
    if (this.#queued >= QUEUE_LIMIT)
      return log.warn(`The sandbox dropped a webhook: ${QUEUE_LIMIT} are queued`)
    this.#queued += 1
    const earlier = Promise.all([this.#last.get(id), after])
    const sent = this.#deliverAfter(earlier, id, message, redelivery).finally(() => {
      this.#queued -= 1
      if (this.#last.get(id) === sent) this.#last.delete(id)
    })
    this.#last.set(id, sent)
  }

  async #deliverAfter(
    earlier: Promise<unknown>,
    hookId: number,
    message: Message,
    redelivery: boolean,
  ): Promise<void> {
    try {
      await earlier
      await this.#deliver(hookId, message, redelivery)
    } catch (error) {
      if (!this.#stopped.signal.aborted) this.#parts.log.error('The sandbox failed to deliver', error)
    }
  }

  /** To the hook as it is by now; a hook that was removed gets nothing more. */
  async #deliver(hookId: number, message: Message, redelivery: boolean): Promise<void> {
    const { hooks, deliveries, host, log, clock } = this.#parts
    const hook = hooks.get(hookId)
    if (!hook) return
    const [deliveredAt, began] = [clock(), performance.now()]
    const outcome = await send(hook, message, host(), this.#stopped.signal)
    const duration = Math.round(performance.now() - began) / 1000
    const url = hook.config.url()
    deliveries.add({ ...message, ...outcome, hookId, url, redelivery, deliveredAt, duration })
    if (outcome.failure !== undefined)
      log.warn(`The sandbox could not deliver the webhook ${message.event}: ${outcome.failure}`)
  }
}

function messageOf({ config, app }: Hook, guid: string, event: EventName, payload: Payload): Message {
  const id = app?.installationId
  const installation = { id, node_id: nodeId('IntegrationInstallation', id ?? 0) }
  return {
    guid,
    event,
    action: payload.action ?? null,
    repositoryId: payload.repository?.id ?? null,
    installationId: id ?? null,
    payload: JSON.stringify(id === undefined ? payload : { installation, ...payload }),
    contentType: config.contentType,
  }
}
