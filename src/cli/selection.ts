import path from 'node:path'
import type { SourceSettings } from '../base/settings.js'
import { RelayError } from '../base/errors.js'
import { fromFixture, type RecordedDelivery } from '../replay/fixture.js'
import type { Journal } from '../journal/journal.js'
import type { Shell } from './command.js'
import { type FilterFlags, findEntry, isEntry, readFilter } from './journal.js'
import type { Item } from './send.js'

// The deliveries that a command line names: entries of the journal, and fixtures.

interface Selection {
  readonly journal: () => Promise<Journal>
  /** The provider of files that hold only a payload. */
  readonly provider: string | undefined
  /** Source that replaces the deliveries' own. */
  readonly source?: SourceSettings | undefined
}

/**
 * Bytes of fixtures that are read before anything is sent: enough for most tests. Bounds memory and the wait before
 * sending.
 */
const READ_AHEAD = 8_388_608
/** Bytes of a fixture besides its body: headers and names. */
const OVERHEAD = 4096

/**
 * Selects the named deliveries in the given order; without names, those that the flags select in the journal, oldest
 * first. They are read when they are sent, except for the first files, so that an invalid one is found before.
 */
export async function selectItems(
  shell: Shell,
  words: readonly string[],
  flags: FilterFlags,
  { journal: open, provider, source }: Selection,
): Promise<Item[]> {
  const { cwd, stdin, signal } = shell
  const items: Item[] = []
  const addEntry = (journal: Journal, n: number): void => {
    items.push({ name: `#${n}`, n, load: () => journal.read(n) })
  }
  if (words.length === 0) {
    const filter = readFilter(flags, Date.now())
    const journal = await open()
    for await (const { n } of journal.select(filter)) addEntry(journal, n)
    if (items.length === 0) throw new RelayError('no_match', 'No delivery in the journal matches')
    return items.toReversed()
  }
  const of = source && { provider: source.name, scheme: source.scheme }
  const options = { event: flags.event?.[0], provider, ...of, stdin, signal }
  let size = 0
  for (const word of words) {
    if (isEntry(word)) {
      const journal = await open()
      addEntry(journal, (await findEntry(journal, word)).n)
      continue
    }
    // Loaded late: with zod, it takes longer than most commands do.
    const { findFixtures } = await import('../replay/load.js')
    const isPiped = word === '-'
    for await (const { name, load } of findFixtures([isPiped ? word : path.resolve(cwd, word)], options)) {
      // Only the body's bytes stay in memory, not the text of its file.
      const read = (): RecordedDelivery => ({ ...fromFixture(load()), ...of })
      const recorded = size < READ_AHEAD ? read() : undefined
      size += OVERHEAD + (recorded?.body.length ?? 0)
      // Relative, so that a report is the same on every machine.
      const shown = isPiped ? name : path.relative(cwd, name)
      items.push({ name: shown, load: async () => recorded ?? read() })
    }
  }
  return items
}
