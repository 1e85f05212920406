import { performance } from 'node:perf_hooks'
import { type Cancellable, isTimeout } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { DeliverySender, NoResponse } from '../net/delivery-sender.js'
import { describeConnectionError } from '../net/errors.js'
import type { WebhookRequest } from '../senders/request.js'

/** Response of a target, or the reason for none. */
export interface SendResult {
  /** Null if there was no response; `error` then has the reason. */
  readonly status: number | null
  readonly error: string | null
  /** Milliseconds from connecting to the end of the response. */
  readonly ms: number
  /** First bytes of the body. */
  readonly body: Uint8Array
}

export type RequestSender = ReturnType<typeof openSender>

/** Time limit in milliseconds, the same as for relay's targets. */
const TIME_LIMIT_MS = 30_000

/**
 * Opens a connection to one address. Follows no redirect. Reaches other machines through the proxy that HTTP_PROXY,
 * HTTPS_PROXY and NO_PROXY name.
 */
export function openSender(url: string) {
  const sender = new DeliverySender(url, TIME_LIMIT_MS)
  return {
    /** Posts a request, byte for byte. @throws only the signal's reason */
    async send(
      { headers, body, query, path }: WebhookRequest,
      { signal = new AbortController().signal }: Cancellable = {},
    ): Promise<SendResult> {
      const start = performance.now()
      try {
        const request = { lines: headers, body, query, path }
        const response = await sender.post(request, signal).catch((error: unknown) => {
          // The server closed the connection, most likely while it was idle.
          if (error instanceof NoResponse && error.how === 'stale') return sender.post(request, signal)
          throw error
        })
        return { status: response.status, error: null, ms: performance.now() - start, body: response.start }
      } catch (thrown) {
        signal.throwIfAborted()
        const cause = thrown instanceof NoResponse ? thrown.cause : thrown
        const limit = `no answer within ${TIME_LIMIT_MS / 1000} s`
        const error = isTimeout(cause) ? limit : describeConnectionError(cause)
        return { status: null, error, ms: performance.now() - start, body: new Uint8Array() }
      }
    },
    [Symbol.asyncDispose]: (): Promise<void> => sender[Symbol.asyncDispose](),
  }
}

/** Statuses that are expected unless `--expect` says otherwise. */
export const ANY_SUCCESS = '2xx'

/** Parses the statuses that `--expect` allows: `2xx`, `401`. @throws RelayError `usage` */
export function parseExpectation(text: string) {
  if (!/^[1-5](?:xx|\d\d)$/.test(text))
    throw new RelayError('usage', '--expect: must be a status such as 401, or a class such as 2xx')
  const wanted = text.replace('xx', '')
  return {
    text,
    /** True for any success. */
    isDefault: text === ANY_SUCCESS,
    /** True if the status is allowed. Null means that there was no response. */
    fits: (status: number | null): boolean => status !== null && String(status).startsWith(wanted),
  }
}
