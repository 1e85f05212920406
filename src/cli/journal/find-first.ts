import type { Cancellable } from '../../base/abort.js'
import type { Entry, Summary } from '../../journal/delivery.js'
import type { Journal } from '../../journal/journal.js'
import type { Match } from '../../journal/match.js'
import { passes, select } from '../../journal/select.js'
import { newest } from './entry-number.js'
import { readPayload } from './payload.js'
import { poll } from './poll.js'
import type { Where } from './where.js'

/** What is waited for; all of it must hold. */
export interface Wanted {
  readonly match: Match
  /** Received at or after this instant, in milliseconds. */
  readonly since: number
  /** What is asked of the payload. */
  readonly where: readonly Where[]
}

export interface Found {
  readonly entry: Entry
  readonly summary: Summary
}

/**
 * The first entry that is wanted, by number, whether it is there or still comes; undefined when `limit` milliseconds have
 * passed without.
 * @throws RelayError as a {@link Where}; AbortError when `signal` aborts.
 */
export async function findFirst(
  journal: Pick<Journal, 'read' | 'summaries'>,
  { match, since, where }: Wanted,
  limit: number,
  options: Cancellable,
): Promise<Found | undefined> {
  const end = performance.now() + limit
  const filter = { events: [match], since }
  for await (const batch of poll(journal, numberBefore(journal, since), options)) {
    for (const summary of batch) {
      const entry = passes(summary, filter) ? journal.read(summary.n) : undefined
      if (!entry) continue
      const payload = where.length > 0 ? readPayload(entry)?.value : undefined
      if (where.every((holds) => holds(payload))) return { entry, summary }
    }
    if (performance.now() >= end) return undefined
  }
  return undefined
}

/** An entry's number such that all received since are after it: there is no gap between looking back and looking on. */
function numberBefore(journal: Pick<Journal, 'summaries'>, since: number): number {
  let before = newest(journal)
  for (const { n } of select(journal, { since })) before = Math.min(before, n - 1)
  return before
}
