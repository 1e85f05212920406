import { setImmediate } from 'node:timers/promises'
import { DELIVERY_STATUSES, type Filter, matchesFilter } from '../../journal/filter.js'
import type { NamedTarget } from '../../dispatch/routes.js'
import { RelayError } from '../../base/errors.js'
import type { Journal } from '../../journal/journal.js'
import type { Summary } from '../../journal/types.js'
import { SINCE, STORED, REPO_OPTION, SOURCE_OPTION, EVENTS, TEXT_OPTION } from '../options.js'
import { define, type Flags, type Shell } from '../command.js'
import {
  awaitJournal,
  type FilterFlags,
  knownTargets,
  namedTargets,
  entriesAfter,
  readFilter,
  warnOfMatches,
} from '../journal.js'
import { type Listed, listed, withReasons, Printer, summaryObject } from '../output/deliveries.js'
import type { Output } from '../output/output.js'
import { dim } from '../output/text.js'
import { wakeups } from '../follow.js'
import { openProfile } from '../profile.js'
import { refusedItems, printRefused, type RefusedItem, refusedJson } from '../refused.js'

export const logCommand = define({
  description: `Lists the deliveries in the journal, oldest first: number, local time, event, repository, state of forwarding to each
target, and number of duplicates. For a source other than the code host, its name precedes the event. Works with or without a running relay serve.`,
  examples: `relay log
relay log --event pull_request --event 'issues.*' --since 1h
relay log --failed -n 100 --json | jq .n
relay log -f --repo octo/demo
relay log --status waiting --text v1.2.0
relay log --source stripe --event 'invoice.*'
relay log --refused`,
  options: [
    ['--event <match>', EVENTS, { repeatable: true }],
    SOURCE_OPTION,
    REPO_OPTION,
    ['--since <when>', `only deliveries received since: ${SINCE}`],
    ['--until <when>', 'only deliveries received before'],
    ['--status <status>', 'only deliveries with this state', { choices: DELIVERY_STATUSES }],
    ['--failed', 'only deliveries that failed at a target'],
    TEXT_OPTION,
    ['-n, --last <n>', 'the newest N', { default: '20' }],
    ['--refused', 'requests that were refused, with the reason, and handshakes; asks the running instance'],
    ['-f, --follow', 'print new deliveries and changes until Ctrl-C'],
  ],
  env: STORED.env,
  exits: [[0, 'success, also after Ctrl-C with --follow'], 6, 130],
  run: runLog,
  print,
  json,
})

type LogFlags = Flags & FilterFlags & { readonly follow?: boolean; readonly refused?: boolean }

type LogItem =
  | RefusedItem
  /** Names of the targets, before the first entry. */
  | { readonly type: 'names'; readonly named: readonly NamedTarget[]; readonly hasRoutes: boolean }
  /** Following entries, with aligned columns. */
  | { readonly type: 'page'; readonly page: readonly Summary[] }
  | ({ readonly type: 'entry' } & Listed)
  /** Number of entries, for a person. */
  | { readonly type: 'total'; readonly text: string }

/** Lists or follows entries. Ctrl-C ends `--follow` without an error. */
async function* runLog(shell: Shell, flags: LogFlags): AsyncGenerator<LogItem> {
  try {
    yield* flags.refused ? refusedItems(shell, flags) : list(shell, flags)
  } catch (error) {
    if (!flags.follow || !shell.signal.aborted) throw error
  }
}

async function* list(shell: Shell, flags: LogFlags): AsyncGenerator<LogItem> {
  const { out, signal } = shell
  const filter = readFilter(flags, Date.now())
  if (flags.follow && flags.until !== undefined)
    throw new RelayError('usage', '--follow: cannot be combined with --until')
  await using profile = await openProfile(shell, flags)
  await warnOfMatches(shell, profile, filter)
  if (flags.follow) await awaitJournal(shell, profile)
  const journal = await profile.journal()
  const isForPerson = out.isTerminal && !shell.json
  if (!shell.json) {
    const hasRoutes = namedTargets(profile).length > 0
    yield { type: 'names', named: await knownTargets(profile, journal), hasRoutes }
  }
  const entry = async (summary: Summary): Promise<LogItem> => {
    const { progress } = await listed(journal, summary)
    // An entry that is followed changes after it is printed.
    const shown = flags.follow ? progress : withReasons(summary.n, progress, profile.instance)
    return { type: 'entry', summary, progress: shown }
  }
  // Read first, so that an entry that is appended meanwhile is printed exactly once.
  const last = await journal.newest()
  const follower = flags.follow ? await createFollower(journal, filter, last) : undefined
  const numbers: number[] = []
  for await (const { n } of journal.select({ ...filter, before: last + 1 })) {
    numbers.push(n)
    if (numbers.length % PAGE === 0) await checkSignal(signal)
  }
  numbers.reverse()
  // Read in pages, since one statement would stay open while it writes: a paused pager would make the database's log
  // grow without end.
  for (let at = 0; at < numbers.length; at += PAGE) {
    const page = await journal.summaries(numbers.slice(at, at + PAGE))
    yield { type: 'page', page }
    for (const summary of page) {
      yield await entry(summary)
      follower?.printed(summary)
    }
    await checkSignal(signal)
  }
  const found = numbers.length
  if (follower)
    for await (const summary of follower.changes(wakeups(shell, profile))) yield await entry(summary)
  else if (found === 0)
    throw new RelayError(
      'no_match',
      last === 0 ? 'The journal is empty' : 'No delivery in the journal matches',
    )
  else if (isForPerson) yield { type: 'total', text: await totalText(journal, filter, found) }
}

async function print(items: AsyncIterable<LogItem>, out: Output): Promise<void> {
  let [printer, hasHeader] = [new Printer(out), false]
  for await (const item of items)
    if (item.type === 'names') printer = new Printer(out, item)
    else if (item.type === 'page') {
      for (const summary of item.page) printer.fit(summary)
      if (!hasHeader) printer.header()
      hasHeader = true
    } else if (item.type === 'entry') printer.print(item)
    else if (item.type === 'total') out.result(dim(item.text))
    else printRefused(item, out)
}

function json(item: LogItem) {
  if (item.type === 'entry') return summaryObject(item.summary, item.progress)
  return item.type === 'refused' || item.type === 'counts' ? refusedJson(item) : undefined
}

/** Formats `20 of 6,173 deliveries`, with advice to see more. */
async function totalText(journal: Journal, filter: Filter, found: number): Promise<string> {
  const total = await journal.count()
  const { last, ...others } = filter
  const number = (value: number): string => value.toLocaleString('en-US')
  const matching = Object.keys(others).length > 0 ? ' that match,' : ''
  const more = found < total && found === last ? `  ·  -n ${Math.max(100, found * 5)} shows more` : ''
  return `${number(found)}${matching} of ${number(total)} deliver${total === 1 ? 'y' : 'ies'}${more}`
}

/** Number of entries read at once, with aligned columns. There may be a million. */
const PAGE = 1000

/** Lets Ctrl-C and a closed pipe be noticed. @throws the signal's reason */
async function checkSignal(signal: AbortSignal): Promise<void> {
  await setImmediate()
  signal.throwIfAborted()
}

/** Number of matching entries that are watched for changes: some milliseconds of work each time. */
const MAX_WATCHED = 100

/** Follows the entries after number `after`, and later changes of earlier ones. */
export async function createFollower(journal: Journal, filter: Filter, after: number) {
  const { status: _, ...lasting } = filter
  const states = new Map<number, string>()
  const newest = (): number[] => [...states.keys()].toSorted((one, other) => one - other)
  for await (const summary of journal.select({ ...lasting, last: MAX_WATCHED, before: after + 1 }))
    states.set(summary.n, stateOf(summary))
  return {
    /** Records the state in which an entry was printed, so that it is not printed again in that state. */
    printed(summary: Summary): void {
      if (states.has(summary.n)) states.set(summary.n, stateOf(summary))
    },
    /**
     * Yields new entries that match, and the newest matching entries again when a duplicate or their forwarding status
     * changes them. A change can make an entry match. Reads the journal at each wakeup, and ends with them.
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
