import { MAX_LINES } from '../inspector/activity.js'
import { readAnnounced } from '../journal/announced.js'
import type { Relay } from '../relay.js'
import type { Membership } from './membership.js'

/** Entries that are published at most at once: so many that a page gets to know that it must read the list again. */
const MAX_ENTRIES = MAX_LINES + 1

/** Lets open inspectors show what other relays take in and forward. */
export function publishRemoteChanges(
  { activity, journal }: Pick<Relay, 'activity' | 'journal'>,
  membership: Pick<Membership, 'subscribe'>,
): Disposable {
  let newest = 0
  const changed = (n: number): void => activity.publish({ type: 'changed', n })
  const upTo = (n: number, from = newest): void => {
    for (let each = Math.max(from, n - MAX_ENTRIES) + 1; each <= n; each++) changed(each)
    newest = Math.max(newest, n)
  }
  return membership.subscribe({
    onNotice(notice) {
      if (notice.kind !== 'journal') return
      upTo(notice.newest, notice.words ? newest : 0)
      for (const n of readAnnounced(notice.words ?? []).changed) changed(n)
    },
    onListening() {
      // What has changed during the break is not known.
      void journal.newest().then(
        (n) => upTo(n, 0),
        () => {},
      )
    },
  })
}
