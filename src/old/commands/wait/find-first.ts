import type { Cancellable } from '../../../base/abort.js'
import type { Entry, Summary } from '../../../journal/types.js'
import type { Journal } from '../../../journal/journal.js'
import { type Filter, isFromFuture, passes } from '../../../journal/filter.js'
import { readPayload } from '../../../journal/payload.js'
import { poll } from '../../journal/poll.js'
import type { Where } from './where.js'

/** The conditions on a delivery; all must hold. */
export interface Criteria {
  /** Its `since` counts for the entries that exist. */
  readonly filter: Filter
  /** Conditions on the payload. */
  readonly where: readonly Where[]
}

export interface Found {
  readonly entry: Entry
  readonly summary: Summary
}

type JournalPart = Pick<Journal, 'read' | 'select' | 'summaries' | 'after' | 'newest' | 'withText'>

/**
 * The first matching entry by number, whether it exists or is appended later; undefined after `limit` milliseconds without
 * one. `onWait` is called when no existing entry matches. Every entry appended later counts as received since, whatever its time: the clock can be set back meanwhile.
 * @throws RelayError as a {@link Where}; AbortError when `signal` aborts.
 */
export async function findFirst(
  journal: JournalPart,
  { filter, where }: Criteria,
  limit: number,
  { onWait, ...options }: Cancellable & { readonly onWait?: () => void },
): Promise<Found | undefined> {
  const end = performance.now() + limit
  const { text } = filter
  const find = async (summary: Summary): Promise<Found | undefined> => {
    const entry = passes(summary, filter) ? await journal.read(summary.n) : undefined
    if (!entry) return undefined
    if (text !== undefined && !(await journal.withText([entry.n], text)).has(entry.n)) return undefined
    const payload = where.length > 0 ? readPayload(entry)?.value : undefined
    return where.every((holds) => holds(payload)) ? { entry, summary } : undefined
  }
  // Read first, so that no entry falls between the existing and the new ones.
  const last = await journal.newest()
  for (const n of await numbersSince(journal, { ...filter, before: last + 1 }, options)) {
    const [summary] = await journal.summaries([n])
    const found = summary && (await find(summary))
    if (found) return found
  }
  onWait?.()
  for await (const batch of poll(journal, last, options)) {
    for (const summary of batch) {
      const found = await find(summary)
      if (found) return found
    }
    if (performance.now() >= end) return undefined
  }
  return undefined
}

/**
 * The numbers of the entries that match, oldest first. An entry with a time in the future was received before the clock was set
 * back. It counts if an entry before it is recent enough; otherwise it is most likely old.
 */
async function numbersSince(
  journal: JournalPart,
  filter: Filter,
  { signal }: Cancellable,
): Promise<number[]> {
  const now = Date.now()
  const numbers: number[] = []
  let certain = 0
  for await (const summary of journal.select(filter)) {
    signal?.throwIfAborted()
    numbers.push(summary.n)
    if (!isFromFuture(summary, now)) certain = numbers.length
  }
  const { since = -Infinity } = filter
  for (const n of numbers.slice(certain)) {
    if (!(await hasRecent(journal, { since, before: n }, now))) break
    certain++
  }
  return numbers.slice(0, certain).toReversed()
}

/** Whether an entry of the filter was received before `now`. */
async function hasRecent(journal: JournalPart, filter: Filter, now: number): Promise<boolean> {
  for await (const summary of journal.select(filter)) if (!isFromFuture(summary, now)) return true
  return false
}
