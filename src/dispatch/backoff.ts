import { jittered, type Random } from '../base/backoff.js'
import { LIMITS } from '../base/seams.js'

/** An answer may ask for a longer wait, up to this many milliseconds: the deliveries behind it wait too. */
const MAX_RETRY_AFTER = 60_000

/** Number of attempts at a target that asks for a retry each time. */
export const MAX_TRIES = LIMITS.retries.length + 1

/**
 * Milliseconds until a delivery is sent again after the answer number `tries` that asked for a retry: 1, 4, 15, 40 s,
 * ±20 %, but not before the answer's `Retry-After`, which counts up to 60 s.
 */
export function retryDelay(
  tries: number,
  retryAfter: number | undefined,
  random: Random,
  delays = LIMITS.retries,
): number {
  const own = delays[Math.min(tries, delays.length) - 1] ?? 0
  return Math.max(jittered(own, random), Math.min(retryAfter ?? 0, MAX_RETRY_AFTER))
}
