/** Formats `12:04:11`, in the time zone of this machine. */
export function timeOfDay(at: number): string {
  return new Date(at).toTimeString().slice(0, 8)
}

/** Formats `2026-01-31 12:00:00`, in local time. */
export function localTime(at: number): string {
  const zone = new Date(at).getTimezoneOffset() * 60_000
  return new Date(at - zone).toISOString().slice(0, 19).replace('T', ' ')
}

/** Returns the day of {@link localTime}. */
export function localDay(at: number): string {
  return localTime(at).slice(0, 10)
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const WEEK_MS = 6 * 86_400_000

/** Formats a time in a sentence: for a person as {@link spokenInstant}, otherwise as {@link localTime}. */
export function shownTime(at: number, isTerminal: boolean, now = Date.now()): string {
  return isTerminal ? spokenInstant(at, now) : localTime(at)
}

/**
 * Formats `12:04:11 today, 2 min ago`, `Tue 17 Nov 12:04:11, 5 days ago`, `31 Jan 2025 12:04:11, 660 days ago`, `…, in
 * 29 days`.
 */
export function spokenInstant(at: number, now: number): string {
  const date = new Date(at)
  const time = timeOfDay(at)
  const distance = at > now ? `in ${roughly(at - now)}` : `${roughly(now - at)} ago`
  if (localDay(at) === localDay(now)) return `${time} today, ${distance}`
  const day = `${date.getDate()} ${MONTHS[date.getMonth()]}`
  const isNear = Math.abs(now - at) < WEEK_MS
  return `${isNear ? `${DAYS[date.getDay()]} ${day}` : `${day} ${date.getFullYear()}`} ${time}, ${distance}`
}

/** Formats a duration in the largest unit that it has two or more of: `90 min`, `3 h`, `29 days`. */
export function roughly(ms: number): string {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 2) return `${Math.floor(ms / 1000)} s`
  if (minutes < 120) return `${minutes} min`
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`
}

/** Formats a local time in a column: `12:04:11` today, `Tue 12:04` within a week, `31 Jan 12:04`, `31 Jan 2025`. */
export function spokenTime(at: number, now: number): string {
  const date = new Date(at)
  const time = timeOfDay(at)
  if (localDay(at) === localDay(now)) return time
  const day = `${date.getDate()} ${MONTHS[date.getMonth()]}`
  if (date.getFullYear() !== new Date(now).getFullYear()) return `${day} ${date.getFullYear()}`
  const age = now - at
  return `${age > 0 && age < WEEK_MS ? DAYS[date.getDay()] : day} ${time.slice(0, 5)}`
}
