import { RelayError } from '../../base/errors.js'
import type { Entry } from '../../journal/delivery.js'
import type { Journal } from '../../journal/journal.js'

/**
 * The entry that `7`, `#7` or `last` means.
 * @throws RelayError `usage` for anything else, `no_match` that tells which numbers there are.
 */
export function findEntry(journal: Journal, text: string): Entry {
  const n = text === 'last' ? newest(journal) : Number(/^#?(\d{1,15})$/.exec(text)?.[1] ?? Number.NaN)
  if (Number.isNaN(n))
    throw new RelayError('usage', `${JSON.stringify(text)} is no entry: give its number, or last`)
  const entry = journal.read(n)
  if (entry) return entry
  const [oldest] = journal.summaries({ limit: 1 })
  throw new RelayError(
    'no_match',
    oldest
      ? `The journal has no entry #${n}: it goes from #${oldest.n} to #${newest(journal)}`
      : 'The journal is empty',
  )
}

/** The number of the newest entry; 0 when there is none. */
export function newest(journal: Pick<Journal, 'summaries'>): number {
  const [summary] = journal.summaries({ reverse: true, limit: 1 })
  return summary?.n ?? 0
}
