import type { Command } from 'commander'
import type { Context } from '../context.js'
import { environmentHelp, exitCodesHelp, prepare, type RawOptions } from '../globals.js'

type ShowFlags = RawOptions & { readonly body?: boolean }

/** Declares `relay show`. */
export function declareShow(command: Command, context: Context, run = runShow): void {
  command
    .description(
      `Shows one delivery: its headers in order, its body, and every attempt to hand it on with the start of the target's
answer.

Examples:
  relay show last
  relay show 7 --body > body.json     the exact bytes
  relay show 7 --json | jq .payload.action`,
    )
    .argument('<entry>', 'number of the entry, or last')
    .option('--body', 'print the exact bytes of the body, and nothing else')
    .addHelpText('after', () => `${environmentHelp(['home', 'store'])}\n${exitCodesHelp([0, 1, 2, 6])}`)
    .action((entry: string, _: unknown, command: Command) => run(context, entry, command.optsWithGlobals()))
}

async function runShow(context: Context, text: string, flags: ShowFlags): Promise<void> {
  const [{ openReading }, { findEntry }, { progressOf }] = await Promise.all([
    import('../journal/open.js'),
    import('../journal/entry-number.js'),
    import('../journal/progress.js'),
  ])
  await using reading = await openReading(prepare(context, flags))
  const { journal, output } = reading
  const entry = findEntry(journal, text)
  if (flags.body) return output.exactly(entry.body)
  const progress = progressOf(journal, { n: entry.n, handOns: journal.handOns(entry.n) })
  if (flags.json) {
    const { entryObject } = await import('../journal/object.js')
    return output.object(entryObject(entry, progress))
  }
  const { entryPage } = await import('../journal/page.js')
  output.result(entryPage(entry, progress, output.resultPaint).join('\n'))
}
