import { RelayError } from '../base/errors.js'
import { parseDuration } from '../base/time.js'

/** A date, or a date and time with or without its zone (RFC 3339, whose `T` can be a space). */
const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/
/** Milliseconds since 1970, from 2001 on: what a page has of the instants that it shows. */
const MILLISECONDS = /^\d{12,15}$/

/**
 * Reads a filter's `name` (`--since`), in milliseconds: a duration ago (`1h`), an instant (`2026-01-31T12:00Z`; local time without
 * a zone; milliseconds since 1970), or `now`.
 * @throws RelayError `usage` that begins with the name.
 */
export function parseInstant(name: string, text: string, now: number): number {
  if (text === 'now') return now
  const ago = parseDuration(text)
  const at = ago === undefined ? fixedInstant(text) : now - ago
  if (!Number.isNaN(at)) return at
  throw new RelayError(
    'usage',
    `${name}: must be a duration such as 1h, a time such as 2026-01-31T12:00, or now`,
  )
}

/** Reads `--since`. `now` is Infinity: it means entries that do not exist yet, whatever any clock says. @throws as {@link parseInstant} */
export function parseSince(name: string, text: string, now: number): number {
  return text === 'now' ? Infinity : parseInstant(name, text, now)
}

function fixedInstant(text: string): number {
  if (MILLISECONDS.test(text)) return Number(text)
  if (!ISO.test(text) || !isDay(text.slice(0, 10))) return Number.NaN
  // JavaScript reads a date alone as UTC.
  return Date.parse(text.length === 10 ? `${text}T00:00` : text.replace(' ', 'T'))
}

/** False for a day that does not exist, such as 31 February, which Date.parse reads as a day in March. */
function isDay(date: string): boolean {
  const at = Date.parse(`${date}T00:00Z`)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date)
}
