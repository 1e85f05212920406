import path from 'node:path'
import { RelayError } from '../../base/errors.js'
import { fromFixture } from '../../journal/fixture.js'
import type { Journal } from '../../journal/journal.js'
import { findFixtures } from '../../journal/load-fixture.js'
import { select } from '../../journal/select.js'
import type { Context } from '../context.js'
import { findEntry } from '../journal/entry-number.js'
import { type FilterFlags, readFilter } from '../journal/filter.js'
import { createCheckAhead } from './check-ahead.js'
import type { Item } from './item.js'

/** What is selected in the journal: all that match, or the newest so many. */
const ALL = '999999999'
const ENTRY = /^(?:#?\d{1,15}|last)$/

/** Whether a word names an entry of the journal, and no file. */
export function isEntry(word: string): boolean {
  return ENTRY.test(word)
}

export interface Selection {
  readonly journal: () => Journal
  /** What bare payloads are delivered as. */
  readonly provider: string | undefined
}

/** @throws RelayError `usage` when words and flags together say nothing, or too much. */
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
    throw new RelayError('usage', `--${given[0]}: selects in the journal, so it does not go with ${words[0]}`)
  if (event.length > 1)
    throw new RelayError('usage', '--event: says what bare payloads are, so it is given once')
}

/**
 * What the words name, in their order; or, without words, what the flags find in the journal, oldest first. Entries are read
 * when their turn comes, and so are files, but for the first of them ({@link createCheckAhead}).
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
    if (isEntry(word)) items.push(entryItem(selection.journal(), findEntry(selection.journal(), word).n))
    else for await (const item of fromFiles(context, word, flags, selection)) items.push(checkAhead(item))
  }
  return items
}

function fromJournal(flags: FilterFlags, open: () => Journal): Item[] {
  const filter = readFilter({ ...flags, last: flags.last ?? ALL }, Date.now())
  const journal = open()
  const numbers = Array.from(select(journal, filter), ({ n }) => n).toReversed()
  if (numbers.length === 0) throw new RelayError('no_match', 'No delivery in the journal matches')
  return numbers.map((n) => entryItem(journal, n))
}

function entryItem(journal: Journal, n: number): Item {
  return {
    name: `#${n}`,
    load: () => journal.read(n),
  }
}

async function* fromFiles(
  { cwd, stdin, signal }: Context,
  word: string,
  { event }: FilterFlags,
  { provider }: Selection,
): AsyncGenerator<Item> {
  const given = word === '-' ? word : path.resolve(cwd, word)
  const here = path.join(cwd, path.sep)
  const options = { event: event?.[0], provider, stdin, signal }
  for await (const { name, load } of findFixtures([given], options)) {
    yield {
      name: name.startsWith(here) ? name.slice(here.length) : name,
      // Of one that is checked ahead the body's bytes alone: its text would be moved about in memory until its turn comes.
      load: () => fromFixture(load()),
    }
  }
}
