import { deadline } from '../../../base/abort.js'
import { RelayError } from '../../../base/errors.js'
import { formatDuration, parseDuration } from '../../../base/time.js'
import type { Entry, Summary } from '../../../journal/types.js'
import { parseFilter } from '../../../journal/filter.js'
import { hasFailed } from '../../../journal/types.js'
import type { Context } from '../../context.js'
import { awaitForwarded } from '../../journal/forwarded.js'
import { entryObject } from '../../journal/object.js'
import { awaitJournal, isJournalMissing, type JournalReader, openJournalReader } from '../../journal/open.js'
import { createPrinter } from '../../journal/printer.js'
import { progressOf } from '../../journal/progress.js'
import { warnOfMatches } from '../../journal/warn-of-match.js'
import { attach, type Attached } from '../../session/attach.js'
import { startCommand } from '../../session/start-command.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { type Criteria, findFirst } from './find-first.js'
import { parseWhere } from './where.js'

type WaitFlags = CommonFlags & {
  readonly where?: readonly string[]
  readonly since: string
  readonly repo?: string
  readonly text?: string
  readonly timeout?: string
  readonly forwarded?: boolean
}

/** The limit while an instance runs, unless `--timeout` sets another. */
const DEFAULT_LIMIT_MS = 300_000

/** Runs `relay wait`. */
export async function runWait(context: Context, flags: WaitFlags, match: string): Promise<void> {
  const criteria = readCriteria(match, flags)
  const given = readTimeout(flags)
  const attached = await attach(context, flags, { mayWait: given !== undefined })
  warnOfMatches(attached, [match])
  const { output, instance } = attached
  const limit = given ?? (instance ? DEFAULT_LIMIT_MS : 0)
  const end = performance.now() + limit
  const wanted = wantedText(match, flags)
  const late = (what: string): RelayError => (limit === 0 ? notRunning(attached) : timedOut(what, limit))
  let waits = limit === 0
  const onWait = (): void => {
    if (waits) return
    waits = true
    if (flags.json) return
    if (!instance)
      output.say(`No relay is running for profile ${attached.options.profile}; waiting all the same`)
    if (context.stderr.isTTY === true)
      output.say(`Waiting up to ${formatDuration(limit)} for ${wanted}. Ctrl-C cancels`)
  }
  if (!(await hasJournal(attached, limit, { signal: context.signal, onWait })))
    throw late(`No delivery matched ${wanted}`)
  await using reader = await openJournalReader(attached)
  const found = await find(reader, criteria, flags, end, { signal: context.signal, onWait })
  if (found === undefined) throw late(`No delivery matched ${wanted}`)
  const { entry, summary } = found
  if (!summary) throw late(`#${entry.n} was received, but not forwarded`)
  if (flags.json) output.object(entryObject(entry, await progressOf(reader.journal, summary)))
  else await createPrinter(reader, {}).print(summary)
  if (flags.forwarded && hasFailed(summary))
    throw new RelayError('target_failed', `#${summary.n} failed at a target`)
}

/** `push of octo/demo and ref==refs/heads/main` */
function wantedText(match: string, { repo, text, where = [] }: WaitFlags): string {
  const place = repo === undefined ? '' : ` of ${repo}`
  return [match + place, ...(text === undefined ? [] : [JSON.stringify(text)]), ...where].join(' and ')
}

interface WaitOptions {
  readonly signal: AbortSignal
  /** Called when it begins to wait. */
  readonly onWait: () => void
}

/** The entry, with its summary unless `--forwarded` waits for more than the time that is left. */
async function find(
  { journal }: JournalReader,
  criteria: Criteria,
  flags: WaitFlags,
  end: number,
  options: WaitOptions,
): Promise<{ readonly entry: Entry; readonly summary: Summary | undefined } | undefined> {
  const found = await findFirst(journal, criteria, end - performance.now(), options)
  if (!found || !flags.forwarded) return found
  const { entry } = found
  const summary = await awaitForwarded(journal, found.summary, end - performance.now(), options)
  return { entry, summary }
}

/** Whether the profile has a journal within the time limit. */
async function hasJournal(
  attached: Attached,
  limit: number,
  { signal, onWait }: WaitOptions,
): Promise<boolean> {
  try {
    if (!isJournalMissing(attached)) return true
    onWait()
    await awaitJournal(attached, { signal: deadline(limit, signal) })
    return true
  } catch (error) {
    if (signal.aborted) throw error
    return false
  }
}

function readTimeout({ timeout }: WaitFlags): number | undefined {
  if (timeout === undefined) return undefined
  const limit = parseDuration(timeout)
  if (limit === undefined) throw new RelayError('usage', '--timeout: must be a duration such as 30s or 5m')
  return limit
}

/** Nothing new can come. */
function notRunning({ options: { profile }, saved }: Attached): RelayError {
  const start = startCommand({ profile, sandbox: saved?.sandbox ?? false })
  return new RelayError(
    'unavailable',
    `No relay is running for profile ${profile}. Start it with ${start}, or wait for it with --timeout 5m`,
  )
}

function timedOut(what: string, limit: number): RelayError {
  return new RelayError('timed_out', `${what} within ${formatDuration(limit)}`)
}

function readCriteria(match: string, { where = [], since, repo, text }: WaitFlags): Criteria {
  const filter = parseFilter({ event: [match], since, repo, text }, Date.now(), (part) => `--${part}`)
  return { filter, where: where.map(parseWhere) }
}
