import type { Command } from 'commander'
import type { Context } from '../context.js'
import { environmentHelp, exitCodesHelp } from '../globals.js'
import { collect, type FilterFlags } from '../journal/filter.js'
import { addSendOptions, SEND_ENVIRONMENT, type SendFlags } from '../replay/send-options.js'

type ReplayFlags = SendFlags & FilterFlags

/** Declares `relay replay`. */
export function declareReplay(command: Command, context: Context, run = runReplay): void {
  command
    .description(
      `Sends fixtures, or deliveries of the journal, to the running relay serve or to any address. The recorded bytes and
signature are sent as they are when the signature fits the secret, and are signed anew otherwise. Files are checked before
anything is sent, the first 8 MiB of them; what comes after is read when its turn comes.

Examples:
  relay replay last
  relay replay test/fixtures --to http://localhost:3000/hook --junit out.xml
  relay replay --event push --since 1h --stop
  relay replay --failed
  relay replay opened.json --set pull_request.number=7
  relay replay opened.json --tamper signature --expect 401
  relay replay push.json --times 10000 --concurrency 32
  echo '{"zen":"ok"}' | relay replay - --event ping`,
    )
    .argument('[file...]', 'fixtures, folders of them, -, numbers of entries, or last')
    .option('--event <match>', 'entries of this event; or what bare payload files are', collect)
    .option('--repo <owner/name>', 'entries of this repository')
    .option('--since <when>', 'entries received since: 1h ago, a time such as 2026-01-31T12:00')
    .option('--failed', 'entries that failed at a target, which alone gets them again (implies --keep-id)')
    .option('--last <n>', 'the newest so many of them')
  addSendOptions(command)
    .addHelpText(
      'after',
      () => `${environmentHelp(['provider', ...SEND_ENVIRONMENT])}
${exitCodesHelp([0, 1, 2, 3, 6, 130], { 3: 'an answer was not the expected one' })}`,
    )
    .action((words: readonly string[], _: unknown, self: Command) =>
      run(context, words, self.optsWithGlobals()),
    )
}

async function runReplay(context: Context, words: readonly string[], flags: ReplayFlags): Promise<void> {
  const [{ readSendFlags }, { openDestination }, { checkSelection, selectItems }, { run }] =
    await Promise.all([
      import('../replay/flags.js'),
      import('../replay/destination.js'),
      import('../replay/select-items.js'),
      import('../replay/run.js'),
    ])
  checkSelection(words, flags)
  const read = readSendFlags(flags)
  const plan = { ...read, keepId: read.keepId || flags.failed === true }
  await using destination = await openDestination(context, flags, plan)
  const items = await selectItems(context, words, flags, destination)
  await run(context, flags, plan, items, destination)
}
