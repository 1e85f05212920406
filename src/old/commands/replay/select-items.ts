import path from 'node:path'
import { RelayError } from '../../../base/errors.js'
import { fromFixture, type Recorded } from '../../../fixtures/fixture.js'
import type { Journal } from '../../../journal/journal.js'
import { findFixtures } from '../../../fixtures/load.js'
import type { Context } from '../../context.js'
import { findEntry } from '../../journal/entry-number.js'
import { type FilterFlags, readFilter } from '../../journal/filter.js'

/** A delivery to send or to verify. */
export interface Item {
  /** The name on its line: a file, `#7`. */
  readonly name: string
  /** Reads it; undefined when an old entry is gone by then. @throws RelayError that names an invalid file. */
  readonly load: () => Promise<Recorded | undefined>
}

const ENTRY = /^(?:#?\d{1,15}|last)$/

/** Whether a word names an entry of the journal rather than a file. */
export function isEntry(word: string): boolean {
  return ENTRY.test(word)
}

export interface Selection {
  readonly journal: () => Journal
  /** The provider of files that hold only a payload. */
  readonly provider: string | undefined
}

/** @throws RelayError `usage` when words and flags select nothing, or contradict each other. */
export function checkSelection(words: readonly string[], flags: FilterFlags): void {
  const { repo, since, failed, last, event = [] } = flags
  const given = Object.entries({ repo, since, failed, last }).find(([, value]) => value !== undefined)
  if (words.length === 0 && !given && event.length === 0)
    throw new RelayError(
      'usage',
      'Nothing to replay: give files, folders, -, entry numbers or last; or --last, --event, --since, --failed',
    )
  if (words.length === 0) return
  if (given)
    throw new RelayError('usage', `--${given[0]}: selects entries, so it cannot be combined with ${words[0]}`)
  if (event.length > 1)
    throw new RelayError('usage', '--event: names the event of files, so it can be given only once')
}

/**
 * The deliveries that the words name, in their order; without words, those that the flags select in the journal, oldest first.
 * Entries are read when they are sent, and so are files, except the first ({@link createCheckAhead}).
 * @throws RelayError `usage`, `no_match`; as {@link findFixtures}.
 */
export async function selectItems(
  context: Context,
  words: readonly string[],
  flags: FilterFlags,
  selection: Selection,
): Promise<Item[]> {
  if (words.length === 0) return fromJournal(flags, selection.journal)
  const items: Item[] = []
  const checkAhead = createCheckAhead()
  for (const word of words) {
    if (isEntry(word)) items.push(await namedEntry(selection.journal(), word))
    else
      for await (const item of fromFiles(context, word, flags, selection)) items.push(await checkAhead(item))
  }
  return items
}

/** Bytes of fixtures that are checked before anything is sent: those of most tests. Bounds memory and the wait before sending. */
export const CHECKED_AHEAD = 8_388_608
/** Bytes of a fixture besides its body: headers and names. */
const OVERHEAD = 4096

/** Loads the first items it is given, and leaves the others unchanged. @throws RelayError as their loading. */
export function createCheckAhead(): (item: Item) => Promise<Item> {
  let size = 0
  return async (item) => {
    if (size >= CHECKED_AHEAD) return item
    const recorded = await item.load()
    size += OVERHEAD + (recorded?.body.length ?? 0)
    return { name: item.name, load: async () => recorded }
  }
}

async function fromJournal(flags: FilterFlags, open: () => Journal): Promise<Item[]> {
  const filter = readFilter(flags, Date.now())
  const journal = open()
  const numbers: number[] = []
  for await (const { n } of journal.select(filter)) numbers.push(n)
  if (numbers.length === 0) throw new RelayError('no_match', 'No delivery in the journal matches')
  return numbers.toReversed().map((n) => entryItem(journal, n))
}

async function namedEntry(journal: Journal, word: string): Promise<Item> {
  return entryItem(journal, (await findEntry(journal, word)).n)
}

function entryItem(journal: Journal, n: number): Item {
  return { name: `#${n}`, load: () => journal.read(n) }
}

async function* fromFiles(
  { cwd, stdin, signal }: Context,
  word: string,
  { event }: FilterFlags,
  { provider }: Selection,
): AsyncGenerator<Item> {
  const file = word === '-' ? word : path.resolve(cwd, word)
  const options = { event: event?.[0], provider, stdin, signal }
  for await (const { name, load } of findFixtures([file], options)) {
    yield {
      // Relative, so that a report is the same on every machine.
      name: word === '-' ? name : path.relative(cwd, name),
      // A fixture checked ahead keeps only the bytes of its body, not the text of its file.
      load: async () => fromFixture(load()),
    }
  }
}
