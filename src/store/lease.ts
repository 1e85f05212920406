import { randomUUID } from 'node:crypto'
import { sleep, type Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Clock } from '../base/time.js'
import type { Store } from './contract.js'

/** A lock that this process holds, among all processes that have the same database open. */
export interface Lease {
  /** When it ends by itself, as it must if its process crashes. Milliseconds. */
  readonly end: number
  /** @throws RelayError `storage` */
  release(): Promise<void>
}

/** Takes the lock `key` for `lifetime` milliseconds; undefined while another holds it. @throws RelayError `storage` */
export async function takeLease(
  store: Pick<Store, 'putIfAbsent' | 'write'>,
  key: string,
  { lifetime, clock }: { readonly lifetime: number; readonly clock: Clock },
): Promise<Lease | undefined> {
  const owner = randomUUID()
  const end = clock() + lifetime
  if (!(await store.putIfAbsent(key, owner, { expiresAt: end }))) return undefined
  return {
    end,
    async release() {
      await store.write([{ type: 'delete', key }], [{ key, value: owner }])
    },
  }
}

/** A task that only one caller in all processes may run at a time. */
export interface SoleTask<T> extends Cancellable {
  /** Milliseconds until the lock ends by itself; longer than `work` ever takes. */
  readonly lifetime: number
  /** Milliseconds to wait for the lock. */
  readonly wait: number
  /** What the task does, for messages: `renewing a token`. */
  readonly what: string
  /** Called repeatedly while another has the lock. Once it returns a value, that is the result and `work` does not run. */
  readonly look?: () => Promise<T | undefined>
  readonly work: () => Promise<T>
}

/** Short compared with a call to the provider, long enough to cost nothing. */
const POLL_MS = 100

/**
 * Runs `work` while holding the lock `key`.
 * @throws RelayError `timed_out` when the lock is not free in time, `storage`; AbortError when `signal` aborts while waiting.
 */
export async function oneAtATime<T>(
  { store, clock, log }: { readonly store: Store; readonly clock: Clock; readonly log: Log },
  key: string,
  { lifetime, wait, what, look, work, signal }: SoleTask<T>,
): Promise<T> {
  const until = clock() + wait
  let lease: Lease | undefined
  while (!(lease = await takeLease(store, key, { lifetime, clock }))) {
    if (clock() >= until)
      throw new RelayError('timed_out', `Another process is ${what} and did not finish in ${wait / 1000} s`)
    await sleep(POLL_MS, { signal })
    const found = await look?.()
    if (found !== undefined) return found
  }
  try {
    return await work()
  } finally {
    await lease.release().catch((error: unknown) => {
      log.error(`The lock on ${what} could not be released; it expires within ${lifetime / 1000} s`, error)
    })
  }
}
