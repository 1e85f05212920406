import type { Entry, Summary } from '../../src/journal/types.js'
import type { Journal, WaitingForward } from '../../src/journal/journal.js'

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

/** The entry with this number. */
export async function entryOf(journal: Pick<Journal, 'read'>, n: number): Promise<Entry> {
  const entry = await journal.read(n)
  if (!entry) throw new Error(`there is no entry ${n}`)
  return entry
}

/** The number of entries. */
export async function countOf(journal: Pick<Journal, 'after'>): Promise<number> {
  return (await summariesOf(journal)).length
}

/** Every forward that waits, in order of the entries. */
export async function waitingOf(journal: Pick<Journal, 'waiting'>): Promise<WaitingForward[]> {
  const waiting: WaitingForward[] = []
  for await (const each of journal.waiting()) waiting.push(each)
  return waiting
}
