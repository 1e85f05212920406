import { RelayError } from '../../base/errors.js'
import { formatDuration, parseDuration } from '../../base/time.js'
import { type Filter, matchesFilter } from '../../journal/filter.js'
import type { Journal } from '../../journal/journal.js'
import type { Entry, Summary } from '../../journal/types.js'
import { type Condition, parseCondition, DeliveryView } from '../../dispatch/where.js'
import { EVENTS, SOURCE_OPTION, REPO_OPTION, TEXT_OPTION, SINCE, STORED } from '../options.js'
import { define, type Flags, printEach, type Shell } from '../command.js'
import {
  awaitForwarded,
  awaitJournal,
  checkForwarded,
  type FilterFlags,
  hasJournal,
  entriesAfter,
  readFilter,
  warnOfMatches,
} from '../journal.js'
import { entryObject, withShownBody } from '../output/delivery.js'
import { type Listed, listed, Printer } from '../output/deliveries.js'
import { wakeups } from '../follow.js'
import { notServed } from '../advice.js'
import { openProfile, type Profile } from '../profile.js'

export const waitCommand = define({
  description: `Waits until a delivery matches, and prints it (the first, if several match). A delivery of the last 10 seconds counts
too, so that none is missed between an action and the wait. With --forwarded, also waits until forwarding to every target has
succeeded or failed. Without a running relay serve it ends at once, unless --timeout is given.`,
  examples: `relay wait issue_comment.created --timeout 1h
git push && relay wait push --where "after==$(git rev-parse HEAD)"
relay wait issue_comment --where 'comment.body ~ ^/ship'
relay trigger push && relay wait push --forwarded --timeout 30s
relay wait stripe/checkout.session.completed --timeout 10m
relay wait ping --since now --json | jq -r .payload.zen`,
  details: () => [
    'Where:',
    [
      ['a.b[0]==value', 'equals this text, number, true, false or null; quote it to mean text'],
      ['a.b!=value', 'does not equal it; a missing field is null'],
      ['a.b~pattern', 'matches the regular expression (RE2: no lookaround)'],
      ['@repo, @source', 'in place of a.b: the repository owner/name, the source'],
    ],
  ],
  args: [['<match>', EVENTS]],
  options: [
    ['--where <expression>', 'payload must match this expression; all must match', { repeatable: true }],
    SOURCE_OPTION,
    REPO_OPTION,
    TEXT_OPTION,
    ['--since <when>', `deliveries received since: ${SINCE}`, { default: '10s' }],
    ['--forwarded', 'wait until it was forwarded; exit 3 if that failed at a target'],
    ['--timeout <duration>', 'how long to wait', { defaultText: '5m while relay serve runs' }],
  ],
  env: STORED.env,
  exits: [[3, 'it failed at a target'], [7, 'nothing matched in time, or forwarding took longer'], 130],
  run: runWait,
  print: printEach((waited: Waited, out) => new Printer(out).print(waited)),
  json: ({ entry, progress }) => entryObject(entry, progress),
})

interface WaitFlags extends Flags, Pick<FilterFlags, 'repo' | 'source' | 'text'> {
  readonly where?: readonly string[]
  readonly since: string
  readonly timeout?: string
  readonly forwarded?: boolean
}

type WaitInput = WaitFlags & { readonly match: string }
type Waited = Listed & { readonly entry: Entry }

const DEFAULT_LIMIT_MS = 300_000

async function* runWait(shell: Shell, flags: WaitInput): AsyncGenerator<Waited> {
  const { out } = shell
  const { match, where = [], since, repo, source, text } = flags
  const filter = readFilter({ event: [match], since, repo, source, text }, Date.now())
  const criteria = { filter, where: where.map((each) => parseCondition(each, '--where')) }
  const given = flags.timeout === undefined ? undefined : parseDuration(flags.timeout)
  if (flags.timeout !== undefined && given === undefined)
    throw new RelayError('usage', '--timeout: must be a duration such as 30s or 5m')
  await using profile = await openProfile(shell, flags, { mustExist: given === undefined })
  await warnOfMatches(shell, profile, filter)
  const { instance, name, unreachable } = profile
  const limit = given ?? (instance ? DEFAULT_LIMIT_MS : 0)
  const end = performance.now() + limit
  const wanted = wantedText(match, flags)
  const late = (what: string): RelayError => {
    if (limit > 0) return new RelayError('timed_out', `${what} within ${formatDuration(limit)}`)
    if (!unreachable) return notServed(profile, ', or wait for it with --timeout 5m')
    return new RelayError('unavailable', `${what}, and none arrives until the process answers`)
  }
  let isWaiting = limit === 0
  const onWait = (): void => {
    if (isWaiting) return
    isWaiting = true
    if (shell.json) return
    if (!instance && !unreachable) out.say(`No relay is running for profile ${name}; waiting all the same`)
    if (shell.stderr.isTTY === true)
      out.say(`Waiting up to ${formatDuration(limit)} for ${wanted}. Ctrl-C cancels`)
  }
  if (!hasJournal(profile)) {
    onWait()
    if (!(await awaitJournal(shell, profile, limit))) throw late(`No delivery matched ${wanted}`)
  }
  const journal = await profile.journal()
  const found = await findFirst(shell, journal, criteria, { profile, end, onWait })
  if (!found) throw late(`No delivery matched ${wanted}`)
  const { entry } = found
  const summary = flags.forwarded
    ? await awaitForwarded(shell, journal, found.summary, { profile, limit: end - performance.now() })
    : found.summary
  if (!summary) throw late(`#${entry.n} was received, but not forwarded`)
  yield { entry: await withShownBody(entry), ...(await listed(journal, summary)) }
  if (flags.forwarded) await checkForwarded(shell, profile, [summary])
}

/** Formats `push of octo/demo and ref==refs/heads/main`. */
function wantedText(match: string, { repo, source, text, where = [] }: WaitFlags): string {
  const place = [source, repo].map((each) => (each === undefined ? '' : ` of ${each}`)).join('')
  return [match + place, ...(text === undefined ? [] : [JSON.stringify(text)]), ...where].join(' and ')
}

/**
 * Finds the first matching entry by number, whether it exists or is appended until `end` (of `performance.now`). The
 * filter's `since` applies to existing entries; later ones always pass it, whatever their time. `onWait` is called if
 * no existing entry matches.
 */
async function findFirst(
  shell: Shell,
  journal: Journal,
  { filter, where }: { readonly filter: Filter; readonly where: readonly Condition[] },
  { profile, end, onWait }: { readonly profile: Profile; readonly end: number; readonly onWait: () => void },
) {
  const find = async (summary: Summary) => {
    const entry = await journal.read(summary.n)
    const subject = entry && new DeliveryView(entry)
    return subject && where.every(({ holds }) => holds(subject)) ? { entry, summary } : undefined
  }
  // Read first, so that no entry falls between the existing and the new ones.
  const last = await journal.newest()
  const numbers: number[] = []
  for await (const { n } of journal.select({ ...filter, before: last + 1 })) {
    shell.signal.throwIfAborted()
    numbers.push(n)
  }
  for (const n of numbers.toReversed()) {
    const [summary] = await journal.summaries([n])
    const found = summary && (await find(summary))
    if (found) return found
  }
  onWait()
  const limited = wakeups(shell, profile, { limit: end - performance.now() })
  for await (const batch of entriesAfter(journal, last, filter, limited))
    for (const summary of batch) {
      const found = matchesFilter(summary, filter) && (await find(summary))
      if (found) return found
    }
  return undefined
}
