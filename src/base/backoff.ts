/** A number from 0 (inclusive) to 1, as `Math.random` gives. */
export type Random = () => number

/** Milliseconds. */
const FIRST_PROBE = 1000
const LAST_PROBE = 60_000

/** Milliseconds until what could not be reached `failures` times in a row is tried again: 1, 2, 4 … 60 s, ±20 %. */
export function probeDelay(failures: number, random: Random): number {
  return jittered(Math.min(FIRST_PROBE * 2 ** (failures - 1), LAST_PROBE), random)
}

/** `ms` ±20 %, so that many who wait for the same do not all come at once. */
export function jittered(ms: number, random: Random): number {
  return Math.round(ms * (0.8 + 0.4 * random()))
}
