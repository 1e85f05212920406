import { RelayError } from '../../base/errors.js'
import type { Entry } from '../../journal/types.js'
import type { Journal } from '../../journal/journal.js'

/** The argument that names an entry. */
export const ENTRY_ARGUMENT = { name: '<entry>', help: 'number of the entry, or last' } as const

/**
 * The entry that `7`, `#7` or `last` names.
 * @throws RelayError `usage` for anything else, `no_match` that names the numbers that exist.
 */
export async function findEntry(journal: Journal, text: string): Promise<Entry> {
  const n = text === 'last' ? await journal.newest() : Number(/^#?(\d{1,15})$/.exec(text)?.[1] ?? Number.NaN)
  if (Number.isNaN(n))
    throw new RelayError('usage', `${JSON.stringify(text)} is not an entry. Give its number, or last`)
  const entry = await journal.read(n)
  if (entry) return entry
  const [oldest] = await journal.after(0, 1)
  throw new RelayError(
    'no_match',
    oldest
      ? `The journal has no entry #${n}. Its entries are #${oldest.n} to #${await journal.newest()}`
      : 'The journal is empty',
  )
}
