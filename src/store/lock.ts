import { sleep } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { systemClock } from '../base/time.js'
import type { Store } from './contract.js'
import { type Lease, takeLease } from './lease.js'

/** A lock for all processes that have the same database open. Closing it waits for those who hold it here. */
export interface Lock extends AsyncDisposable {
  /**
   * Runs `work` while no other holder does. It calls `mustHold` before each of its steps, none of which may take longer
   * than {@link STEP}: that throws once the lock may soon be another's.
   * @throws RelayError `storage` when the lock cannot be had within {@link WAIT}; else as `work` does.
   */
  hold<T>(work: (mustHold: () => void) => Promise<T>): Promise<T>
  /** Waits until it is free, but no longer than {@link READ_WAIT}: for readers. */
  idle(): Promise<void>
}

export const LOCK_KEY = 'lock:keychain'

/** All in milliseconds. The lock of a process that has crashed is free after its lease, so others wait longer than that. */
const STEP = 4000
const LEASE = 12_000
const WAIT = 15_000
const READ_WAIT = 1000

/** `store` must go by the wall clock. */
export function createLock(store: Pick<Store, 'get' | 'putIfAbsent' | 'write'>): Lock {
  const underWay = new Set<Promise<unknown>>()
  const isHeld = async (): Promise<boolean> => (await store.get(LOCK_KEY)) !== undefined
  const take = async (): Promise<Lease | undefined> =>
    (await isHeld()) ? undefined : takeLease(store, LOCK_KEY, { lifetime: LEASE, clock: systemClock })

  async function hold<T>(work: (mustHold: () => void) => Promise<T>): Promise<T> {
    const limit = Date.now() + WAIT
    let held = await take()
    for (; !held; held = await take()) await nextLook(limit)
    const latest = held.end - STEP
    try {
      return await work(() => mustBeBefore(latest))
    } finally {
      // If that fails the lease ends by itself.
      await held.release().catch(() => {})
    }
  }

  return {
    async hold(work) {
      const holding = hold(work)
      underWay.add(holding)
      try {
        return await holding
      } finally {
        underWay.delete(holding)
      }
    },
    async idle() {
      const limit = Date.now() + READ_WAIT
      while ((await isHeld()) && Date.now() < limit) await pause()
    },
    async [Symbol.asyncDispose]() {
      await Promise.allSettled(underWay)
    },
  }
}

async function nextLook(limit: number): Promise<void> {
  if (Date.now() > limit) {
    throw new RelayError('storage', 'Others are changing the keychain all the time: try again')
  }
  await pause()
}

/** At random, so that none of those who wait always looks at the wrong moment. */
function pause(): Promise<void> {
  return sleep(2 + Math.random() * 8)
}

function mustBeBefore(latest: number): void {
  if (Date.now() > latest) throw new RelayError('storage', 'The keychain was too slow')
}
