import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../../../base/errors.js'
import type { Filter } from '../../../journal/select.js'
import type { Context } from '../../context.js'
import { type FilterFlags, readFilter } from '../../journal/filter.js'
import { awaitJournal, type JournalReader, openJournalReader } from '../../journal/open.js'
import { createPrinter, type Printer } from '../../journal/printer.js'
import { attach, type Attached } from '../../session/attach.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { createFollower, type Follower } from './follow.js'

type LogFlags = CommonFlags & FilterFlags & { readonly follow?: boolean }

/** Runs `relay log`. */
export async function runLog(context: Context, flags: LogFlags): Promise<void> {
  const { signal } = context
  const filter = readFilter(flags, Date.now())
  const attached = await attach(context, flags)
  if (flags.follow && !(await hasJournal(attached, signal))) return
  await using reader = await openJournalReader(attached)
  const printer = createPrinter(reader, flags)
  // Read first, so that every entry appended meanwhile is printed by one of the two functions.
  const last = await reader.journal.newest()
  const follower = flags.follow ? await createFollower(reader.journal, filter, last) : undefined
  const found = await printExisting(reader, { ...filter, before: last + 1 }, printer, follower, signal)
  if (follower) await printChanges(follower, printer, signal)
  else if (found === 0) throw new RelayError('no_match', 'No delivery in the journal matches')
}

/** Waits until there is a journal; false after Ctrl-C, which ends `--follow` normally. */
async function hasJournal(attached: Attached, signal: AbortSignal): Promise<boolean> {
  try {
    await awaitJournal(attached, { signal })
    return true
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
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

/** Prints until Ctrl-C, which ends it normally. */
async function printChanges(follower: Follower, printer: Printer, signal: AbortSignal): Promise<void> {
  try {
    for await (const summary of follower.changes({ signal })) await printer.print(summary)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
