/** Returns a number from 0 (inclusive) to 1 (exclusive), like `Math.random`. */
export type Random = () => number

const MIN_DELAY_MS = 1000
const MAX_DELAY_MS = 60_000

/** Milliseconds until the next attempt after `failures` failures in a row: 1, 2, 4 … 60 s, ±20 %. */
export function probeDelay(failures: number, random: Random): number {
  return jittered(Math.min(MIN_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS), random)
}

/** `ms` ±20 %, so that many waiting callers do not retry at the same moment. */
export function jittered(ms: number, random: Random): number {
  return Math.round(ms * (0.8 + 0.4 * random()))
}
