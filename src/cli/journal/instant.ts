import { RelayError } from '../../base/errors.js'
import { parseDuration } from '../../base/time.js'

/** A date, or a date and time with or without its zone (RFC 3339, whose `T` can be a space). */
const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/

/**
 * Reads `--since`, in milliseconds: a duration ago (`1h`), an instant (`2026-01-31T12:00Z`; local time without a zone), or
 * `now`. `now` is Infinity: it means entries that do not exist yet, whatever any clock says.
 * @throws RelayError `usage`
 */
export function parseSince(text: string, now: number): number {
  if (text === 'now') return Infinity
  const ago = parseDuration(text)
  const at = ago === undefined ? parseInstant(text) : now - ago
  if (!Number.isNaN(at)) return at
  throw new RelayError(
    'usage',
    '--since: must be a duration such as 1h, a time such as 2026-01-31T12:00, or now',
  )
}

function parseInstant(text: string): number {
  if (!ISO.test(text) || !isDay(text.slice(0, 10))) return Number.NaN
  // JavaScript reads a date alone as UTC.
  return Date.parse(text.length === 10 ? `${text}T00:00` : text.replace(' ', 'T'))
}

/** False for a day that does not exist, such as 31 February, which Date.parse reads as a day in March. */
function isDay(date: string): boolean {
  const at = Date.parse(`${date}T00:00Z`)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date)
}

/** `2026-01-31 12:00:00`, local. */
export function localTime(at: number): string {
  const zone = new Date(at).getTimezoneOffset() * 60_000
  return new Date(at - zone).toISOString().slice(0, 19).replace('T', ' ')
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const WEEK_MS = 6 * 86_400_000

/** The local time as people say it: `12:04:11` today, `Tue 12:04` within a week, `31 Jan 12:04`, `31 Jan 2025`. */
export function spokenTime(at: number, now: number): string {
  const date = new Date(at)
  const today = new Date(now)
  const time = date.toTimeString()
  if (date.toDateString() === today.toDateString()) return time.slice(0, 8)
  const day = `${date.getDate()} ${MONTHS[date.getMonth()]}`
  if (date.getFullYear() !== today.getFullYear()) return `${day} ${date.getFullYear()}`
  const age = now - at
  return `${age > 0 && age < WEEK_MS ? DAYS[date.getDay()] : day} ${time.slice(0, 5)}`
}
