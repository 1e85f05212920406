/** The current instant in milliseconds since 1970-01-01 UTC. A parameter wherever time decides something. */
export type Clock = () => number

export const systemClock: Clock = () => Date.now()

const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Reads a duration such as `10s`, `5m`, `2h` or `30d` as milliseconds; undefined when it is none.
 * Zero and lengths beyond a safe integer are none either.
 */
export function parseDuration(text: string): number | undefined {
  const [, amount = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const ms = Number(amount) * (UNITS[unit] ?? 0)
  return ms > 0 && Number.isSafeInteger(ms) ? ms : undefined
}

/** A duration that {@link parseDuration} gave, in the largest unit that tells it exactly. */
export function formatDuration(ms: number): string {
  const [unit = 's', length = 1000] = Object.entries(UNITS).findLast(([, length]) => ms % length === 0) ?? []
  return `${ms / length}${unit}`
}
