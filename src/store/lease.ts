import { randomUUID } from 'node:crypto'
import { sleep, type Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { systemClock, type Clock } from '../base/time.js'
import type { Json, Store } from './contract.js'

/** A lock that this process holds, among all processes that have the same database open. */
export interface Lease {
  /** When it ends by itself unless it is renewed, as it must if its process crashes. Milliseconds. */
  readonly end: number
  /** Makes it end `lifetime` milliseconds from now. False if it had ended. @throws RelayError `storage` */
  renew(): Promise<boolean>
  /** @throws RelayError `storage` */
  release(): Promise<void>
}

/** Takes the lock `key` for `lifetime` milliseconds; undefined while another holds it. @throws RelayError `storage` */
export async function takeLease(
  store: Pick<Store, 'putIfAbsent' | 'write'>,
  key: string,
  { lifetime, clock }: { readonly lifetime: number; readonly clock: Clock },
): Promise<Lease | undefined> {
  const owner = { id: randomUUID(), pid: process.pid }
  const end = clock() + lifetime
  if (!(await store.putIfAbsent(key, owner, { expiresAt: end }))) return undefined
  return {
    end,
    async renew() {
      const put = { type: 'put', key, value: owner, expiresAt: clock() + lifetime } as const
      return store.write([put], [{ key, value: owner }])
    },
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

/** Work of any length that only one process may do at a time. */
export interface LongTask<T> extends Cancellable {
  /** Called once if another process has the lock, with its id if that is known. */
  readonly onBusy: (pid: number | undefined) => void
  readonly work: () => Promise<T>
}

/** Milliseconds. If the process that has the lock crashes, the others wait this long. */
const LONG_LIFETIME_MS = 15_000
const RENEW_MS = 4000

/**
 * Runs `work` while holding the lock `key`, which it renews. Waits for as long as another process has it. A process that did not
 * run for 15 s (SIGSTOP, a machine that slept) loses the lock without being stopped, so `work` must do no harm when it runs twice.
 * @throws as `work` does; RelayError `storage`; AbortError when `signal` aborts while waiting
 */
export async function oneAtATimeForLong<T>(
  store: Pick<Store, 'get' | 'putIfAbsent' | 'write'>,
  key: string,
  { onBusy, work, signal }: LongTask<T>,
): Promise<T> {
  const limits = { lifetime: LONG_LIFETIME_MS, clock: systemClock }
  let lease = await takeLease(store, key, limits)
  if (!lease) onBusy(holderOf(await store.get(key)))
  for (; !lease; lease = await takeLease(store, key, limits)) await sleep(POLL_MS, { signal })
  const done = new AbortController()
  const renewing = keepRenewing(lease, done.signal)
  try {
    return await work()
  } finally {
    done.abort()
    await renewing
    // If that fails the lease ends by itself.
    await lease.release().catch(() => {})
  }
}

/** Never rejects: a lease that cannot be renewed ends, and another process may take it. */
async function keepRenewing(lease: Lease, done: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(RENEW_MS, { signal: done }).catch(() => {})
    if (done.aborted) return
    await lease.renew().catch(() => {})
  }
}

function holderOf(value: Json | undefined): number | undefined {
  const { pid }: { readonly pid?: unknown } = Object(value)
  return typeof pid === 'number' ? pid : undefined
}
