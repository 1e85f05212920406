import type { OutboundResponse } from '../net/client.js'
import { millisecondsUntil, parseRetryAfter } from '../net/errors.js'

/** Status and headers of an answer. */
export type Headed = Pick<OutboundResponse, 'status' | 'header'>

/** Milliseconds. GitHub asks to wait at least a minute after a secondary limit that names no time. */
const DEFAULT_WAIT_MS = 60_000
/** Seconds; no sensible limit asks for longer than a day. */
const MAX_WAIT = 86_400

/**
 * Whole seconds to wait when the answer is a rate limit, otherwise undefined. GitHub answers both of its limits with
 * 403 or 429: the primary one has `x-ratelimit-remaining: 0` and the instant it ends, the secondary one `retry-after`
 * or only a message (docs.github.com, "Rate limits for the REST API").
 */
export function retryAfterOf({ status, header }: Headed, message: string): number | undefined {
  const spent = header('x-ratelimit-remaining') === '0'
  const limited =
    status === 429 ||
    (status === 403 &&
      (spent || header('retry-after') !== undefined || /secondary rate limit/i.test(message)))
  if (!limited) return undefined
  const now = Date.now()
  const wait =
    parseRetryAfter(header, now) ?? (spent ? untilReset(header, now) : undefined) ?? DEFAULT_WAIT_MS
  return Math.min(Math.max(Math.ceil(wait / 1000), 1), MAX_WAIT)
}

function untilReset(header: Headed['header'], now: number): number | undefined {
  const text = header('x-ratelimit-reset') ?? ''
  return /^\d+$/.test(text) ? millisecondsUntil(Number(text) * 1000, header, now) : undefined
}
