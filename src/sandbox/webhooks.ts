import { createHmac, randomUUID } from 'node:crypto'
import type { Log } from '../base/log.js'
import type { Secret } from '../base/secret.js'
import { describeConnectionError } from '../net/connection-error.js'
import { DeliverySender } from '../net/delivery-sender.js'
import { WEBHOOK } from '../providers/github/webhook.js'
import { sign } from '../webhook/signature.js'

/** GitHub gives up on an answer after 10 s. */
const TIME_LIMIT_MS = 10_000
/** Maximum number of queued deliveries. Further ones are dropped, as an overloaded code host would lose them. */
const QUEUE_LIMIT = 1000

export type EventName = 'ping' | 'issue_comment' | 'pull_request'

export interface Hook {
  readonly url: () => string
  readonly secret: Secret
}

interface Payload {
  readonly repository: { readonly id: number; readonly html_url: string }
}

/** Sends signed deliveries one at a time, each once: a code host does not retry by itself. */
export class Webhooks {
  readonly #hook: Hook | undefined
  readonly #log: Log
  readonly #stopped = new AbortController()
  #last: Promise<void> = Promise.resolve()
  #queued = 0

  constructor(hook: Hook | undefined, log: Log) {
    this.#hook = hook
    this.#log = log
  }

  /** Queues a delivery with the current contents, and sends it once `after` has resolved. A failure is only logged. */
  send(
    event: EventName,
    describe: (hookUrl: string) => Payload,
    after: Promise<void> = Promise.resolve(),
  ): void {
    const hook = this.#hook
    if (!hook) return
    if (this.#queued >= QUEUE_LIMIT)
      return this.#log.warn(`The sandbox dropped a webhook: ${QUEUE_LIMIT} are queued`)
    const url = hook.url()
    const payload = describe(url)
    const body = Buffer.from(JSON.stringify(payload))
    this.#queued += 1
    this.#last = Promise.all([this.#last, after])
      .then(() => post(url, headersOf(event, payload, hook.secret, body), body, this.#stopped.signal))
      .catch((error: unknown) => this.#failed(event, error))
      .finally(() => void (this.#queued -= 1))
  }

  /** Resolves when the queue is empty: every delivery was sent or has failed. */
  async idle(): Promise<void> {
    while (this.#queued > 0) await this.#last
  }

  /** Cancels running and queued deliveries without logging them. */
  async close(): Promise<void> {
    this.#stopped.abort()
    await this.idle()
  }

  #failed(event: EventName, error: unknown): void {
    if (this.#stopped.signal.aborted) return
    this.#log.warn(`The sandbox could not deliver the webhook ${event}: ${describeConnectionError(error)}`)
  }
}

/** Headers of a delivery (https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers). */
function headersOf(
  event: EventName,
  { repository }: Payload,
  secret: Secret,
  body: Uint8Array,
): Record<string, string> {
  return {
    ...WEBHOOK.headers(event, randomUUID()),
    'X-GitHub-Enterprise-Host': new URL(repository.html_url).hostname,
    'X-GitHub-Enterprise-Version': '3.19.0',
    'X-GitHub-Hook-Installation-Target-ID': String(repository.id),
    'X-Hub-Signature': `sha1=${createHmac('sha1', secret.reveal()).update(body).digest('hex')}`,
    'X-Hub-Signature-256': sign(secret, body),
  }
}

/** On a connection of its own, so that it is never sent a second time. */
async function post(
  url: string,
  headers: Record<string, string>,
  body: Uint8Array,
  stop: AbortSignal,
): Promise<void> {
  await using sender = new DeliverySender(url, { limit: TIME_LIMIT_MS })
  const { status } = await sender.post(Object.entries(headers), body, stop)
  if (status < 200 || status > 299) throw new Error(`it was answered ${status}`)
}
