// Consequences of an attempt's result for its forward.
import { RelayError } from '../base/errors.js'
import type { Limits } from '../base/seams.js'
import type { Clock } from '../base/time.js'
import { jittered, type Random } from '../base/wait.js'
import type { AttemptOutcome, Forward } from '../journal/types.js'
import { MAX_RETRY_AFTER_MS } from './queue.js'
import type { DeliveryResult } from './target.js'

interface RetryTimes {
  readonly limits: Pick<Limits, 'retries'>
  readonly random: Random
  readonly clock: Clock
}

/** Status of a forward after an attempt. After an interrupted one it waits, whatever its age. */
export function nextForward(
  { tries, since, due }: Forward,
  result: DeliveryResult,
  hasReached: boolean,
  { limits, random, clock }: RetryTimes,
): Forward {
  const { outcome, status, error, retryAfter = 0 } = result
  if (outcome === 'succeeded') return { status: 'succeeded', tries, since }
  const reason = error ?? `answered ${status}`
  if (outcome === 'refused') return { status: 'failed', tries, since, reason }
  if (!hasFailed(result, hasReached))
    return { status: 'waiting', tries, since, ...(due !== undefined && { due }) }
  const own = limits.retries[tries]
  if (own === undefined)
    return { status: 'failed', tries: tries + 1, since, reason: `${reason}, ${tries + 1} times` }
  const delay = Math.max(jittered(own, random), Math.min(retryAfter, MAX_RETRY_AFTER_MS))
  return { status: 'waiting', tries: tries + 1, since, due: clock() + delay }
}

/** Outcomes that show that a target works. */
export const ANSWERED: ReadonlySet<AttemptOutcome> = new Set(['succeeded', 'retry', 'refused'])

/** True for a failed attempt after which a delivery is sent again: it has reached the target, or may have. */
export function hasFailed({ outcome }: DeliveryResult, hasReached: boolean): boolean {
  return outcome === 'retry' || hasReached
}

/** Result for a target that rejected. That is a defect, and must not stay first in the queue for ever. */
export function defect(error: unknown): DeliveryResult {
  const why = error instanceof RelayError ? error.message : 'relay failed to send it'
  return { outcome: 'refused', status: null, answer: new Uint8Array(), error: why }
}

/** Makes `3 deliveries older than 24 h failed`. */
export function expiredText(count: number): string {
  return `${count} ${count === 1 ? 'delivery' : 'deliveries'} older than 24 h failed`
}
