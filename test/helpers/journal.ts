import type { Entry, Summary } from '../../src/journal/types.js'
import type { Journal } from '../../src/journal/journal.js'

/** Every entry, oldest first, without its body. */
export function summariesOf(journal: Pick<Journal, 'after'>): Promise<readonly Summary[]> {
  return journal.after(0, 1_000_000)
}

/** Every entry, oldest first. */
export async function entriesOf(journal: Pick<Journal, 'after' | 'read'>): Promise<Entry[]> {
  const entries: Entry[] = []
  for (const { n } of await summariesOf(journal)) {
    const entry = await journal.read(n)
    if (entry) entries.push(entry)
  }
  return entries
}
