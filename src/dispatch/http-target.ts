import { decodeUserinfo } from '../base/address.js'
import { isTimeout } from '../base/wait.js'
import type { Clock } from '../base/time.js'
import { type Header, isSendable, endToEndHeaders } from '../http/headers.js'
import type { Entry, AttemptOutcome } from '../journal/types.js'
import { describeConnectionError, parseRetryAfter } from '../net/errors.js'
import { NotHttpError } from '../net/client.js'
import { DeliverySender } from '../net/delivery-sender.js'
import { redirectTarget } from '../net/redirect.js'
import { type OpenTarget, noResponse } from './target.js'

/** Converts an entry so that its receiver can verify it now, without the headers of the original connection. */
export type RequestBuilder = (entry: Entry) => {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/**
 * Outcome of an HTTP status. 3xx is final: redirects are not followed, since the bytes were signed for one receiver.
 */
function statusOutcome(status: number): AttemptOutcome {
  if (status >= 200 && status < 300) return 'succeeded'
  return status >= 500 || [408, 425, 429].includes(status) ? 'retry' : 'refused'
}

/**
 * Opens an HTTP target, which posts deliveries with the recorded bytes and headers through {@link DeliverySender}. If
 * the response is not HTTP, the delivery has failed: sending it again to that port would change nothing.
 * @param limit milliseconds of an attempt, from connecting to the end of the response
 */
export function openHttpTarget(
  url: string,
  {
    clock,
    limit,
    sendable = ({ headers, body }) => ({ headers: endToEndHeaders(headers), body }),
  }: { readonly clock: Clock; readonly limit: number; readonly sendable?: RequestBuilder | undefined },
): OpenTarget {
  const own = basic(new URL(url))
  const sender = new DeliverySender(url, limit)
  return {
    async deliver(entry, attempt, { signal }) {
      // Called outside the try: a failure here is not the target's.
      const { headers: all, body } = sendable(entry)
      // A request has only one such header (RFC 9110 section 11.6.2). The target's own credentials take precedence over
      // a sender's token.
      const rest = own ? all.filter(([name]) => name.toLowerCase() !== 'authorization') : all
      const sent = [...forwardedHeaders(rest, attempt), ...(own ? [own] : [])]
      try {
        const { status, header, lines, start } = await sender.post(sent, body, signal)
        const elsewhere = redirectTarget({ status, header }, url)
        return {
          outcome: statusOutcome(status),
          status,
          answer: start,
          headers: answerHeaders(lines),
          error:
            elsewhere === undefined
              ? null
              : `answered ${status}, a redirect to ${elsewhere} that is not followed: forward there instead`,
          retryAfter: parseRetryAfter(header, clock()),
        }
      } catch (error) {
        if (signal.aborted) return noResponse('killed', 'relay was stopped')
        if (isTimeout(error)) return noResponse('timed out', `no answer within ${limit / 1000} s`)
        if (error instanceof NotHttpError)
          return { outcome: 'refused', status: null, answer: error.start, error: error.message }
        return noResponse('unreachable', describeConnectionError(error))
      }
    },
    [Symbol.asyncDispose]: () => sender[Symbol.asyncDispose](),
  }
}

/** Credentials in the target's own address (RFC 7617). */
function basic({ username, password }: URL): Header | undefined {
  if (username === '' && password === '') return undefined
  const both = [username, password].map(decodeUserinfo).join(':')
  return ['Authorization', `Basic ${Buffer.from(both).toString('base64')}`]
}

/** Header that relay adds. */
const ATTEMPT = 'X-Relay-Attempt'

/** Headers for a target: the sender's, in their order and spelling, and the number of the attempt. */
function forwardedHeaders(all: readonly Header[], attempt: number): Header[] {
  const headers = all.filter(
    // A header that cannot be sent would block the delivery for ever.
    (header) => header[0].toLowerCase() !== ATTEMPT.toLowerCase() && isSendable(header),
  )
  return [...headers, [ATTEMPT, String(attempt)]]
}

/**
 * Most bytes of a response's header names and values that are stored, the same as for its body. No web framework's
 * response has more.
 */
const MAX_HEADER_BYTES = 4096
/** Headers whose values are credentials for the target. */
const SECRET = /^(?:set-cookie2?|authorization|authentication-info|proxy-.*)$/i
/**
 * Replacement for such a value: that it existed explains a session, while its value would let others take the session
 * over.
 */
const NOT_KEPT = '(not stored)'

/** Headers of a target's response that are stored with an attempt: the first ones, without credentials. */
function answerHeaders(headers: readonly Header[]): readonly Header[] {
  let room = MAX_HEADER_BYTES
  const kept: Header[] = []
  for (const [name, value] of headers) {
    const shown = SECRET.test(name) ? NOT_KEPT : value
    room -= name.length + shown.length
    if (room < 0) break
    kept.push([name, shown])
  }
  return kept
}
