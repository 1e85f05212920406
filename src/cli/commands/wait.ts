import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import { formatDuration, parseDuration } from '../../base/time.js'
import { hasFailed } from '../../journal/select.js'
import type { Context } from '../context.js'
import { environmentHelp, exitCodesHelp, prepare, type RawOptions } from '../globals.js'
import { collect } from '../journal/filter.js'
import type { Found, Wanted } from '../journal/find-first.js'
import type { Reading } from '../journal/open.js'

type WaitFlags = RawOptions & {
  readonly where?: readonly string[]
  readonly since: string
  readonly timeout: string
  readonly handedOn?: boolean
}

/** Declares `relay wait`. */
export function declareWait(command: Command, context: Context, run = runWait): void {
  command
    .description(
      `Waits until a delivery matches, and prints it; one that came shortly before counts too, so that nothing is missed
between an action and the wait. If several match, it is the one that came first. With --handed-on it waits on until that
is done with at every target of relay serve.

Examples:
  relay wait issue_comment.created --timeout 1h
  git push && relay wait push --where "after==$(git rev-parse HEAD)"
  relay wait issue_comment --where 'comment.body ~ ^/ship'
  relay trigger push && relay wait push --handed-on --timeout 30s
  relay wait ping --since now --json | jq -r .payload.zen

Where:
  a.b[0]==value  is this text, number, true, false or null; in quotes always text
  a.b!=value     is not; what is not there is null
  a.b~pattern    fits the regular expression, and within 250 ms`,
    )
    .argument('<match>', 'event or event.action, * for all of a part')
    .option('--where <expression>', 'and its payload is so; repeatable, all must hold', collect)
    .option('--since <when>', 'received since: 1h ago, a time such as 2026-01-31T12:00, or now', '10s')
    .option('--handed-on', 'and no target waits for it any more; exit 3 when it failed at one')
    .option('--timeout <duration>', 'how long to wait', '5m')
    .addHelpText(
      'after',
      () => `${environmentHelp(['home', 'store'])}
${exitCodesHelp([0, 1, 2, 3, 7, 130], { 3: 'it failed at a target', 7: 'nothing matched in time, or it was not handed on' })}`,
    )
    .action((match: string, _: unknown, command: Command) => run(context, match, command.optsWithGlobals()))
}

async function runWait(context: Context, match: string, flags: WaitFlags): Promise<void> {
  const wanted = await readWanted(match, flags)
  const limit = parseDuration(flags.timeout)
  if (limit === undefined) throw new RelayError('usage', '--timeout: must be a duration such as 30s or 5m')
  const [{ openReading }, { findFirst }, { handedOn }] = await Promise.all([
    import('../journal/open.js'),
    import('../journal/find-first.js'),
    import('../journal/handed-on.js'),
  ])
  await using reading = await openReading(prepare(context, flags), { mayCome: true })
  const { journal } = reading
  const { signal } = context
  const end = performance.now() + limit
  const found = await findFirst(journal, wanted, limit, { signal })
  if (!found) throw late(`No delivery matched ${wordsOf(match, flags)}`, limit)
  const summary = flags.handedOn
    ? await handedOn(journal, found.summary, end - performance.now(), { signal })
    : found.summary
  if (!summary) throw late(`#${found.entry.n} came, but was not handed on`, limit)
  await print(reading, flags, { ...found, summary })
  if (flags.handedOn && hasFailed(summary))
    throw new RelayError('target_failed', `#${summary.n} failed at a target`)
}

async function print(reading: Reading, flags: WaitFlags, { entry, summary }: Found): Promise<void> {
  if (flags.json) {
    const [{ entryObject }, { progressOf }] = await Promise.all([
      import('../journal/object.js'),
      import('../journal/progress.js'),
    ])
    return reading.output.object(entryObject(entry, progressOf(reading.journal, summary)))
  }
  const { createPrinter } = await import('../journal/printer.js')
  createPrinter(reading, flags).print(summary)
}

function late(what: string, limit: number): RelayError {
  return new RelayError('timed_out', `${what} within ${formatDuration(limit)}`)
}

function wordsOf(match: string, { where = [] }: WaitFlags): string {
  return [match, ...where].join(' and ')
}

async function readWanted(match: string, { where = [], since }: WaitFlags): Promise<Wanted> {
  const [{ parseMatch }, { parseSince }, { parseWhere }] = await Promise.all([
    import('../../journal/match.js'),
    import('../journal/instant.js'),
    import('../journal/where.js'),
  ])
  return { match: parseMatch(match), since: parseSince(since, Date.now()), where: where.map(parseWhere) }
}
