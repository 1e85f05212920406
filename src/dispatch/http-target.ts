import type { Clock } from '../base/time.js'
import type { Entry, Header } from '../journal/delivery.js'
import { describeConnectionError } from '../base/connection-error.js'
import { forwardedHeaders } from './forwarded-headers.js'
import { openPoster } from './open-poster.js'
import { statusOutcome } from './policy.js'
import { parseRetryAfter } from './retry-after.js'
import { type OpenTarget, type Result, unanswered } from './target.js'
import { isTimeout } from './time-limit.js'

export interface HttpTargetOptions {
  readonly clock: Clock
  /** Milliseconds for all of an attempt, from connecting to the end of the answer. */
  readonly limit: number
}

/**
 * Posts deliveries to an address: the recorded bytes and headers, once per attempt. Redirects are not followed. The
 * answer's status decides as soon as it is there; what then goes wrong with the answer's text changes nothing. Any
 * address but this machine's own is reached through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name.
 */
export function openHttpTarget(url: string, { clock, limit }: HttpTargetOptions): OpenTarget {
  const { username, password } = new URL(url)
  const own = username === '' && password === '' ? [] : [basic(username, password)]
  const poster = openPoster(url, { limit })

  const post = async (entry: Entry, attempt: number, signal: AbortSignal): Promise<Result> => {
    const sent = [...forwardedHeaders(entry.headers, attempt), ...own]
    const { status, header, start } = await poster.post(sent, entry.body, signal)
    return {
      outcome: statusOutcome(status),
      status,
      answer: start,
      error: null,
      retryAfter: parseRetryAfter(header('retry-after'), header('date'), clock()),
    }
  }

  return {
    async deliver(entry, attempt, { signal }) {
      try {
        return await post(entry, attempt, signal)
      } catch (error) {
        if (signal.aborted) return unanswered('killed', 'relay was stopped')
        if (isTimeout(error)) return unanswered('timed out', `no answer within ${limit / 1000} s`)
        return unanswered('unreachable', describeConnectionError(error))
      }
    },
    [Symbol.asyncDispose]: () => poster[Symbol.asyncDispose](),
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
