import { setImmediate } from 'node:timers/promises'
import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import type { WebhookSecrets } from '../../base/settings.js'
import type { Journal } from '../../journal/journal.js'
import type { Context } from '../context.js'
import { environmentHelp, exitCodesHelp, prepare, type RawOptions } from '../globals.js'
import type { Reading } from '../journal/open.js'
import type { OptionValues } from '../options.js'
import { printable } from '../output.js'
import { type SecretFlags, signingSecret } from '../signing-secret.js'

type VerifyFlags = RawOptions & SecretFlags

/** Declares `relay verify`. */
export function declareVerify(command: Command, context: Context, run = runVerify): void {
  command
    .description(
      `Tells of fixtures, or of deliveries of the journal, whether they are signed with the webhook secret, and what is the
matter with one that is not: another secret, or white space at its end; a body that was changed on its way, and how it
was written when it was signed; a form taken for JSON; a signature that is in another header, or not written as it
should be. It never shows a secret, or a signature that would be right.

Examples:
  relay verify opened.json
  relay verify last
  relay verify test/fixtures --secret-env GITHUB_WEBHOOK_SECRET
  relay verify - --json < opened.json | jq -r .reason`,
    )
    .argument('<file...>', 'fixtures, folders of them, -, numbers of entries, or last')
    .option('--secret-env <name>', 'the secret is in this variable (default: RELAY_WEBHOOK_SECRET)')
    .addHelpText(
      'after',
      () => `${environmentHelp(['home', 'store', 'webhookSecret', 'webhookSecretPrevious'])}
${exitCodesHelp([0, 1, 2, 5, 6, 130], { 0: 'all valid' })}`,
    )
    .action((words: readonly string[], _: unknown, self: Command) =>
      run(context, words, self.optsWithGlobals()),
    )
}

async function runVerify(context: Context, words: readonly string[], flags: VerifyFlags): Promise<void> {
  const [{ openReading }, { isEntry, selectItems }, { explainRecorded }, { verdictLine, verdictObject }] =
    await Promise.all([
      import('../journal/open.js'),
      import('../replay/select-items.js'),
      import('../verify/explain-recorded.js'),
      import('../verify/verdict.js'),
    ])
  const prepared = prepare(context, flags)
  const { output, options } = prepared
  const secrets = secretsOf(context, flags, options)
  await using reading = words.some(isEntry) ? await openReading(prepared) : undefined
  const items = await selectItems(
    context,
    words,
    {},
    { journal: () => journalOf(reading), provider: undefined },
  )
  const layout = {
    width: Math.max(...items.map(({ name }) => printable(name).length)),
    columns: lineLength(context),
    paint: output.resultPaint,
  }
  let invalid = 0
  for (const item of items) {
    const recorded = item.load()
    if (!recorded) continue
    const verdict = { name: item.name, recorded, explanation: explainRecorded(recorded, secrets) }
    if (!verdict.explanation.valid) invalid += 1
    if (flags.json) output.object(verdictObject(verdict))
    else output.result(verdictLine(verdict, layout))
    // A large one takes seconds, and Ctrl-C is heard only in between.
    await setImmediate(undefined, { signal: context.signal })
  }
  const of = items.length === 1 ? 'The signature does' : `${invalid} of ${items.length} signatures do`
  if (invalid > 0) throw new RelayError('invalid_signature', `${of} not fit`)
}

/** On a terminal a line is kept within it. */
function lineLength({ stdout }: Context): number {
  return stdout.isTTY === true ? (stdout.columns ?? 80) : Infinity
}

/** @throws RelayError `settings` without a secret to verify with. */
function secretsOf(context: Context, flags: VerifyFlags, options: OptionValues): WebhookSecrets {
  const current = signingSecret(context, flags, options)
  if (!current)
    throw new RelayError(
      'settings',
      'There is no webhook secret to verify with: set RELAY_WEBHOOK_SECRET, or name a variable with --secret-env',
    )
  const { webhookSecretPrevious: previous } = options
  const named = flags.secretEnv !== undefined
  return { current, previous: previous === undefined || named ? undefined : new Secret(previous) }
}

function journalOf(reading: Reading | undefined): Journal {
  if (!reading) throw new Error('unreachable: no word names an entry')
  return reading.journal
}
