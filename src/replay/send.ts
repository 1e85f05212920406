import { performance } from 'node:perf_hooks'
import type { Cancellable } from '../base/abort.js'
import { describeConnectionError } from '../base/connection-error.js'
import { openPoster } from '../dispatch/open-poster.js'
import { isTimeout } from '../dispatch/time-limit.js'
import type { WebhookRequest } from '../webhook/intake.js'

/** What came back. */
export interface Answer {
  /** null when there was no answer; `error` then says why. */
  readonly status: number | null
  readonly error: string | null
  /** Milliseconds from connecting to the end of the answer. */
  readonly ms: number
  /** How it begins. */
  readonly body: Uint8Array
}

export interface Sender extends AsyncDisposable {
  /** Posts a request once, byte for byte. @throws the signal's reason when it aborts, and for nothing else. */
  send(request: WebhookRequest, options?: Cancellable): Promise<Answer>
}

/** As long as relay gives the targets it hands deliveries on to. */
const TIME_LIMIT_MS = 30_000

const NOTHING = new Uint8Array()
const { signal: NEVER } = new AbortController()

/**
 * Sends to one address. Redirects are not followed. Any address but this machine's own is reached through the proxy that
 * HTTP_PROXY, HTTPS_PROXY and NO_PROXY name. Connections are as many as requests at once.
 */
export function openSender(url: string): Sender {
  const poster = openPoster(url, { limit: TIME_LIMIT_MS })
  const failed = (error: unknown): Omit<Answer, 'ms'> => {
    const why = isTimeout(error)
      ? `no answer within ${TIME_LIMIT_MS / 1000} s`
      : describeConnectionError(error)
    return { status: null, error: why, body: NOTHING }
  }
  return {
    async send({ headers, body }, { signal = NEVER } = {}) {
      const begun = performance.now()
      try {
        const { status, start } = await poster.post(headers, body, signal)
        return { status, error: null, ms: performance.now() - begun, body: start }
      } catch (error) {
        signal.throwIfAborted()
        return { ...failed(error), ms: performance.now() - begun }
      }
    },
    [Symbol.asyncDispose]: () => poster[Symbol.asyncDispose](),
  }
}
