import path from 'node:path'
import { deadline } from '../../base/wait.js'
import { RelayError } from '../../base/errors.js'
import { fromFixture } from '../../replay/fixture.js'
import { findFixtures } from '../../replay/load.js'
import type { Journal } from '../../journal/journal.js'
import { hasFailed, type Summary } from '../../journal/types.js'
import type { Shell } from '../command.js'
import { awaitForwarded, type FilterFlags, findEntry, readFilter } from '../journal.js'
import type { Output } from '../output/output.js'
import { type Item, openDestination, readPlan, send, type SendFlags } from './send.js'

type ReplayFlags = SendFlags & FilterFlags & { readonly forwarded?: boolean }

/** Runs `relay replay`. */
export async function runReplay(shell: Shell, flags: ReplayFlags, words: readonly string[]): Promise<void> {
  checkSelection(words, flags)
  const plan = readPlan(flags)
  if (flags.forwarded && plan.to !== undefined)
    throw new RelayError(
      'usage',
      '--forwarded: waits for the targets of the running relay serve, so it cannot be combined with --to',
    )
  await using destination = await openDestination(shell, flags, plan)
  const items = await selectItems(shell, words, flags, destination)
  // Under a new id, every target would get it again, not only those where it failed.
  const keepId = plan.keepId || flags.failed === true
  const watch = flags.forwarded ? await watchForwards(destination.journal()) : undefined
  await send(shell, { ...plan, keepId }, items, destination, { onAccepted: watch?.accepted })
  await watch?.end(shell.out, shell.signal)
}

const ENTRY = /^(?:#?\d{1,15}|last)$/

/** Whether a word names an entry of the journal rather than a file. */
export function isEntry(word: string): boolean {
  return ENTRY.test(word)
}

/** @throws RelayError `usage` when words and flags select nothing, or contradict each other. */
function checkSelection(words: readonly string[], flags: FilterFlags): void {
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

export interface Selection {
  readonly journal: () => Journal
  /** The provider of files that hold only a payload. */
  readonly provider: string | undefined
}

/**
 * The deliveries that the words name, in their order; without words, those that the flags select in the journal, oldest first.
 * Entries are read when they are sent, and so are files, except the first ({@link createCheckAhead}).
 * @throws RelayError `usage`, `no_match`; as {@link findFixtures}.
 */
export async function selectItems(
  shell: Shell,
  words: readonly string[],
  flags: FilterFlags,
  selection: Selection,
): Promise<Item[]> {
  if (words.length === 0) return fromJournal(flags, selection.journal)
  const items: Item[] = []
  const checkAhead = createCheckAhead()
  for (const word of words) {
    if (isEntry(word)) {
      const journal = selection.journal()
      items.push(entryItem(journal, (await findEntry(journal, word)).n))
    } else
      for await (const item of fromFiles(shell, word, flags, selection)) items.push(await checkAhead(item))
  }
  return items
}

/** Bytes of fixtures that are checked before anything is sent: those of most tests. Bounds memory and the wait before sending. */
const CHECKED_AHEAD = 8_388_608
/** Bytes of a fixture besides its body: headers and names. */
const OVERHEAD = 4096

/** Loads the first items it is given, and leaves the others unchanged. @throws RelayError as their loading. */
export function createCheckAhead(limit = CHECKED_AHEAD): (item: Item) => Promise<Item> {
  let size = 0
  return async (item) => {
    if (size >= limit) return item
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

function entryItem(journal: Journal, n: number): Item {
  return { name: `#${n}`, load: () => journal.read(n) }
}

async function* fromFiles(
  { cwd, stdin, signal }: Shell,
  word: string,
  { event }: FilterFlags,
  { provider }: Selection,
): AsyncGenerator<Item> {
  const file = word === '-' ? word : path.resolve(cwd, word)
  const options = { event: event?.[0], provider, stdin, signal }
  for await (const { name, load } of findFixtures([file], options))
    yield {
      // Relative, so that a report is the same on every machine.
      name: word === '-' ? name : path.relative(cwd, name),
      // Of a fixture that is checked ahead only the bytes of its body stay, not the text of its file.
      load: async () => fromFixture(load()),
    }
}

/** How long to wait for the targets: as long as `relay wait`. Milliseconds. */
const LIMIT_MS = 300_000
/** Entries that are read at once. */
const PAGE = 1000
/** Entries that an error names. */
const MAX_NAMED = 10

/** Follows deliveries that are sent to the instance, until they were forwarded. */
interface ForwardWatch {
  /** Adds a delivery that the instance has answered 200, so that the journal has it. */
  readonly accepted: (deliveryId: string) => void
  /**
   * Waits until every one was forwarded to all its targets.
   * @throws RelayError `target_failed` with the entries that failed at a target, `timed_out` after 5 minutes.
   */
  end(out: Output, signal: AbortSignal): Promise<void>
}

async function watchForwards(journal: Journal): Promise<ForwardWatch> {
  const before = await journal.newest()
  const ids = new Set<string>()
  return {
    accepted: (deliveryId) => void ids.add(deliveryId),
    async end(out, signal) {
      const end = performance.now() + LIMIT_MS
      const entries = await findEntries(journal, ids, before, deadline(LIMIT_MS, signal))
      const failed: number[] = []
      for (const entry of entries) {
        const summary = await awaitForwarded(journal, entry, end - performance.now(), { signal })
        if (!summary)
          throw new RelayError('timed_out', `#${entry.n} was received, but not forwarded within 5m`)
        if (hasFailed(summary)) failed.push(entry.n)
      }
      if (failed.length > 0) throw targetFailed(failed, entries.length)
      if (entries.length > 0) out.say(`${entries.length} forwarded`)
    },
  }
}

/** The entries with these delivery ids, oldest first: new ones, and of the others those that were sent again. */
async function findEntries(
  journal: Journal,
  ids: ReadonlySet<string>,
  before: number,
  signal: AbortSignal,
): Promise<readonly Summary[]> {
  const missing = new Set(ids)
  const found: Summary[] = []
  const take = (summary: Summary): void => {
    if (missing.delete(summary.deliveryId)) found.push(summary)
  }
  for (let last = before; missing.size > 0;) {
    const page = await journal.after(last, PAGE)
    for (const summary of page) take(summary)
    if (page.length < PAGE) break
    last = page.at(-1)?.n ?? last
  }
  if (missing.size > 0)
    for await (const summary of journal.select({ before: before + 1 })) {
      signal.throwIfAborted()
      take(summary)
      if (missing.size === 0) break
    }
  return found.toSorted((one, other) => one.n - other.n)
}

function targetFailed(failed: readonly number[], total: number): RelayError {
  const names = failed.slice(0, MAX_NAMED).map((n) => `#${n}`)
  const more = failed.length > MAX_NAMED ? ', …' : ''
  return new RelayError(
    'target_failed',
    `${failed.length} of ${total} failed at a target: ${names.join(', ')}${more}`,
  )
}
