import type { Cancellable } from '../base/abort.js'
import type { Provider } from '../providers/provider.js'
import type { Store } from '../store/kv.js'
import { exclusively } from '../store/exclusively.js'
import type { LogPlace } from './catch-up.js'

export interface OneCatchUp<T> extends Cancellable {
  readonly provider: Pick<Provider, 'origin'>
  readonly store: Pick<Store, 'get' | 'update'>
  /** Whose log it is, for the lock and for messages: `octo/demo`. */
  readonly what: string
  /** Called before it waits for another process, with what to say about it. */
  readonly onBusy: (text: string) => void
  readonly work: () => Promise<T>
}

/**
 * Catches up with one log while no other process of the profile does, so that each delivery is asked for once. Another process
 * waits, and then finds nothing missing.
 * @throws as `work` does; RelayError `storage`; AbortError when `signal` aborts
 */
export function oneCatchUp<T>({ provider, store, what, onBusy, work, signal }: OneCatchUp<T>): Promise<T> {
  const busy = (pid: number | undefined): void => {
    const who = pid === undefined ? 'Another process' : `Process ${pid}`
    onBusy(`${who} is catching up with ${what} already. Waiting until it has finished`)
  }
  const key = `catch-up-lock:${provider.origin} ${what}`.toLowerCase()
  return exclusively(store, key, { what: `catching up with ${what}`, onBusy: busy, signal }, work)
}

/** How far the profile has caught up with a log, as a record of its store. */
export function placeIn(
  store: Pick<Store, 'get' | 'put'>,
  { origin }: Pick<Provider, 'origin'>,
  what: string,
): LogPlace {
  const key = `catch-up:${origin} ${what}`.toLowerCase()
  return {
    async get() {
      const id = await store.get(key)
      return typeof id === 'string' && /^\d{1,20}$/.test(id) ? BigInt(id) : -1n
    },
    put: (id) => store.put(key, String(id)),
  }
}
