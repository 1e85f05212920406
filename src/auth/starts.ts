import { RelayError } from '../base/errors.js'

/** Largest burst: far more sign-ins than people begin at once, also behind one application. */
const AT_ONCE = 200
/** Sustained rate. Each sign-in takes a record in the store for ten minutes, so at most 1,400 do: 2 MB. */
const PER_SECOND = 2

/**
 * Rate limiter for sign-ins. Anybody can begin one, and end it with a call to the code host: without a limit they would
 * fill the disk, and use up the code host's own limit for this OAuth client.
 */
export class SignInLimiter {
  #left = AT_ONCE
  #since = performance.now()

  /** Counts a sign-in that begins. @throws RelayError `rate_limited` */
  admit(): void {
    const now = performance.now()
    this.#left = Math.min(AT_ONCE, this.#left + ((now - this.#since) / 1000) * PER_SECOND)
    this.#since = now
    if (this.#left < 1)
      throw new RelayError('rate_limited', 'Too many sign-ins begin at once. Try again in a moment', {
        retryAfter: 1,
      })
    this.#left--
  }
}
