import { RelayError } from '../../../base/errors.js'
import { formatDuration, parseDuration } from '../../../base/time.js'
import { parseMatch } from '../../../journal/match.js'
import { hasFailed } from '../../../journal/select.js'
import type { Context } from '../../context.js'
import { parseSince } from '../../journal/instant.js'
import { entryObject } from '../../journal/object.js'
import { openJournalReader } from '../../journal/open.js'
import { createPrinter } from '../../journal/printer.js'
import { progressOf } from '../../journal/progress.js'
import { warnOfMatches } from '../../journal/warn-of-match.js'
import { type CommonFlags, prepare } from '../../settings/prepare.js'
import { type Criteria, findFirst } from './find-first.js'
import { awaitForwarded } from './forwarded.js'
import { parseWhere } from './where.js'

type WaitFlags = CommonFlags & {
  readonly where?: readonly string[]
  readonly since: string
  readonly timeout: string
  readonly forwarded?: boolean
}

/** Runs `relay wait`. */
export async function runWait(context: Context, flags: WaitFlags, match: string): Promise<void> {
  const criteria = readCriteria(match, flags)
  const limit = parseDuration(flags.timeout)
  if (limit === undefined) throw new RelayError('usage', '--timeout: must be a duration such as 30s or 5m')
  const prepared = prepare(context, flags)
  warnOfMatches(prepared, [match])
  await using reader = await openJournalReader(prepared, { allowMissing: true })
  const { journal, output } = reader
  const { signal } = context
  const end = performance.now() + limit
  const found = await findFirst(journal, criteria, limit, { signal })
  if (!found) throw timedOut(`No delivery matched ${[match, ...(flags.where ?? [])].join(' and ')}`, limit)
  const { entry } = found
  const summary = flags.forwarded
    ? await awaitForwarded(journal, found.summary, end - performance.now(), { signal })
    : found.summary
  if (!summary) throw timedOut(`#${entry.n} was received, but not forwarded`, limit)
  if (flags.json) output.object(entryObject(entry, await progressOf(journal, summary)))
  else await createPrinter(reader, {}).print(summary)
  if (flags.forwarded && hasFailed(summary))
    throw new RelayError('target_failed', `#${summary.n} failed at a target`)
}

function timedOut(what: string, limit: number): RelayError {
  return new RelayError('timed_out', `${what} within ${formatDuration(limit)}`)
}

function readCriteria(match: string, { where = [], since }: WaitFlags): Criteria {
  return { match: parseMatch(match), since: parseSince(since, Date.now()), where: where.map(parseWhere) }
}
