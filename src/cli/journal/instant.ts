import { RelayError } from '../../base/errors.js'
import { parseDuration } from '../../base/time.js'

/** A date, or a date and time with or without its zone (RFC 3339, whose `T` may be a space). */
const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/

/**
 * Reads `--since`: so long ago (`1h`), an instant (`2026-01-31T12:00Z`; local time without a zone), or `now`.
 * In milliseconds.
 * @throws RelayError `usage`
 */
export function parseSince(text: string, now: number): number {
  if (text === 'now') return now
  const ago = parseDuration(text)
  const at = ago === undefined ? parseInstant(text) : now - ago
  if (!Number.isNaN(at)) return at
  throw new RelayError(
    'usage',
    '--since: must be a duration such as 1h, a time such as 2026-01-31T12:00, or now',
  )
}

/** A date alone would be read as UTC. */
function parseInstant(text: string): number {
  if (!ISO.test(text) || !isDay(text.slice(0, 10))) return Number.NaN
  return Date.parse(text.length === 10 ? `${text}T00:00` : text.replace(' ', 'T'))
}

/** False for what the calendar does not have, such as 31 February, which would be read as a day in March. */
function isDay(date: string): boolean {
  const at = Date.parse(`${date}T00:00Z`)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date)
}

/** `2026-01-31 12:00:00`, local. */
export function localTime(at: number): string {
  const zone = new Date(at).getTimezoneOffset() * 60_000
  return new Date(at - zone).toISOString().slice(0, 19).replace('T', ' ')
}
