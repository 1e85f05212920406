import { sleep, probeDelay } from '../base/wait.js'
import { type ErrorKind, type RelayError, toRelayError } from '../base/errors.js'

/** Failures that end by themselves. */
const PASSING: ReadonlySet<ErrorKind> = new Set([
  'provider_failed',
  'provider_timeout',
  'storage',
  'timed_out',
])

interface TryingOptions {
  readonly stop: AbortSignal
  /** Called for each failure that differs from the one before; `retries`: whether it is tried again. */
  readonly onFailure: (error: RelayError, retries: boolean) => void
  /** As in `Limits`: only the profile is read. */
  readonly signInLook: number
}

/**
 * Tries until it succeeds, a person has to change something first, or `stop` aborts. Resolves to undefined without success. Does
 * not reject.
 */
export async function keepTrying<T>(
  attempt: () => Promise<T>,
  { stop, onFailure, signInLook }: TryingOptions,
): Promise<T | undefined> {
  let reported = ''
  for (let failures = 0; !stop.aborted;) {
    try {
      return await attempt()
    } catch (thrown) {
      const error = toRelayError(thrown)
      const delay = delayAfter(error, ++failures, signInLook)
      if (stop.aborted) break
      if (error.message !== reported) onFailure(error, delay !== undefined)
      reported = error.message
      if (delay === undefined) break
      await sleep(delay, { signal: stop }).catch(() => {})
    }
  }
  return undefined
}

/** Milliseconds until the next try; undefined if a person has to change something first. */
function delayAfter(
  { kind, retryAfter = 60 }: RelayError,
  failures: number,
  signInLook: number,
): number | undefined {
  if (kind === 'unauthenticated' || kind === 'invalid_token') return signInLook
  if (kind === 'rate_limited') return retryAfter * 1000
  return PASSING.has(kind) ? probeDelay(failures, Math.random) : undefined
}
