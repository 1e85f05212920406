import { performance } from 'node:perf_hooks'
import type { Cancellable } from '../base/abort.js'
import { describeConnectionError } from '../net/errors.js'
import { DeliverySender } from '../net/delivery-sender.js'
import { isTimeout } from '../base/time-limit.js'
import type { WebhookRequest } from '../webhook/intake.js'

/** The response, or the reason for none. */
export interface Answer {
  /** Null if there was no answer; `error` then says why. */
  readonly status: number | null
  readonly error: string | null
  /** Milliseconds from connecting to the end of the answer. */
  readonly ms: number
  /** The start of the body. */
  readonly body: Uint8Array
}

export interface Sender extends AsyncDisposable {
  /** Posts a request once, byte for byte. @throws only the signal's reason. */
  send(request: WebhookRequest, options?: Cancellable): Promise<Answer>
}

/** The time limit that relay also has for its targets. */
const TIME_LIMIT_MS = 30_000

const NOTHING = new Uint8Array()
const { signal: NEVER } = new AbortController()

/**
 * Sends to one address. Follows no redirect. Reaches other machines through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY
 * name.
 */
export function openSender(url: string): Sender {
  const sender = new DeliverySender(url, TIME_LIMIT_MS)
  const failed = (error: unknown): Omit<Answer, 'ms'> => {
    const why = isTimeout(error)
      ? `no answer within ${TIME_LIMIT_MS / 1000} s`
      : describeConnectionError(error)
    return { status: null, error: why, body: NOTHING }
  }
  return {
    async send({ headers, body }, { signal = NEVER } = {}) {
      const start = performance.now()
      try {
        const response = await sender.post(headers, body, signal)
        const ms = performance.now() - start
        return { status: response.status, error: null, ms, body: response.start }
      } catch (error) {
        signal.throwIfAborted()
        return { ...failed(error), ms: performance.now() - start }
      }
    },
    [Symbol.asyncDispose]: () => sender[Symbol.asyncDispose](),
  }
}
