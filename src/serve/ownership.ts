import { sleep } from '../base/abort.js'
import { ownershipLost, type Instance } from '../instance/instance.js'
import { INSTANCE_KEY } from '../instance/record.js'
import { systemClock } from '../base/time.js'
import type { Guard } from '../journal/guarded-write.js'
import type { Database } from '../store/database.js'
import type { Duties } from './duties.js'
import type { Membership } from './membership.js'

/** A profile that this process owns, until another takes it. Disposing of it releases the profile. */
export interface Ownership extends AsyncDisposable, Pick<Instance, 'prove' | 'record'> {
  /** Aborts when another process has taken the profile. The reason is the RelayError of {@link Ownership.assert}. */
  readonly lost: AbortSignal
  /** @throws RelayError `unavailable` that names the process that has the profile now; `storage` */
  assert(): Promise<void>
  /** Makes every transaction of the journal fail when the profile is lost. */
  readonly guard: Guard
  /** Where no other relay can have the profile, it has every duty at once. */
  readonly duties: Duties
  /** The part in a service of several relays. */
  readonly membership?: Membership
  /** Whether it still owns the profile, as far as it knows. */
  isCurrent(): boolean
}

/** How often an instance without work checks, in milliseconds: at least every second, also when a timer is a little late. */
const INTERVAL_MS = 500

/**
 * Watches a profile that was taken. A process that did not run for longer than a probe waits (SIGSTOP, a paused container, a
 * blocked event loop) loses the profile to the next one that starts. It finds out here: within every transaction of the
 * journal, before every attempt, and by a timer.
 */
export function watchOwnership(
  { store, expectStep }: Pick<Database, 'store' | 'expectStep'>,
  instance: Instance,
): Ownership {
  const lost = new AbortController()
  const expected = expectStep(instance.stored)
  const stop = new AbortController()
  const assert = async (): Promise<void> => {
    lost.signal.throwIfAborted()
    const error = ownershipLost(instance.record, await store.get(INSTANCE_KEY))
    if (!error) return
    lost.abort(error)
    throw lost.signal.reason
  }
  void checkRegularly(assert, stop.signal)
  const isCurrent = (): boolean => !lost.signal.aborted
  return {
    prove: instance.prove,
    record: instance.record,
    lost: lost.signal,
    assert,
    isCurrent,
    duties: { run: ({ start }) => start({ lost: lost.signal, assert, isCurrent }) },
    guard: {
      statement: () => expected(systemClock()),
      async refuse() {
        await assert()
        throw new Error('unreachable: the record is another one')
      },
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await instance.release()
    },
  }
}

/**
 * A profile that this relay shares with others. It has no process to lose it to: what a relay may do is decided by the lease of
 * each duty.
 */
export function sharedOwnership(membership: Membership): Ownership {
  const { record, prove, duties, lost } = membership
  return {
    record,
    prove,
    duties,
    lost,
    membership,
    isCurrent: () => !lost.aborted,
    assert: async () => lost.throwIfAborted(),
    guard: {
      statement: () => undefined,
      refuse: () => Promise.reject(new Error('unreachable: nothing was required')),
    },
    [Symbol.asyncDispose]: () => membership[Symbol.asyncDispose](),
  }
}

/** The guard of an ownership that begins later. Before that the readiness gate holds back what would be written. */
export function guardOf(ownership: () => Ownership | undefined): Guard {
  return {
    statement: () => ownership()?.guard.statement(),
    async refuse() {
      await ownership()?.guard.refuse()
      throw new Error('unreachable: nothing was required')
    },
  }
}

/** Never rejects. What waits for `lost` reports the loss; when the store cannot be read, the next write fails too. */
async function checkRegularly(assert: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(INTERVAL_MS, { signal }).catch(() => {})
    if (signal.aborted) return
    await assert().catch(() => {})
  }
}
