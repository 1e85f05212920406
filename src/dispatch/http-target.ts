import { decodeUserinfo } from '../base/address.js'
import { isTimeout } from '../base/wait.js'
import type { Clock } from '../base/time.js'
import { type Header, isSendable, passedOn } from '../http/headers.js'
import type { Entry, Outcome } from '../journal/types.js'
import { describeConnectionError, parseRetryAfter } from '../net/errors.js'
import { NotHttpError } from '../net/client.js'
import { DeliverySender } from '../net/delivery-sender.js'
import { redirectTarget } from '../net/redirect.js'
import { type OpenTarget, unanswered } from './target.js'

/** An entry as its receiver can verify it now, without the headers of the connection on which it came. */
export type Sendable = (entry: Entry) => Pick<Entry, 'headers' | 'body'>

/** The outcome of an HTTP status. 3xx is final: redirects are not followed, since the bytes were signed for one receiver. */
function statusOutcome(status: number): Outcome {
  if (status >= 200 && status < 300) return 'succeeded'
  return status >= 500 || [408, 425, 429].includes(status) ? 'retry' : 'refused'
}

/**
 * Posts deliveries to an address with the recorded bytes and headers, through {@link DeliverySender}. If the answer is not HTTP,
 * the delivery has failed: sending it again to that port would change nothing. `limit`: milliseconds of an attempt, from connecting to
 * the end of the answer.
 */
export function openHttpTarget(
  url: string,
  {
    clock,
    limit,
    sendable = ({ headers, body }) => ({ headers: passedOn(headers), body }),
  }: { readonly clock: Clock; readonly limit: number; readonly sendable?: Sendable | undefined },
): OpenTarget {
  const own = basic(new URL(url))
  const sender = new DeliverySender(url, limit)
  return {
    async deliver(entry, attempt, { signal }) {
      // What cannot be sent is no failure of the target.
      const { headers: all, body } = sendable(entry)
      // A request has one (RFC 9110 section 11.6.2): that of a sender whose token is there gives way to the target's own.
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
        if (signal.aborted) return unanswered('killed', 'relay was stopped')
        if (isTimeout(error)) return unanswered('timed out', `no answer within ${limit / 1000} s`)
        if (error instanceof NotHttpError)
          return { outcome: 'refused', status: null, answer: error.start, error: error.message }
        return unanswered('unreachable', describeConnectionError(error))
      }
    },
    [Symbol.asyncDispose]: () => sender[Symbol.asyncDispose](),
  }
}

/** The user name and password of the target's own address (RFC 7617). */
function basic({ username, password }: URL): Header | undefined {
  if (username === '' && password === '') return undefined
  const both = [username, password].map(decodeUserinfo).join(':')
  return ['Authorization', `Basic ${Buffer.from(both).toString('base64')}`]
}

/** The header that relay adds. */
const ATTEMPT = 'X-Relay-Attempt'

/** The headers for a target: the sender's, in their order and spelling, and the number of the attempt. */
function forwardedHeaders(all: readonly Header[], attempt: number): Header[] {
  const headers = all.filter(
    // With one that is not sendable, the delivery would never be sent.
    (header) => header[0].toLowerCase() !== ATTEMPT.toLowerCase() && isSendable(header),
  )
  return [...headers, [ATTEMPT, String(attempt)]]
}

/** Bytes of names and values that are stored of an answer, as many as of its body: no web framework's answer has more. */
const MAX_HEADER_BYTES = 4096
/** Headers whose values are credentials for the target. */
const SECRET = /^(?:set-cookie2?|authorization|authentication-info|proxy-.*)$/i
/** In place of such a value: that it was there explains a session; what it was would let others take the session over. */
const NOT_KEPT = '(not stored)'

/** The headers of a target's answer that are stored with an attempt: the first ones, without credentials. */
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
