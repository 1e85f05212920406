import type { Cancellable } from '../../../base/abort.js'
import type { Summary } from '../../../journal/types.js'
import type { Journal } from '../../../journal/journal.js'
import { type Filter, passes } from '../../../journal/filter.js'
import { poll } from '../../journal/poll.js'

/** The newest matching entries that are watched for changes: some milliseconds of work per poll. */
const MAX_WATCHED = 100

/** Follows the journal from one entry on. */
export interface Follower {
  /** Notes the state in which an entry was printed, so that it is not printed again in that state. */
  printed(summary: Summary): void
  /**
   * New entries that match, and the newest matching entries again when a duplicate or the state of their forwarding changes
   * them. An entry can begin to match by such a change: no status lasts.
   * @throws AbortError when `signal` aborts; it never ends otherwise.
   */
  changes(options: Cancellable): AsyncGenerator<Summary, never>
}

/** Follows the entries after number `after`, and the changes of earlier ones from now on. */
export async function createFollower(
  journal: Pick<Journal, 'select' | 'after' | 'summaries' | 'withText'>,
  filter: Filter,
  after: number,
): Promise<Follower> {
  const { status: _, ...lasting } = filter
  const states = new Map<number, string>()
  for await (const summary of journal.select({ ...lasting, last: MAX_WATCHED, before: after + 1 }))
    states.set(summary.n, stateOf(summary))
  return {
    printed(summary) {
      if (states.has(summary.n)) states.set(summary.n, stateOf(summary))
    },
    async *changes(options) {
      for await (const batch of poll(journal, after, options)) {
        const added = await withText(journal, batch, filter)
        for (const summary of [...(await journal.summaries(inOrder(states))), ...added]) {
          const { n } = summary
          const state = stateOf(summary)
          if (states.get(n) === state || !passes(summary, lasting)) continue
          states.set(n, state)
          if (passes(summary, filter)) yield summary
        }
        for (const n of inOrder(states).slice(0, -MAX_WATCHED)) states.delete(n)
      }
      throw new Error('unreachable: polling ends by throwing')
    },
  }
}

/** Those of new entries whose body has the text that is looked for. */
async function withText(
  journal: Pick<Journal, 'withText'>,
  batch: readonly Summary[],
  { text }: Filter,
): Promise<readonly Summary[]> {
  if (text === undefined) return batch
  const numbers = await journal.withText(
    batch.map(({ n }) => n),
    text,
  )
  return batch.filter(({ n }) => numbers.has(n))
}

function inOrder(states: ReadonlyMap<number, string>): readonly number[] {
  return [...states.keys()].toSorted((one, other) => one - other)
}

function stateOf({ forwards, duplicates }: Summary): string {
  return JSON.stringify([forwards, duplicates])
}
