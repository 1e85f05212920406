import { randomUUID } from 'node:crypto'
import { sleep, type Cancellable } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Json, StoreReader, StoreUpdater } from './kv.js'
import type { Tx } from './sql.js'
import { fieldsOf } from '../json/parse.js'

export interface LockOptions<Result> extends Cancellable {
  /** The work, for messages: `renewing a token`. */
  readonly what: string
  /** Milliseconds to wait for another process. Default: no limit. */
  readonly wait?: number
  /** Called once if another process holds the lock, with its process id if known. */
  readonly onBusy?: (pid: number | undefined) => void
  /** Called repeatedly while waiting. A value that it returns is the result, and the work is not done. */
  readonly poll?: () => Promise<Result | undefined>
  readonly clock?: Clock
}

/** Lifetime of an unrenewed lock, in milliseconds. After a crash of its holder, the others wait this long. */
const LIFETIME_MS = 15_000
const RENEW_MS = 4000
/** Short compared with a call to a code host, and long enough to cost nothing. */
const POLL_MS = 100

/**
 * Runs `work` while no other process of the profile runs it under the same key. The lock is a record that is renewed
 * every 4 s. A process that was suspended for 15 s (SIGSTOP, a sleeping machine) loses the lock without being stopped,
 * so running the work twice must be harmless.
 * @throws as `work` does; RelayError `timed_out` after `wait`, `storage`; AbortError when `signal` aborts during the
 * wait
 */
export async function withLock<Result>(
  store: StoreReader & StoreUpdater,
  key: string,
  { what, wait = Infinity, onBusy, poll: look, clock = systemClock, signal }: LockOptions<Result>,
  work: () => Promise<Result>,
): Promise<Result> {
  const own = { id: randomUUID(), pid: process.pid }
  const take = (): Promise<boolean> =>
    store.update(function* (records): Tx<boolean> {
      if ((yield* records.get(key)) !== undefined) return false
      yield* records.put(key, own, clock() + LIFETIME_MS)
      return true
    })
  const until = clock() + wait
  for (let isFirst = true; !(await take()); isFirst = false) {
    if (isFirst) onBusy?.(ownerOf(await store.get(key)).pid)
    if (clock() >= until)
      throw new RelayError('timed_out', `Another process is ${what} and did not finish in ${wait / 1000} s`)
    await sleep(POLL_MS, { signal })
    const found = await look?.()
    if (found !== undefined) return found
  }
  const ifOwn = (change: 'renew' | 'release'): Promise<void> =>
    store.update(function* (records): Tx<void> {
      if (ownerOf(yield* records.get(key)).id !== own.id) return
      if (change === 'renew') yield* records.put(key, own, clock() + LIFETIME_MS)
      else yield* records.delete(key)
    })
  // A failure is harmless: the lock expires by itself.
  const renewing = setInterval(() => void ifOwn('renew').catch(() => {}), RENEW_MS)
  try {
    return await work()
  } finally {
    clearInterval(renewing)
    await ifOwn('release').catch(() => {})
  }
}

function ownerOf(value: Json | undefined): { readonly id?: string; readonly pid?: number } {
  const { id, pid } = fieldsOf(value)
  return { ...(typeof id === 'string' && { id }), ...(typeof pid === 'number' && { pid }) }
}
