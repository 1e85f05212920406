import type { JournalChange } from '../journal/journal.js'

/** Something that an open inspector shows has changed. Says what to read again, not what it is now. */
export type Activity =
  | JournalChange
  /** A request was refused. */
  | { readonly type: 'refused' }
  /** A target or the tunnel has changed. */
  | { readonly type: 'state' }

/** Lines in one event of a page: more than a window shows. More changes at once are only counted: the page reads the list again. */
export const MAX_LINES = 200

export type Listener = (activity: Activity) => void

/** Announces what happens in the running instance. Without a listener it costs nothing. */
export interface ActivityFeed {
  publish(activity: Activity): void
  /** Calls `listener`, which must not throw, for everything published from now on, until it is disposed of. */
  subscribe(listener: Listener): Disposable
}

export function createActivityFeed(): ActivityFeed {
  const listeners = new Set<Listener>()
  return {
    publish(activity) {
      for (const listener of listeners) listener(activity)
    },
    subscribe(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
  }
}
