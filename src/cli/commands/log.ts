import { setImmediate } from 'node:timers/promises'
import type { Cancellable } from '../../base/wait.js'
import { RelayError } from '../../base/errors.js'
import { type Filter, passes } from '../../journal/filter.js'
import type { Journal } from '../../journal/journal.js'
import type { Summary } from '../../journal/types.js'
import type { Flags, Shell } from '../command.js'
import {
  awaitJournal,
  type FilterFlags,
  namedTargets,
  openJournal,
  poll,
  readFilter,
  warnOfMatches,
} from '../journal.js'
import { createPrinter, type Printer } from '../output/deliveries.js'
import { dim } from '../output/text.js'
import { attach, type Attached } from '../profile.js'
import { describeCounts, listRefused, refusedLines, refusedObject } from '../refused.js'

type LogFlags = Flags & FilterFlags & { readonly follow?: boolean; readonly refused?: boolean }

/** Runs `relay log`. Ctrl-C ends `--follow` normally. */
export async function runLog(shell: Shell, flags: LogFlags): Promise<void> {
  if (flags.refused) return printRefused(shell, flags, await attach(shell, flags))
  try {
    await list(shell, flags)
  } catch (error) {
    if (!flags.follow || !shell.signal.aborted) throw error
  }
}

async function list(shell: Shell, flags: LogFlags): Promise<void> {
  const { out, signal } = shell
  const filter = readFilter(flags, Date.now())
  if (flags.follow && flags.until !== undefined)
    throw new RelayError('usage', '--follow: cannot be combined with --until')
  const attached = await attach(shell, flags)
  await warnOfMatches(shell, attached, flags.event ?? [])
  if (flags.follow) await awaitJournal(attached, { signal })
  await using reader = await openJournal(attached)
  const { journal } = reader
  const isForPerson = out.isTerminal && !shell.json
  const named = isForPerson ? namedTargets(attached) : []
  const printer = createPrinter(shell, journal, named)
  // Read first, so that every entry appended meanwhile is printed by one of the two functions.
  const last = await journal.newest()
  const follower = flags.follow ? await createFollower(journal, filter, last) : undefined
  const found = await printExisting(journal, { ...filter, before: last + 1 }, printer, follower, signal)
  if (follower) for await (const summary of follower.changes({ signal })) await printer.print(summary)
  else if (found === 0) throw new RelayError('no_match', 'No delivery in the journal matches')
  else if (isForPerson) out.result(dim(await totalText(journal, filter, found)))
}

/** `20 of 6,173 deliveries`, and how to see more of them. */
async function totalText(journal: Journal, filter: Filter, found: number): Promise<string> {
  const total = await journal.count()
  const { last, ...others } = filter
  const number = (value: number): string => value.toLocaleString('en-US')
  const isFiltered = Object.keys(others).length > 0
  const shown = isFiltered
    ? `${number(found)} that match, of ${number(total)}`
    : `${number(found)} of ${number(total)}`
  const more = found < total && found === last ? `  ·  -n ${Math.max(100, found * 5)} shows more` : ''
  return `${shown} deliver${total === 1 ? 'y' : 'ies'}${more}`
}

/** Entries read at once, and whose columns are aligned with each other. */
const PAGE = 1000

/**
 * Prints the matching entries, and returns how many there are. Holds their numbers, not the entries: there may be a million. No statement
 * stays open while it writes: a paused pager would make the database's log grow without end.
 */
async function printExisting(
  journal: Journal,
  filter: Filter,
  printer: Printer,
  follower: Follower | undefined,
  signal: AbortSignal,
): Promise<number> {
  const numbers: number[] = []
  for await (const { n } of journal.select(filter)) {
    numbers.push(n)
    if (numbers.length % PAGE === 0) await hearSignal(signal)
  }
  numbers.reverse()
  for (let at = 0; at < numbers.length; at += PAGE) {
    const page = await journal.summaries(numbers.slice(at, at + PAGE))
    for (const summary of page) printer.fit(summary)
    if (at === 0) printer.header()
    for (const summary of page) {
      await printer.print(summary)
      follower?.printed(summary)
    }
    await hearSignal(signal)
  }
  return numbers.length
}

/** Lets Ctrl-C and a closed pipe be noticed. @throws the signal's reason. */
async function hearSignal(signal: AbortSignal): Promise<void> {
  await setImmediate()
  signal.throwIfAborted()
}

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
  changes(options: Cancellable): AsyncGenerator<Summary>
}

/** Follows the entries after number `after`, and the changes of earlier ones from now on. */
export async function createFollower(
  journal: Pick<Journal, 'select' | 'after' | 'summaries' | 'withText'>,
  filter: Filter,
  after: number,
): Promise<Follower> {
  const { status: _, ...lasting } = filter
  const states = new Map<number, string>()
  const newest = (): number[] => [...states.keys()].toSorted((one, other) => one - other)
  for await (const summary of journal.select({ ...lasting, last: MAX_WATCHED, before: after + 1 }))
    states.set(summary.n, stateOf(summary))
  return {
    printed(summary) {
      if (states.has(summary.n)) states.set(summary.n, stateOf(summary))
    },
    async *changes(options) {
      for await (const batch of poll(journal, after, options)) {
        const added = await withText(journal, batch, filter)
        for (const summary of [...(await journal.summaries(newest())), ...added]) {
          const { n } = summary
          const state = stateOf(summary)
          if (states.get(n) === state || !passes(summary, lasting)) continue
          states.set(n, state)
          if (passes(summary, filter)) yield summary
        }
        for (const n of newest().slice(0, -MAX_WATCHED)) states.delete(n)
      }
    },
  }
}

/** Those of new entries whose body has the text that is looked for. */
export async function withText(
  journal: Pick<Journal, 'withText'>,
  batch: readonly Summary[],
  { text }: Filter,
): Promise<readonly Summary[]> {
  if (text === undefined) return batch
  const numbers = batch.map(({ n }) => n)
  const found = await journal.withText(numbers, text)
  return batch.filter(({ n }) => found.has(n))
}

function stateOf({ forwards, duplicates }: Summary): string {
  return JSON.stringify([forwards, duplicates])
}

/** Prints what the running instance refused, oldest first, and how many there were of each kind. */
async function printRefused(shell: Shell, flags: LogFlags, attached: Attached): Promise<void> {
  const { out } = shell
  const { event, repo, since, until, status, failed, text, follow } = flags
  const others = { event, repo, since, until, status, failed, text, follow }
  const given = Object.entries(others).find(([, value]) => value !== undefined)
  if (given) throw new RelayError('usage', `--refused cannot be combined with --${given[0]}`)
  const { last = Infinity } = readFilter(flags.last === undefined ? {} : { last: flags.last }, Date.now())
  const { refused, counts } = await listRefused(shell, attached)
  for (const each of refused.slice(Math.max(0, refused.length - last)))
    if (shell.json) out.object(refusedObject(each))
    else for (const line of refusedLines(each, out.width)) out.result(line)
  if (refused.length === 0) throw new RelayError('no_match', 'The running instance has refused no request')
  if (shell.json) out.object({ type: 'refused_counts', ...counts })
  else out.say(`refused since the start: ${describeCounts(counts)}`)
}
