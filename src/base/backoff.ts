import { LIMITS } from './seams.js'

/** Returns a number from 0 (inclusive) to 1 (exclusive), like `Math.random`. */
export type Random = () => number

const MAX_DELAY_MS = 60_000

/** Milliseconds until the next attempt after `failures` failures in a row: 1, 2, 4 … 60 s, ±20 %. */
export function probeDelay(failures: number, random: Random, first = LIMITS.probe): number {
  return jittered(Math.min(first * 2 ** (failures - 1), MAX_DELAY_MS), random)
}

/** Each attempt is a row of the journal, for up to 24 hours. */
const NEARBY_LATER_MS = 5000
const NEARBY_SOON_MS = 60_000

/**
 * The same for a target on this machine that has been down for `downFor` milliseconds: 1 s in the first minute, then 5 s,
 * ±20 %. Such a program is restarted many times a minute while it is written, and a refused connection costs nothing.
 */
export function nearbyProbeDelay(downFor: number, random: Random, first = LIMITS.probe): number {
  return jittered(downFor < NEARBY_SOON_MS ? first : NEARBY_LATER_MS, random)
}

/** `ms` ±20 %, so that many waiting callers do not retry at the same moment. */
export function jittered(ms: number, random: Random): number {
  return Math.round(ms * (0.8 + 0.4 * random()))
}
