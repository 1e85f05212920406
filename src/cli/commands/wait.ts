import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import { formatDuration, parseDuration } from '../../base/time.js'
import type { Context } from '../context.js'
import { environmentHelp, exitCodesHelp, type RawOptions } from '../globals.js'
import { collect } from '../journal/filter.js'
import type { Wanted } from '../journal/find-first.js'

type WaitFlags = RawOptions & {
  readonly where?: readonly string[]
  readonly since: string
  readonly timeout: string
}

/** Declares `relay wait`. */
export function addWait(program: Command, context: Context, run = runWait): void {
  program
    .command('wait')
    .summary('wait for a delivery')
    .description(
      `Waits until a delivery matches, and prints it; one that came shortly before counts too, so that nothing is missed
between an action and the wait. If several match, it is the one that came first.

Examples:
  relay wait issue_comment.created --timeout 1h
  git push && relay wait push --where "after==$(git rev-parse HEAD)"
  relay wait issue_comment --where 'comment.body ~ ^/ship'
  relay wait ping --since now --json | jq -r .payload.zen

Where:
  a.b[0]==value  is this text, number, true, false or null; in quotes always text
  a.b!=value     is not; what is not there is null
  a.b~pattern    fits the regular expression, and within 250 ms`,
    )
    .argument('<match>', 'event or event.action, * for all of a part')
    .option('--where <expression>', 'and its payload is so; repeatable, all must hold', collect)
    .option('--since <when>', 'received since: 1h ago, a time such as 2026-01-31T12:00, or now', '10s')
    .option('--timeout <duration>', 'how long to wait', '5m')
    .addHelpText(
      'after',
      `${environmentHelp(['home', 'store'])}
${exitCodesHelp([0, 1, 2, 7, 130], { 7: 'nothing matched in time' })}`,
    )
    .action((match: string, _: unknown, command: Command) => run(context, match, command.optsWithGlobals()))
}

async function runWait(context: Context, match: string, flags: WaitFlags): Promise<void> {
  const wanted = await readWanted(match, flags)
  const limit = parseDuration(flags.timeout)
  if (limit === undefined) throw new RelayError('usage', '--timeout: must be a duration such as 30s or 5m')
  const [{ openReading }, { findFirst }] = await Promise.all([
    import('../journal/open.js'),
    import('../journal/find-first.js'),
  ])
  await using reading = await openReading(context, flags, { mayCome: true })
  const found = await findFirst(reading.journal, wanted, limit, { signal: context.signal })
  if (!found) throw new RelayError('timed_out', `${describe(match, flags)} within ${formatDuration(limit)}`)
  const { journal, output } = reading
  const { entry, summary } = found
  if (flags.json) {
    const [{ entryObject }, { progressOf }] = await Promise.all([
      import('../journal/object.js'),
      import('../journal/progress.js'),
    ])
    return output.object(entryObject(entry, progressOf(journal, summary)))
  }
  const { createPrinter } = await import('../journal/printer.js')
  createPrinter(reading, flags).print(summary)
}

function describe(match: string, { where = [] }: WaitFlags): string {
  return `No delivery matched ${[match, ...where].join(' and ')}`
}

async function readWanted(match: string, { where = [], since }: WaitFlags): Promise<Wanted> {
  const [{ parseMatch }, { parseSince }, { parseWhere }] = await Promise.all([
    import('../../journal/match.js'),
    import('../journal/instant.js'),
    import('../journal/where.js'),
  ])
  return { match: parseMatch(match), since: parseSince(since, Date.now()), where: where.map(parseWhere) }
}
