/** Returns a number from 0 (inclusive) to 1 (exclusive), like `Math.random`. */
export type Random = () => number

const MIN_DELAY_MS = 1000
const MAX_DELAY_MS = 60_000

/** Milliseconds until the next attempt after `failures` failures in a row: 1, 2, 4 … 60 s, ±20 %. */
export function probeDelay(failures: number, random: Random): number {
  return jittered(Math.min(MIN_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS), random)
}

/** A program on this machine is restarted many times a minute while it is written, and a refused connection costs nothing. */
const NEARBY_DELAY_MS = 1000
/** Each attempt is a row of the journal, for up to 24 hours. */
const NEARBY_LATER_MS = 5000
const NEARBY_SOON_MS = 60_000

/**
 * The same for a target on this machine that has been down for `downFor` milliseconds: 1 s in the first minute, then 5 s,
 * ±20 %.
 */
export function nearbyProbeDelay(downFor: number, random: Random): number {
  return jittered(downFor < NEARBY_SOON_MS ? NEARBY_DELAY_MS : NEARBY_LATER_MS, random)
}

/** `ms` ±20 %, so that many waiting callers do not retry at the same moment. */
export function jittered(ms: number, random: Random): number {
  return Math.round(ms * (0.8 + 0.4 * random()))
}
