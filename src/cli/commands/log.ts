import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../../base/errors.js'
import { type Filter, matchesFilter } from '../../journal/filter.js'
import type { Journal } from '../../journal/journal.js'
import type { Summary } from '../../journal/types.js'
import type { Flags, Shell } from '../command.js'
import {
  awaitJournal,
  type FilterFlags,
  namedTargets,
  openJournal,
  entriesAfter,
  readFilter,
  warnOfMatches,
} from '../journal.js'
import { Printer } from '../output/deliveries.js'
import { dim } from '../output/text.js'
import { looks } from '../follow.js'
import { attach } from '../profile.js'
import { logRefused } from '../refused.js'

type LogFlags = Flags & FilterFlags & { readonly follow?: boolean; readonly refused?: boolean }

/** Runs `relay log`. Ctrl-C ends `--follow` normally. */
export async function runLog(shell: Shell, flags: LogFlags): Promise<void> {
  if (flags.refused) return logRefused(shell, flags)
  await list(shell, flags).catch((error: unknown) => {
    if (!flags.follow || !shell.signal.aborted) throw error
  })
}

async function list(shell: Shell, flags: LogFlags): Promise<void> {
  const { out, signal } = shell
  const filter = readFilter(flags, Date.now())
  if (flags.follow && flags.until !== undefined)
    throw new RelayError('usage', '--follow: cannot be combined with --until')
  const attached = await attach(shell, flags)
  await warnOfMatches(shell, attached, filter)
  if (flags.follow) await awaitJournal(attached, { signal })
  await using journal = await openJournal(attached)
  const isForPerson = out.isTerminal && !shell.json
  const named = isForPerson ? namedTargets(attached) : []
  const printer = new Printer(shell, journal, named)
  // Read first, so that every entry appended meanwhile is printed by one of the two functions.
  const last = await journal.newest()
  const follower = flags.follow ? await createFollower(journal, filter, last) : undefined
  const numbers: number[] = []
  for await (const { n } of journal.select({ ...filter, before: last + 1 })) {
    numbers.push(n)
    if (numbers.length % PAGE === 0) await hearSignal(signal)
  }
  numbers.reverse()
  // Pages, not one statement that stays open while it writes: a paused pager would make the database's log grow without end.
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
  const found = numbers.length
  if (follower)
    for await (const summary of follower.changes(looks(shell, attached))) await printer.print(summary)
  else if (found === 0)
    throw new RelayError(
      'no_match',
      last === 0 ? 'The journal is empty' : 'No delivery in the journal matches',
    )
  else if (isForPerson) out.result(dim(await totalText(journal, filter, found)))
}

/** `20 of 6,173 deliveries`, and how to see more of them. */
async function totalText(journal: Journal, filter: Filter, found: number): Promise<string> {
  const total = await journal.count()
  const { last, ...others } = filter
  const number = (value: number): string => value.toLocaleString('en-US')
  const matching = Object.keys(others).length > 0 ? ' that match,' : ''
  const more = found < total && found === last ? `  ·  -n ${Math.max(100, found * 5)} shows more` : ''
  return `${number(found)}${matching} of ${number(total)} deliver${total === 1 ? 'y' : 'ies'}${more}`
}

/** Entries read at once, and whose columns are aligned with each other. There may be a million. */
const PAGE = 1000

/** Lets Ctrl-C and a closed pipe be noticed. @throws the signal's reason. */
async function hearSignal(signal: AbortSignal): Promise<void> {
  await setImmediate()
  signal.throwIfAborted()
}

/** The newest matching entries that are watched for changes: some milliseconds of work per look. */
const MAX_WATCHED = 100

/** Follows the entries after number `after`, and the changes of earlier ones from now on. */
export async function createFollower(journal: Journal, filter: Filter, after: number) {
  const { status: _, ...lasting } = filter
  const states = new Map<number, string>()
  const newest = (): number[] => [...states.keys()].toSorted((one, other) => one - other)
  for await (const summary of journal.select({ ...lasting, last: MAX_WATCHED, before: after + 1 }))
    states.set(summary.n, stateOf(summary))
  return {
    /** Notes the state in which an entry was printed, so that it is not printed again in that state. */
    printed(summary: Summary): void {
      if (states.has(summary.n)) states.set(summary.n, stateOf(summary))
    },
    /**
     * New entries that match, and the newest matching entries again when a duplicate or the state of their forwarding changes them. An
     * entry can begin to match by such a change: no status lasts. Ends with the looks, at which the journal is read.
     */
    async *changes(moments: AsyncIterable<unknown>): AsyncGenerator<Summary> {
      for await (const batch of entriesAfter(journal, after, filter, moments)) {
        for (const summary of [...(await journal.summaries(newest())), ...batch]) {
          const { n } = summary
          const state = stateOf(summary)
          if (states.get(n) === state || !matchesFilter(summary, lasting)) continue
          states.set(n, state)
          if (matchesFilter(summary, filter)) yield summary
        }
        for (const n of newest().slice(0, -MAX_WATCHED)) states.delete(n)
      }
    },
  }
}

function stateOf({ forwards, duplicates }: Summary): string {
  return JSON.stringify([forwards, duplicates])
}
