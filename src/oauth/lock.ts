import { sleep, type Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Clock } from '../base/time.js'
import type { Store } from '../store/contract.js'
import { type Lease, takeLease } from '../store/lease.js'

export interface LockParts {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
}

/** Lifetime of a lock, in milliseconds. Its owner is done sooner: a call to the token endpoint takes at most 10 s. */
export const LOCK_LIFETIME = 30_000

/** Time limit for getting the lock, in milliseconds: one owner that died, and another after it. */
export const LOCK_WAIT = 45_000

/** Short compared with a call to the provider, long enough to cost nothing. */
const POLL_MS = 100

/**
 * Runs `work` while holding the lock `key`, which only one caller in all processes can hold. While another holds it, `look`
 * is called repeatedly. Once that returns a value, the value is the result and `work` does not run.
 * @throws RelayError `timed_out` after {@link LOCK_WAIT}, `storage`; AbortError when `signal` aborts while waiting.
 */
export async function oneAtATime<T>(
  parts: LockParts,
  key: string,
  { look, work, signal }: { look: () => Promise<T | undefined>; work: () => Promise<T> } & Cancellable,
): Promise<T> {
  const { store, clock, log } = parts
  const until = clock() + LOCK_WAIT
  let lease: Lease | undefined
  while (!(lease = await takeLease(store, key, { lifetime: LOCK_LIFETIME, clock }))) {
    if (clock() >= until)
      throw new RelayError('timed_out', 'Another process is renewing this token and did not finish in 45 s')
    await sleep(POLL_MS, { signal })
    const found = await look()
    if (found !== undefined) return found
  }
  try {
    return await work()
  } finally {
    await lease.release().catch((error: unknown) => {
      log.error('The lock on renewing a token could not be released; it expires within 30 s', error)
    })
  }
}
