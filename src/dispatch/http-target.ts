import { decodeUserinfo } from '../base/address.js'
import { isTimeout } from '../base/wait.js'
import type { Clock } from '../base/time.js'
import { type Header, isConnectionHeader, isSendable, endToEndHeaders } from '../http/headers.js'
import type { Entry, AttemptOutcome } from '../journal/types.js'
import type { ConnectionOptions } from '../net/agent.js'
import { describeConnectionError, parseRetryAfter } from '../net/errors.js'
import { NotHttpError } from '../net/client.js'
import { DeliverySender, NoResponse, type PostRequest } from '../net/delivery-sender.js'
import type { WebhookRequest } from '../senders/request.js'
import { redirectTarget } from '../net/redirect.js'
import { TlsError } from '../net/tls.js'
import {
  type DeliveryResult,
  interruptedBy,
  noResponse,
  type OpenTarget,
  type Reply,
  SENT_AGAIN,
} from './target.js'

/** Converts an entry so that its receiver can verify it now, without the headers of the original connection. */
export type RequestBuilder = (entry: Entry) => Pick<WebhookRequest, 'headers' | 'body' | 'query' | 'path'>

/**
 * Outcome of an HTTP status. 3xx is final: redirects are not followed, since the bytes were signed for one receiver.
 */
function statusOutcome(status: number): AttemptOutcome {
  if (status >= 200 && status < 300) return 'succeeded'
  return (status >= 500 && status < 600) || [408, 425, 429].includes(status) ? 'retry' : 'refused'
}

export interface HttpTargetOptions {
  readonly clock: Clock
  /** Milliseconds of an attempt, from connecting to the end of the response. Infinity for no limit. */
  readonly limit: number
  /** Default: the delivery as received. */
  readonly sendable?: RequestBuilder | undefined
  /** Headers that replace those of the delivery. Default: none. */
  readonly headers?: readonly Header[] | undefined
  readonly connection?: ConnectionOptions | undefined
  /** True if the answer is passed on to the sender. Default: false. */
  readonly replies?: boolean
}

/**
 * Opens an HTTP target, which posts deliveries with the recorded bytes and headers through {@link DeliverySender}. If
 * the response is not HTTP, the delivery has failed: sending it again to that port would change nothing.
 */
export function openHttpTarget(
  url: string,
  {
    clock,
    limit,
    sendable = ({ headers, body, query }) => ({ headers: endToEndHeaders(headers), body, query }),
    headers: added = [],
    connection = {},
    replies = false,
  }: HttpTargetOptions,
): OpenTarget {
  const own = [...basic(new URL(url)), ...added]
  // A request has only one such header (RFC 9110 section 11.6.2). What the user sets takes precedence over the sender's.
  const replaced = new Set(own.map(([name]) => name.toLowerCase()))
  const sender = new DeliverySender(url, limit, connection)
  let hasAnswered = false
  return {
    async deliver(entry, attempt, { signal }) {
      // Called outside the try: a failure here is not the target's.
      const { headers: all, body, query, path } = sendable(entry)
      const rest = all.filter(([name]) => !replaced.has(name.toLowerCase()))
      const sent = [...forwardedHeaders(rest, attempt), ...own]
      try {
        const { status, header, lines, start, whole } = await sender.post(
          { lines: sent, body, query, path },
          signal,
        )
        hasAnswered = true
        const elsewhere = redirectTarget({ status, header }, url)
        return {
          outcome: statusOutcome(status),
          status,
          answer: start,
          headers: answerHeaders(lines),
          ...(replies && { reply: replyOf(status, lines, whole) }),
          error:
            elsewhere === undefined
              ? null
              : `answered ${status}, a redirect to ${elsewhere} that is not followed: forward there instead`,
          retryAfter: parseRetryAfter(header, clock()),
        }
      } catch (error) {
        if (signal.aborted) return interruptedBy(signal)
        return failureOf(error, limit, hasAnswered && url.startsWith('http:'))
      }
    },
    [Symbol.asyncDispose]: () => sender[Symbol.asyncDispose](),
  }
}

/** Result of an attempt without an answer. @param speaksHttp true for a target that has answered without TLS */
function failureOf(error: unknown, limit: number, speaksHttp: boolean): DeliveryResult {
  if (error instanceof NotHttpError)
    return { outcome: 'refused', status: null, answer: error.start, error: error.message }
  const { how, cause }: Pick<NoResponse, 'how' | 'cause'> =
    error instanceof NoResponse ? error : { how: 'unreached', cause: error }
  const within = `within ${limit / 1000} s`
  if (how === 'unanswered') return noResponse('timed out', `no answer ${within}`)
  // The advice to use TLS would be wrong.
  const known = speaksHttp && cause instanceof TlsError ? cause.cause : cause
  const why = isTimeout(cause) ? `no connection ${within}` : describeConnectionError(known)
  const isStale = how === 'stale'
  const result = noResponse('unreachable', isStale ? why + SENT_AGAIN : why)
  return { ...result, isBroken: how === 'broken', isStale }
}

/** Answer for the sender. Undefined if its body is too long, or did not arrive whole. */
function replyOf(status: number, lines: readonly Header[], whole: Uint8Array | undefined): Reply | undefined {
  const headers = endToEndHeaders(lines).filter(
    (header) => !SECRET.test(header[0]) && !isConnectionHeader(header[0]) && isSendable(header),
  )
  return whole && { status, headers, body: whole }
}

/** A request of another method than POST, which is no delivery. */
export interface Question extends Omit<PostRequest, 'lines'> {
  readonly method: string
  readonly headers: readonly Header[]
}

/**
 * Passes a question on to a target, once, on a connection of its own, and returns the answer for the sender. Undefined
 * if there is none within the time limit in milliseconds.
 */
export async function askHttpTarget(
  url: string,
  { headers, body, query, method }: Question,
  { limit, headers: added = [], connection }: Pick<HttpTargetOptions, 'limit' | 'headers' | 'connection'>,
  signal: AbortSignal,
): Promise<Reply | undefined> {
  const own = [...basic(new URL(url)), ...added]
  const replaced = new Set(own.map(([name]) => name.toLowerCase()))
  const kept = endToEndHeaders(headers).filter(
    (header) =>
      !replaced.has(header[0].toLowerCase()) && !isConnectionHeader(header[0]) && isSendable(header),
  )
  await using sender = new DeliverySender(url, limit, connection)
  try {
    const sent = { method, lines: [...kept, ...own], body, query }
    const { status, lines, whole } = await sender.post(sent, signal)
    return replyOf(status, lines, whole)
  } catch {
    return undefined
  }
}

/** Credentials in the target's own address (RFC 7617). */
function basic({ username, password }: URL): Header[] {
  if (username === '' && password === '') return []
  const both = [username, password].map(decodeUserinfo).join(':')
  return [['Authorization', `Basic ${Buffer.from(both).toString('base64')}`]]
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

/**
 * Headers of a target's response that are stored with an attempt: the first ones, without credentials, and wherever it
 * is, the address of a redirect.
 */
function answerHeaders(headers: readonly Header[]): readonly Header[] {
  const sizes = headers.map(([name, value]) => name.length + (SECRET.test(name) ? NOT_KEPT : value).length)
  const isFirst = (i: number): boolean => /^location$/i.test(headers[i]?.[0] ?? '')
  const order = [...headers.keys()].toSorted((one, other) => Number(isFirst(other)) - Number(isFirst(one)))
  const kept = new Set<number>()
  let room = MAX_HEADER_BYTES
  for (const i of order) {
    room -= sizes[i] ?? 0
    if (room < 0) break
    kept.add(i)
  }
  return headers.flatMap(([name, value], i): Header[] =>
    kept.has(i) ? [[name, SECRET.test(name) ? NOT_KEPT : value]] : [],
  )
}
