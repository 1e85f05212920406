import { isTimeout } from '../base/time-limit.js'
import type { Clock } from '../base/time.js'
import type { Header } from '../http/headers.js'
import type { Entry, Outcome } from '../journal/types.js'
import { describeConnectionError, parseRetryAfter } from '../net/errors.js'
import { DeliverySender, NotHttpError } from '../net/delivery-sender.js'
import { answerHeaders } from './answer-headers.js'
import { forwardedHeaders } from './forwarded-headers.js'
import { type OpenTarget, type DeliveryResult, unanswered } from './target.js'

/** The outcome of an HTTP status. 3xx is final: redirects are not followed, since the bytes were signed for one receiver. */
function statusOutcome(status: number): Outcome {
  if (status >= 200 && status < 300) return 'succeeded'
  return status >= 500 || [408, 425, 429].includes(status) ? 'retry' : 'refused'
}

export interface HttpTargetOptions {
  readonly clock: Clock
  /** Time limit of an attempt in milliseconds, from connecting to the end of the answer. */
  readonly limit: number
}

/**
 * Posts deliveries to an address with the recorded bytes and headers, through {@link DeliverySender}. If the answer is not HTTP,
 * the delivery has failed: sending it again to that port would change nothing.
 */
export function openHttpTarget(url: string, { clock, limit }: HttpTargetOptions): OpenTarget {
  const { username, password } = new URL(url)
  const own = username === '' && password === '' ? [] : [basic(username, password)]
  const sender = new DeliverySender(url, { limit })

  const post = async (entry: Entry, attempt: number, signal: AbortSignal): Promise<DeliveryResult> => {
    const sent = [...forwardedHeaders(entry.headers, attempt), ...own]
    const { status, header, lines, start } = await sender.post(sent, entry.body, signal)
    return {
      outcome: statusOutcome(status),
      status,
      answer: start,
      headers: answerHeaders(lines()),
      error: null,
      retryAfter: parseRetryAfter(header, clock()),
    }
  }

  return {
    async deliver(entry, attempt, { signal }) {
      try {
        return await post(entry, attempt, signal)
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
function basic(username: string, password: string): Header {
  const both = `${decoded(username)}:${decoded(password)}`
  return ['Authorization', `Basic ${Buffer.from(both).toString('base64')}`]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
