import { randomUUID } from 'node:crypto'
import { sleep, type Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Clock } from '../base/time.js'
import type { Store } from '../store/contract.js'

export interface LockParts {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
}

/** 30 s: after that a lock's holder counts as dead. Whoever holds one is done sooner: the token endpoint is given 10 s. */
export const LOCK_LIFETIME = 30_000

/** How long to wait for others in turn: for one that died, and for one after it. */
export const LOCK_WAIT = 45_000

/** Short beside a call to the provider, long enough to cost nothing. */
const POLL = 100

/**
 * Does `work` while nobody else, in no process, does any under the same key. While somebody does, `look` is asked again and
 * again whether there is still anything to do: what it finds is the result.
 * @throws RelayError `timed_out` after {@link LOCK_WAIT}, `storage`; AbortError when `signal` aborts while waiting.
 */
export async function oneAtATime<T>(
  parts: LockParts,
  key: string,
  { look, work, signal }: { look: () => Promise<T | undefined>; work: () => Promise<T> } & Cancellable,
): Promise<T> {
  const { store, clock } = parts
  const owner = randomUUID()
  const until = clock() + LOCK_WAIT
  for (;;) {
    if (await store.putIfAbsent(key, owner, { expiresAt: clock() + LOCK_LIFETIME })) break
    if (clock() >= until)
      throw new RelayError('timed_out', 'Others are renewing the same token and do not finish')
    await sleep(POLL, { signal })
    const found = await look()
    if (found !== undefined) return found
  }
  try {
    return await work()
  } finally {
    await release(parts, key, owner)
  }
}

/** Only if it is still ours. A lock that cannot be released ends by itself. */
async function release({ store, log }: LockParts, key: string, owner: string): Promise<void> {
  try {
    await store.write([{ type: 'delete', key }], [{ key, value: owner }])
  } catch (error) {
    log.error('The lock on renewing a token could not be released; it ends by itself in 30 s', error)
  }
}
