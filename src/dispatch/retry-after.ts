/**
 * Milliseconds that a `Retry-After` header asks to wait: seconds or an HTTP date (RFC 9110 section 10.2.3). A date is
 * counted from the answer's own `Date`, if it has one: the two clocks may differ. Undefined when it says neither.
 */
export function parseRetryAfter(
  text: string | undefined,
  date: string | undefined,
  now: number,
): number | undefined {
  if (text === undefined) return undefined
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const until = text.endsWith(' GMT') ? Date.parse(text) : NaN
  if (Number.isNaN(until)) return undefined
  const from = Date.parse(date ?? '')
  return Math.max(0, until - (Number.isNaN(from) ? now : from))
}
