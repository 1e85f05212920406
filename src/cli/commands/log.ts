import { setImmediate } from 'node:timers/promises'
import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import type { Filter } from '../../journal/select.js'
import type { Context } from '../context.js'
import { environmentHelp, exitCodesHelp, prepare, type RawOptions } from '../globals.js'
import { collect, DEFAULT_LAST, type FilterFlags, readFilter } from '../journal/filter.js'
import type { Reading } from '../journal/open.js'
import type { Printer } from '../journal/printer.js'

type LogFlags = RawOptions & FilterFlags & { readonly follow?: boolean }

/** Declares `relay log`. */
export function declareLog(command: Command, context: Context, run = runLog): void {
  command
    .description(
      `Lists the deliveries in the journal, oldest first: number, local time, event, place, how it stands with the targets
it is handed on to, and how often it came again. Works while relay serve runs, and without.

Examples:
  relay log
  relay log --event pull_request --event 'issues.*' --since 1h
  relay log --failed --last 100 --json | jq .n
  relay log --follow --repo octo/demo`,
    )
    .option('--event <match>', 'of this event or event.action, * for all of a part; repeatable', collect)
    .option('--repo <owner/name>', 'of this repository')
    .option('--since <when>', 'received since: 1h ago, a time such as 2026-01-31T12:00, or now')
    .option('--failed', 'that failed at one target or more')
    .option('--last <n>', `the newest so many (default: ${DEFAULT_LAST})`)
    .option('--follow', 'go on with what comes, and show again what changes, until Ctrl-C')
    .addHelpText(
      'after',
      () => `${environmentHelp(['home', 'store'])}
${exitCodesHelp([0, 1, 2, 6, 130], { 0: 'ok, also after Ctrl-C in --follow' })}`,
    )
    .action((_: unknown, command: Command) => run(context, command.optsWithGlobals()))
}

async function runLog(context: Context, flags: LogFlags): Promise<void> {
  const filter = readFilter(flags, Date.now())
  const [{ openReading }, { newest }, { createPrinter }] = await Promise.all([
    import('../journal/open.js'),
    import('../journal/entry-number.js'),
    import('../journal/printer.js'),
  ])
  await using reading = await openReading(prepare(context, flags), { mayCome: flags.follow })
  const printer = createPrinter(reading, flags)
  // Read first: what comes meanwhile is printed by the one or the other.
  const after = newest(reading.journal)
  const found = await printFound(reading, filter, after, printer, context.signal)
  if (flags.follow) await printComing(reading, filter, after, printer, context.signal)
  else if (found === 0) throw new RelayError('no_match', 'No delivery in the journal matches')
}

/** So many lines are made to fit each other; and after so many it is seen whether anybody still reads. */
const PAGE = 1000

/** Numbers are kept, not entries: there may be a million. */
async function printFound(
  { journal }: Reading,
  filter: Filter,
  upTo: number,
  printer: Printer,
  signal: AbortSignal,
): Promise<number> {
  const { select } = await import('../../journal/select.js')
  const numbers: number[] = []
  for (const { n } of select(journal, filter)) if (n <= upTo) numbers.push(n)
  numbers.reverse()
  for (let at = 0; at < numbers.length; at += PAGE) {
    const page = numbers.slice(at, at + PAGE).flatMap((n) => [...journal.summaries({ from: n, to: n })])
    for (const summary of page) printer.fit(summary)
    for (const summary of page) printer.print(summary)
    await setImmediate()
    signal.throwIfAborted()
  }
  return numbers.length
}

/** Until Ctrl-C, which is how it is meant to end. */
async function printComing(
  { journal }: Reading,
  filter: Filter,
  after: number,
  printer: Printer,
  signal: AbortSignal,
): Promise<void> {
  const { follow } = await import('../journal/follow.js')
  try {
    for await (const summary of follow(journal, filter, after, { signal })) printer.print(summary)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
