import { toRelayError } from '../../base/errors.js'
import { type Condition, DeliveryView } from '../../dispatch/where.js'
import type { Filter } from '../../journal/filter.js'
import type { Journal } from '../../journal/journal.js'
import type { Summary } from '../../journal/types.js'
import { logCommand } from '../commands/log.js'
import { type FilterFlags, readFilter, warnOfMatches } from '../journal.js'
import { listed, summaryObject, withReasons } from '../output/deliveries.js'
import { openProfile } from '../profile.js'
import { listLine, refusedLine } from './brief.js'
import { requireKnownSources } from './known.js'
import { noteFrom, Notes } from './notes.js'
import { readConditions, requireKnownPaths } from './where.js'
import { type Call, chosenOptions, runForAgent } from './tool.js'
import { shellWith } from '../command.js'

/** Options of `relay log` that the tool has. */
export const LIST_OPTIONS = [
  'event',
  'source',
  'repo',
  'text',
  'since',
  'until',
  'status',
  'refused',
] as const
const FILTERS: readonly string[] = LIST_OPTIONS.filter((name) => name !== 'refused')
/** Those that say nothing about refused requests. */
export const FILTERS_OF_JOURNAL = FILTERS.filter((name) => name !== 'source')

/** Most deliveries that are counted for a total: a second or two. */
const MAX_COUNTED = 100_000
/** More requests than a running relay remembers. */
const MAX_LAST = 999_999
/** Most bodies that are read for conditions in one call. */
const MAX_READ = 5000

/** Arguments of `list_deliveries` in addition to the filter. */
interface Given {
  readonly last: number
  readonly before?: number | undefined
  readonly where?: readonly string[] | undefined
  readonly fields?: readonly string[] | undefined
}

/**
 * Lists the newest deliveries that match, oldest first as `relay log` does: one line each, how many match in all, and
 * whether there are older ones, with the number to give as `before` for them.
 * @throws RelayError `usage`; `storage`
 */
export async function deliveryList(call: Call, given: Given): Promise<object> {
  const notes = new Notes()
  const shell = shellWith(call.shell, { out: notes })
  const flags: FilterFlags = chosenOptions(call.given, FILTERS)
  const filter = readFilter(flags, Date.now())
  const conditions = readConditions(given.where ?? [])
  await using profile = await openProfile(shell, call.flags)
  await requireKnownSources(profile, filter)
  await warnOfMatches(shell, profile, filter)
  const journal = await profile.journal().catch((error: unknown) => {
    // There is none yet.
    if (toRelayError(error).kind !== 'no_match') throw error
    notes.list.push(noteFrom(error))
    return undefined
  })
  if (!journal) {
    for (const note of notes.list) call.notes.add(note)
    return { deliveries: [], refused: [], total: 0, more: false, next: null }
  }
  await requireKnownPaths(journal, filter, conditions)
  const page = await pageOf(journal, filter, conditions, given, shell.signal)
  for (const note of notes.list) call.notes.add(note)
  if (page.found.length === 0) call.notes.add(emptyText(await journal.count(), given))
  const now = Date.now()
  const deliveries: object[] = []
  for (const summary of await journal.summaries(page.found.toReversed())) {
    const { progress } = await listed(journal, summary)
    const explained = withReasons(summary.n, progress, profile.instance)
    deliveries.push(listLine(summaryObject(summary, explained), given.fields ?? [], now))
  }
  const { total, next } = page
  return { deliveries, refused: [], total, more: next !== null, next }
}

/** Lists the newest requests that the running relay refused, oldest first, and how many there are in all. */
export async function refusedList(call: Call, { last }: Given): Promise<object> {
  const flags = { ...chosenOptions(call.given, [...LIST_OPTIONS]), last: String(MAX_LAST) }
  const { objects } = await runForAgent(call, logCommand, flags, true)
  const all = objects.filter((each) => 'type' in each && each.type === 'refused')
  const now = Date.now()
  const refused = all.slice(-last).map((each) => refusedLine(each, now))
  return { deliveries: [], refused, total: all.length, more: all.length > last, next: null }
}

function emptyText(count: number, { before }: Given): string {
  if (count === 0) return 'The journal is empty'
  return before === undefined ? 'No delivery in the journal matches' : 'No older delivery matches'
}

/** Finds the numbers of a page, newest first. `total` is null if it would take too long. */
async function pageOf(
  journal: Journal,
  filter: Filter,
  conditions: readonly Condition[],
  { last, before = Infinity }: Given,
  signal: AbortSignal,
): Promise<{ readonly found: number[]; readonly total: number | null; readonly next: number | null }> {
  const found: number[] = []
  // Reading bodies takes long, so that only this page is read.
  if (conditions.length > 0) {
    let read = 0
    for await (const summary of journal.select({ ...filter, ...(before < Infinity && { before }) })) {
      signal.throwIfAborted()
      // The next page begins below the oldest delivery that was read.
      if (found.length === last || read === MAX_READ) return { found, total: null, next: summary.n + 1 }
      read += 1
      if (await holdFor(journal, summary, conditions)) found.push(summary.n)
    }
    return { found, total: before === Infinity ? found.length : null, next: null }
  }
  let [total, older] = [0, false]
  for await (const { n } of journal.select(filter)) {
    signal.throwIfAborted()
    total += 1
    if (n < before && found.length < last) found.push(n)
    else if (n < before) older = true
    if (total > MAX_COUNTED && older) return { found, total: null, next: found.at(-1) ?? null }
  }
  return { found, total, next: older ? (found.at(-1) ?? null) : null }
}

async function holdFor(journal: Journal, { n }: Summary, conditions: readonly Condition[]): Promise<boolean> {
  const entry = await journal.read(n)
  if (!entry) return false
  const view = new DeliveryView(entry)
  return conditions.every(({ holds }) => holds(view))
}
