const DAY_MS = 86_400_000

const MINUTE = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' })
const SECOND = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const YEAR = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })

/** Formats an instant in local time: `14:02:11` today, `yesterday 14:02`, `12 Nov 14:02`, `12 Nov 2025`. */
export function formatTime(at: number, now: number): string {
  const startOfDay = (time: number): number => new Date(time).setHours(0, 0, 0, 0)
  const days = Math.round((startOfDay(now) - startOfDay(at)) / DAY_MS)
  if (days === 0) return SECOND.format(at)
  if (days === 1) return `yesterday ${minuteTime(at)}`
  const isThisYear = new Date(at).getFullYear() === new Date(now).getFullYear()
  return isThisYear ? `${DAY.format(at)} ${minuteTime(at)}` : YEAR.format(at)
}

/** `14:02` in local time. */
export function minuteTime(at: number): string {
  return MINUTE.format(at)
}

/** Formats an instant to the millisecond, in local time with its offset: `2026-11-23 14:02:11.345 +05:30`. */
export function exactTime(at: number): string {
  const offset = -new Date(at).getTimezoneOffset()
  const local = new Date(at + offset * 60_000).toISOString()
  const hours = two(Math.trunc(Math.abs(offset) / 60))
  return `${local.slice(0, 10)} ${local.slice(11, 23)} ${offset < 0 ? '-' : '+'}${hours}:${two(Math.abs(offset) % 60)}`
}

/** `712 B`, `7.1 KiB`, `1.0 MiB`: in steps of 1,024. */
export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const isMega = bytes >= 1024 * 1000
  const amount = bytes / (isMega ? 1_048_576 : 1024)
  return `${amount.toFixed(amount < 100 ? 1 : 0)} ${isMega ? 'MiB' : 'KiB'}`
}

/** A duration in milliseconds: `38 ms`, `1.2 s`, `4 min`, `3 h`, `2 days`. */
export function formatMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 59.5 * 60_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 47.5 * 3_600_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / DAY_MS)} days`
}

/** `1 delivery`, `2 deliveries`, `1,000 deliveries`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`
}

/** A whole number with commas: `1,048,576`. */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US')
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
