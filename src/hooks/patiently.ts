import { type Cancellable, sleep } from '../base/abort.js'
import { probeDelay } from '../base/backoff.js'
import { RelayError } from '../base/errors.js'

export interface PatienceOptions extends Cancellable {
  /** Called before a wait, with its reason and its length in milliseconds. */
  readonly onWait?: ((why: string, ms: number) => void) | undefined
}

/** Seconds: GitHub's primary rate limit starts again every hour. */
const MAX_WAIT = 3600
/** Waits for a rate limit in a row. */
const MAX_LIMITS = 10
/** Attempts of a call that the code host fails to answer. */
const MAX_ATTEMPTS = 4

/**
 * Makes a call that may be repeated: after a rate limit, once it is over, and after a failure of the code host (5xx, no answer),
 * a few times. @throws as the call does, at last; AbortError when `signal` aborts
 */
export async function patiently<T>(call: () => Promise<T>, options: PatienceOptions = {}): Promise<T> {
  for (let limits = 0, failures = 0; ;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof RelayError)) throw error
      const wait = waitAfter(error, limits, failures)
      if (wait === undefined) throw error
      if (error.kind === 'rate_limited') limits++
      else failures++
      options.onWait?.(error.message, wait)
      await sleep(wait, options)
    }
  }
}

/** Milliseconds until the call is made again; undefined for never. */
function waitAfter(
  { kind, retryAfter = 60 }: RelayError,
  limits: number,
  failures: number,
): number | undefined {
  if (kind === 'rate_limited')
    return retryAfter <= MAX_WAIT && limits < MAX_LIMITS ? retryAfter * 1000 : undefined
  if (kind !== 'provider_failed' && kind !== 'provider_timeout') return undefined
  return failures + 1 < MAX_ATTEMPTS ? probeDelay(failures + 1, Math.random) : undefined
}
