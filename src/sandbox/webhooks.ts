import { createHmac, randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { deadline } from '../base/abort.js'
import type { Log } from '../base/log.js'
import type { Secret } from '../base/secret.js'
import { sign } from '../webhook/signature.js'

/** The sandbox has one hook, for everything that happens in it. */
export const HOOK_ID = 1

/** GitHub gives up on an answer after 10 s. */
const TIME_LIMIT_MS = 10_000
/** Deliveries waiting to be sent; more are dropped, as they would be lost on a code host that is overrun. */
const QUEUE_LIMIT = 1000

export type EventName = 'ping' | 'issue_comment' | 'pull_request'

export interface Hook {
  readonly url: () => string
  readonly secret: Secret
}

interface Payload {
  readonly repository: { readonly id: number; readonly html_url: string }
}

/** Sends signed deliveries one after the other, each once: a code host does not try again by itself. */
export class Webhooks {
  readonly #hook: Hook | undefined
  readonly #log: Log
  readonly #stopped = new AbortController()
  #last: Promise<void> = Promise.resolve()
  #waiting = 0

  constructor(hook: Hook | undefined, log: Log) {
    this.#hook = hook
    this.#log = log
  }

  /** Queues a delivery of things as they are now, to be sent when `after` has resolved. A failure is logged only. */
  send(
    event: EventName,
    describe: (hookUrl: string) => Payload,
    after: Promise<void> = Promise.resolve(),
  ): void {
    const hook = this.#hook
    if (!hook) return
    if (this.#waiting >= QUEUE_LIMIT)
      return this.#log.warn(`the sandbox dropped a webhook: ${QUEUE_LIMIT} are waiting`)
    const url = hook.url()
    const payload = describe(url)
    const body = Buffer.from(JSON.stringify(payload))
    this.#waiting += 1
    this.#last = Promise.all([this.#last, after])
      .then(() => post(url, headersOf(event, payload, hook.secret, body), body, this.#stopped.signal))
      .catch((error: unknown) => this.#failed(event, error))
      .finally(() => void (this.#waiting -= 1))
  }

  /** Resolves when every delivery queued so far, or meanwhile, was sent or has failed. */
  async idle(): Promise<void> {
    while (this.#waiting > 0) await this.#last
  }

  /** Cuts off what is under way and what waits, without a word. */
  async close(): Promise<void> {
    this.#stopped.abort()
    await this.idle()
  }

  #failed(event: EventName, error: unknown): void {
    if (this.#stopped.signal.aborted) return
    const why = error instanceof Error ? error.message : String(error)
    this.#log.warn(`the sandbox could not deliver the webhook ${event}: ${why}`)
  }
}

/** The headers of a delivery (https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers). */
function headersOf(
  event: EventName,
  { repository }: Payload,
  secret: Secret,
  body: Uint8Array,
): Record<string, string> {
  return {
    Accept: '*/*',
    'Content-Type': 'application/json',
    'User-Agent': 'GitHub-Hookshot/5a4d80b',
    'X-GitHub-Delivery': randomUUID(),
    'X-GitHub-Enterprise-Host': new URL(repository.html_url).hostname,
    'X-GitHub-Enterprise-Version': '3.19.0',
    'X-GitHub-Event': event,
    'X-GitHub-Hook-ID': String(HOOK_ID),
    'X-GitHub-Hook-Installation-Target-ID': String(repository.id),
    'X-GitHub-Hook-Installation-Target-Type': 'repository',
    'X-Hub-Signature': `sha1=${createHmac('sha1', secret.reveal()).update(body).digest('hex')}`,
    'X-Hub-Signature-256': sign(secret, body),
    'Content-Length': String(body.byteLength),
  }
}

/** Not `fetch`, which adds headers no code host sends; on a new connection, since a kept one may be gone by now. */
function post(
  url: string,
  headers: Record<string, string>,
  body: Uint8Array,
  stop: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const signal = deadline(TIME_LIMIT_MS, stop)
    const outgoing = request(url, { method: 'POST', headers, signal, agent: false }, (answer) => {
      const status = answer.statusCode ?? 0
      const fits = status >= 200 && status <= 299
      answer.once('end', () => (fits ? resolve() : reject(new Error(`it was answered ${status}`))))
      answer.once('error', reject).resume()
    })
    outgoing.on('error', reject).end(body)
  })
}
