import type { Forward, Outcome } from '../journal/forward.js'
import { MAX_TRIES } from './backoff.js'
import type { DeliveryResult } from './target.js'

/** How long a delivery waits for a target that cannot be reached or is no longer configured: 24 hours. */
export const MAX_AGE_MS = 86_400_000

/** The outcome of an HTTP status. 3xx is final: redirects are not followed, since the bytes were signed for one receiver. */
export function statusOutcome(status: number): Outcome {
  if (status >= 200 && status < 300) return 'succeeded'
  return status >= 500 || [408, 425, 429].includes(status) ? 'retry' : 'refused'
}

/** EX_TEMPFAIL of sysexits(3), with which mail filters and similar programs ask to be run again later. */
const TEMPORARY_FAILURE = 75

/**
 * The outcome of a command's exit code. A failed command is not run again: it may have done half of its work, and a deploy
 * must not run five times because its last line failed. A command that asks for another run exits with 75.
 */
export function exitOutcome(code: number): Outcome {
  if (code === 0) return 'succeeded'
  return code === TEMPORARY_FAILURE ? 'retry' : 'refused'
}

/** The status of a forward after an attempt that ended at `now`, by the clock that ages are counted by. */
export function nextStatus(before: Forward, result: DeliveryResult, now: number): Forward {
  const { tries, since } = before
  switch (result.outcome) {
    case 'succeeded':
      return { status: 'succeeded', tries, since }
    case 'refused':
      return { status: 'failed', tries, since, reason: reasonOf(result) }
    case 'retry':
      return tries + 1 < MAX_TRIES
        ? { status: 'waiting', tries: tries + 1, since }
        : { status: 'failed', tries: tries + 1, since, reason: `${reasonOf(result)}, ${MAX_TRIES} times` }
    case 'unreachable':
    case 'timed out':
      return now - since < MAX_AGE_MS ? { status: 'waiting', tries, since } : expired(before)
    case 'killed':
    default:
      return { status: 'waiting', tries, since }
  }
}

/** The status of a forward that has waited for {@link MAX_AGE_MS}. */
export function expired({ tries, since }: Forward): Forward {
  return { status: 'failed', tries, since, reason: 'older than 24 h' }
}

function reasonOf({ status, error }: DeliveryResult): string {
  return error ?? `answered ${status}`
}
