import type { HeaderReader } from './agent.js'

/**
 * Milliseconds to wait according to `Retry-After`: seconds or an HTTP date (RFC 9110 section 10.2.3). Undefined for anything
 * else.
 */
export function parseRetryAfter(header: HeaderReader, now: number): number | undefined {
  const text = header('retry-after') ?? ''
  if (/^\d+$/.test(text)) return Number(text) * 1000
  return text.endsWith(' GMT') ? millisecondsUntil(Date.parse(text), header, now) : undefined
}

/**
 * Milliseconds until an instant that a response names; 0 if it has passed. Counts from the response's own `Date` if it has one,
 * since the clocks may differ. Undefined for NaN.
 */
export function millisecondsUntil(instant: number, header: HeaderReader, now: number): number | undefined {
  const date = Date.parse(header('date') ?? '')
  const wait = instant - (Number.isNaN(date) ? now : date)
  return Number.isNaN(wait) ? undefined : Math.max(0, wait)
}
