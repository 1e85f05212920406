/** Returns the current instant in milliseconds since 1970-01-01 UTC. A parameter wherever time decides something. */
export type Clock = () => number

export const systemClock: Clock = () => Date.now()

/** Milliseconds since the process started. It never goes back, and stands still while the machine sleeps. */
export const monotonicClock: Clock = () => performance.now()

const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Parses a duration such as `10s`, `5m`, `2h` or `30d`, in milliseconds. Undefined if it is malformed, zero, or beyond a safe
 * integer.
 */
export function parseDuration(text: string): number | undefined {
  const [, amount = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const ms = Number(amount) * (UNITS[unit] ?? 0)
  return ms > 0 && Number.isSafeInteger(ms) ? ms : undefined
}

/** Formats a duration from {@link parseDuration} in the largest unit in which it is a whole number. */
export function formatDuration(ms: number): string {
  const [unit = 's', length = 1000] =
    Object.entries(UNITS).findLast(([, length]) => ms >= length && ms % length === 0) ?? []
  return `${ms / length}${unit}`
}

const DAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const DAY_MS = 86_400_000
/** `yesterday`, `mon`, `friday 9:30`, `14:00`. */
const DAY_AND_TIME = /^(today|yesterday|[a-z]{3,9})?(?:(?:^|[ ,]+)(\d{1,2}):(\d{2})(?::(\d{2}))?)?$/i
const AGO = /^(\d{1,9}) ?(sec|second|min|minute|hour|day|week)s?(?: ago)?$/i
const AGO_UNITS: Record<string, number> = {
  sec: 1000,
  second: 1000,
  min: 60_000,
  minute: 60_000,
  hour: 3_600_000,
  day: DAY_MS,
  week: 7 * DAY_MS,
}

/**
 * Parses an instant as people say it, in local time, to milliseconds: `today`, `yesterday`, a day of the week, whose last one
 * counts, today's included; one of them with a time (`yesterday 14:00`); a time alone, of today, or of yesterday if it is still
 * to come; `2 hours ago`. Undefined for anything else.
 */
export function parseSpoken(text: string, now: number): number | undefined {
  const [, amount, unit = ''] = AGO.exec(text) ?? []
  if (amount !== undefined) return now - Number(amount) * (AGO_UNITS[unit.toLowerCase()] ?? 0)
  const [whole, word, hours, minutes = '0', seconds = '0'] = DAY_AND_TIME.exec(text) ?? []
  if (!whole || Number(hours ?? 0) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined
  const back = word === undefined ? 0 : daysBack(word.toLowerCase(), new Date(now).getDay())
  if (back === undefined) return undefined
  const on = (days: number): number => {
    const at = new Date(now)
    at.setDate(at.getDate() - days)
    return at.setHours(Number(hours ?? 0), Number(minutes), Number(seconds), 0)
  }
  return word === undefined && on(0) > now ? on(1) : on(back)
}

function daysBack(word: string, today: number): number | undefined {
  if (word === 'today') return 0
  if (word === 'yesterday') return 1
  const day = DAYS.findIndex((each) => each === word || each.slice(0, 3) === word)
  return day === -1 ? undefined : (today - day + 7) % 7
}
