import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../../../base/errors.js'
import type { Filter } from '../../../journal/filter.js'
import type { Context } from '../../context.js'
import { type FilterFlags, readFilter } from '../../journal/filter.js'
import { awaitJournal, type JournalReader, openJournalReader } from '../../journal/open.js'
import { createPrinter, type Printer } from '../../journal/printer.js'
import { dim } from '../../output/line.js'
import { warnOfMatches } from '../../journal/warn-of-match.js'
import { attach } from '../../session/attach.js'
import { namedTargets } from '../../session/current-routes.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { createFollower, type Follower } from './follow.js'
import { printRefused } from './refused.js'

type LogFlags = CommonFlags & FilterFlags & { readonly follow?: boolean; readonly refused?: boolean }

/** Runs `relay log`. Ctrl-C ends `--follow` normally. */
export async function runLog(context: Context, flags: LogFlags): Promise<void> {
  if (flags.refused) return printRefused(context, flags, await attach(context, flags))
  try {
    await list(context, flags)
  } catch (error) {
    if (!flags.follow || !context.signal.aborted) throw error
  }
}

async function list(context: Context, flags: LogFlags): Promise<void> {
  const { signal } = context
  const filter = readFilter(flags, Date.now())
  if (flags.follow && flags.until !== undefined)
    throw new RelayError('usage', '--follow: cannot be combined with --until')
  const attached = await attach(context, flags)
  warnOfMatches(attached, flags.event ?? [])
  if (flags.follow) await awaitJournal(attached, { signal })
  await using reader = await openJournalReader(attached)
  const isRows = reader.output.isTerminal && !flags.json
  const named = isRows ? await namedTargets(attached, { signal }) : []
  const printer = createPrinter(reader, { json: flags.json, named })
  // Read first, so that every entry appended meanwhile is printed by one of the two functions.
  const last = await reader.journal.newest()
  const follower = flags.follow ? await createFollower(reader.journal, filter, last) : undefined
  const found = await printExisting(reader, { ...filter, before: last + 1 }, printer, follower, signal)
  if (follower) for await (const summary of follower.changes({ signal })) await printer.print(summary)
  else if (found === 0) throw new RelayError('no_match', 'No delivery in the journal matches')
  else if (reader.output.isTerminal && !flags.json) await printTotal(reader, filter, found)
}

/** `20 of 6,173 deliveries`, and how to see more of them. */
async function printTotal({ journal, output }: JournalReader, filter: Filter, found: number): Promise<void> {
  const total = await journal.count()
  const { last, ...others } = filter
  const isFiltered = Object.keys(others).length > 0
  const number = (value: number): string => value.toLocaleString('en-US')
  const shown = isFiltered
    ? `${number(found)} that match, of ${number(total)}`
    : `${number(found)} of ${number(total)}`
  const more = found < total && found === last ? `  ·  -n ${Math.max(100, found * 5)} shows more` : ''
  output.result(dim(`${shown} deliver${total === 1 ? 'y' : 'ies'}${more}`))
}

/** Entries read at once, and whose columns are aligned with each other. */
const PAGE = 1000

/** Prints the matching entries. Holds their numbers, not the entries: there may be a million. */
async function printExisting(
  { journal }: JournalReader,
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
