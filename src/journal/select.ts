import type { Summary } from './delivery.js'
import type { Journal } from './journal.js'
import { type Match, matches } from './match.js'

/** What is looked for; everything given must hold. */
export interface Filter {
  /** Any one of them; none at all is the same as not given. */
  readonly events?: readonly Match[]
  /** `owner/name`, in any case. */
  readonly repo?: string
  /** Received at or after this instant, in milliseconds. */
  readonly since?: number
  /** Those, or those not, whose hand-on to a target failed. */
  readonly failed?: boolean
  /** At most so many, the newest. */
  readonly last?: number
}

/**
 * How far the order of the entries and that in which they were received may differ, in milliseconds: several requests
 * are under way at once, and clocks are set back a little.
 */
const DISORDER_MS = 60_000

/** The entries that pass, newest first. Reads only as far as it is asked to and as entries are young enough. */
export function* select(journal: Pick<Journal, 'summaries'>, filter: Filter = {}): Generator<Summary> {
  const { since = -Infinity, last = Infinity } = filter
  let left = last
  if (left <= 0) return
  for (const summary of journal.summaries({ reverse: true })) {
    if (summary.receivedAt < since - DISORDER_MS) return
    if (!passes(summary, filter)) continue
    yield summary
    if (--left <= 0) return
  }
}

/** Whether an entry is looked for, apart from how many there may be. */
export function passes(summary: Omit<Summary, 'size'>, filter: Filter): boolean {
  const { events = [], repo, since = -Infinity, failed } = filter
  return (
    summary.receivedAt >= since &&
    (repo === undefined || summary.repo?.toLowerCase() === repo.toLowerCase()) &&
    (events.length === 0 || events.some((match) => matches(match, summary))) &&
    (failed === undefined || failed === hasFailed(summary))
  )
}

/** Whether its hand-on to a target has failed for good. */
export function hasFailed({ handOns }: Pick<Summary, 'handOns'>): boolean {
  return Object.values(handOns).some(({ state }) => state === 'failed')
}
