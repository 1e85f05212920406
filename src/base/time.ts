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
  const [unit = 's', length = 1000] = Object.entries(UNITS).findLast(([, length]) => ms % length === 0) ?? []
  return `${ms / length}${unit}`
}
