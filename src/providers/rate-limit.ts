import type { Incoming } from './fetch.js'

/** What a status line and headers say. */
export interface Headed {
  readonly status: number
  readonly headers: Incoming['headers']
}

/** GitHub: without further word, a secondary limit asks for at least a minute. */
const SILENT_WAIT = 60
/** No sensible limit asks for longer than a day. */
const LONGEST_WAIT = 86_400

/**
 * Whole seconds to wait when the answer is a rate limit, otherwise undefined. GitHub answers both of its limits with
 * 403 or 429: the primary one has `x-ratelimit-remaining: 0` and the instant it ends, the secondary one `retry-after`
 * or only the words (docs.github.com, "Rate limits for the REST API").
 */
export function retryAfterOf({ status, headers }: Headed, said: string): number | undefined {
  const spent = headers.get('x-ratelimit-remaining') === '0'
  const limited =
    status === 429 ||
    (status === 403 && (spent || headers.has('retry-after') || /secondary rate limit/i.test(said)))
  if (!limited) return undefined
  const wait = asked(headers) ?? (spent ? untilReset(headers) : undefined) ?? SILENT_WAIT
  return Math.min(Math.max(Math.ceil(wait), 1), LONGEST_WAIT)
}

/** `Retry-After`: seconds or a date (RFC 9110 section 10.2.3). */
function asked(headers: Incoming['headers']): number | undefined {
  const text = headers.get('retry-after') ?? ''
  if (/^\d+$/.test(text)) return Number(text)
  return secondsUntil(Date.parse(text), headers)
}

function untilReset(headers: Incoming['headers']): number | undefined {
  const text = headers.get('x-ratelimit-reset') ?? ''
  return /^\d+$/.test(text) ? secondsUntil(Number(text) * 1000, headers) : undefined
}

/** Counted from the answer's own date: this machine's clock may be wrong. */
function secondsUntil(instant: number, headers: Incoming['headers']): number | undefined {
  const now = Date.parse(headers.get('date') ?? '')
  const seconds = (instant - (Number.isNaN(now) ? Date.now() : now)) / 1000
  return Number.isNaN(seconds) ? undefined : seconds
}
