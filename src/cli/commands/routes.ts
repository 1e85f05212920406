import type { Command } from 'commander'
import type { Context } from '../context.js'
import { addOptions, environmentHelp, exitCodesHelp, prepare, type RawOptions } from '../globals.js'
import { eventName } from '../delivery-line.js'
import type { OptionName } from '../options.js'
import { printable } from '../output.js'
import { handOnSettings } from '../settings.js'
import { table } from '../table.js'

const FLAGS: readonly OptionName[] = ['forward', 'exec', 'ignore']

const help = (): string => `${environmentHelp([...FLAGS, 'home', 'store'])}\n${exitCodesHelp([0, 1, 2, 6])}`

/** Declares `relay routes test`. */
export function declareRoutes(command: Command, context: Context, run = runTest): void {
  command
    .helpCommand(false)
    .description('Says where deliveries are handed on to.\n\nExamples:\n  relay routes test last')
    .addHelpText('after', help)
  const test = command
    .command('test')
    .summary('say which routes a delivery takes, and why')
    .description(
      `Says of every route whether a delivery of the journal takes it, and why. Routes given here stand in for those of the
settings, so that a change can be tried before it is made.

Examples:
  relay routes test last
  relay routes test 7 --forward 'pull_request.*=http://localhost:3000/pr'`,
    )
    .argument('<entry>', 'number of the entry, or last')
  addOptions(test, FLAGS)
    .addHelpText('after', help)
    .action((entry: string, _: unknown, command: Command) => run(context, entry, command.optsWithGlobals()))
}

async function runTest(context: Context, text: string, flags: RawOptions): Promise<void> {
  const prepared = prepare(context, flags)
  const [{ openReading }, { findEntry }, { createRouting, explain }] = await Promise.all([
    import('../journal/open.js'),
    import('../journal/entry-number.js'),
    import('../../dispatch/routing.js'),
  ])
  await using reading = await openReading(prepared)
  const { output, journal } = reading
  const entry = findEntry(journal, text)
  const { routes, ignore } = createRouting(handOnSettings(prepared.options))
  const explained = explain(routes, ignore, entry)
  if (flags.json) {
    const rows = explained.map(({ route, matched, why }) => ({ target: route.label, matched, why }))
    return output.object({ n: entry.n, event: entry.event, action: entry.action, routes: rows })
  }
  if (explained.length === 0)
    output.say(
      `#${entry.n} ${eventName(entry)}: there are no routes in the settings; those that a running serve was given as flags, give here too`,
    )
  const rows = explained.map(
    ({ route, matched, why }) => [matched ? 'yes' : 'no', printable(route.label), printable(why)] as const,
  )
  for (const line of table(rows)) output.result(line)
}
