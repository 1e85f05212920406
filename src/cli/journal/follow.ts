import type { Cancellable } from '../../base/abort.js'
import type { Summary } from '../../journal/delivery.js'
import type { Journal } from '../../journal/journal.js'
import { type Filter, passes, select } from '../../journal/select.js'
import { poll } from './poll.js'

/** How many entries, the newest of those meant, are looked at for what has changed: some milliseconds of work. */
const WATCHED = 100

/**
 * Entries after number `after` that pass, as they come; and the newest that passed again when it has changed how it stands
 * with their targets, or they came again. Some of both may pass only then: `failed` is not true at once.
 * @throws AbortError when `signal` aborts, which alone ends it.
 */
export async function* follow(
  journal: Pick<Journal, 'summaries'>,
  filter: Filter,
  after: number,
  options: Cancellable,
): AsyncGenerator<Summary, never> {
  const { failed: _, last: __, ...lasting } = filter
  const known = new Map<number, string>()
  for (const summary of [...select(journal, { ...lasting, last: WATCHED })].toReversed()) {
    if (summary.n <= after) known.set(summary.n, stateOf(summary))
  }
  for await (const batch of poll(journal, after, options)) {
    const changed = [...known.keys()].flatMap((n) => [...journal.summaries({ from: n, to: n })])
    for (const summary of [...changed, ...batch]) {
      const { n } = summary
      const state = stateOf(summary)
      if (known.get(n) === state || !passes(summary, lasting)) continue
      known.set(n, state)
      if (passes(summary, filter)) yield summary
    }
    for (const n of known.keys()) {
      if (known.size <= WATCHED) break
      known.delete(n)
    }
  }
  throw new Error('unreachable: polling ends by throwing')
}

function stateOf({ handOns, duplicates }: Summary): string {
  return JSON.stringify([handOns, duplicates])
}
