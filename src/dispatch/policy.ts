import type { HandOn, Outcome } from '../journal/hand-on.js'
import { MAX_TRIES } from './backoff.js'
import type { Result } from './target.js'

/** How long a delivery waits for a target that cannot be reached, or is not configured any more: 24 hours. */
export const MAX_AGE_MS = 86_400_000

/** What an HTTP status asks for. 3xx is final: redirects are not followed, since the bytes were signed for one receiver. */
export function statusOutcome(status: number): Outcome {
  if (status >= 200 && status < 300) return 'succeeded'
  return status >= 500 || [408, 425, 429].includes(status) ? 'retry' : 'refused'
}

/** EX_TEMPFAIL of sysexits(3), by which mail filters and their like ask to be run again later. */
const TEMPORARY_FAILURE = 75

/**
 * What a command's exit code asks for. A failed command is not run again: it may have done half of its work, and a deploy
 * that runs five times because its last line failed is nobody's wish. A command that wants another try exits with 75.
 */
export function exitOutcome(code: number): Outcome {
  if (code === 0) return 'succeeded'
  return code === TEMPORARY_FAILURE ? 'retry' : 'refused'
}

/** Where the hand-on of a delivery stands after an attempt that ended at `now`. */
export function standAfter(before: HandOn, result: Result, now: number): HandOn {
  const { tries, since } = before
  switch (result.outcome) {
    case 'succeeded':
      return { state: 'succeeded', tries, since }
    case 'refused':
      return { state: 'failed', tries, since, reason: said(result) }
    case 'retry':
      return tries + 1 < MAX_TRIES
        ? { state: 'waiting', tries: tries + 1, since }
        : { state: 'failed', tries: tries + 1, since, reason: `${said(result)}, ${MAX_TRIES} times` }
    case 'unreachable':
    case 'timed out':
      return now - since < MAX_AGE_MS ? { state: 'waiting', tries, since } : tooOld(before)
    case 'killed':
    default:
      return { state: 'waiting', tries, since }
  }
}

/** Where the hand-on of a delivery stands that has waited for {@link MAX_AGE_MS}. */
export function tooOld({ tries, since }: HandOn): HandOn {
  return { state: 'failed', tries, since, reason: 'older than 24 h' }
}

function said({ status, error }: Result): string {
  return error ?? `answered ${status}`
}
