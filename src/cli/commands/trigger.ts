import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import type { Context } from '../context.js'
import { addOptions, environmentHelp, exitCodesHelp, prepare } from '../globals.js'
import { addSendOptions, SEND_ENVIRONMENT, type SendFlags } from '../replay/send-options.js'

type TriggerFlags = SendFlags & { readonly list?: boolean; readonly print?: boolean }

/** Declares `relay trigger`. */
export function declareTrigger(command: Command, context: Context, run = runTrigger): void {
  command
    .description(
      `Sends a delivery as the code host would, with a made-up payload that has every field a real one has, signed, to the
running relay serve or to any address.

Examples:
  relay trigger --list
  relay trigger push
  relay trigger issue_comment.created --set comment.body=/merge
  relay trigger pull_request.opened --to http://localhost:3000/hook
  relay trigger issues.opened --provider gitea --print > opened.json`,
    )
    .argument('[event]', 'event or event.action')
    .option('--list', 'list the events')
    .option('--print', 'print the fixture, and send nothing')
  addSendOptions(addOptions(command, ['provider']))
    .addHelpText(
      'after',
      () => `${environmentHelp(['provider', ...SEND_ENVIRONMENT])}
${exitCodesHelp([0, 1, 2, 3, 130], { 3: 'an answer was not the expected one' })}`,
    )
    .action((event: string | undefined, _: unknown, self: Command) =>
      run(context, event, self.optsWithGlobals()),
    )
}

async function runTrigger(context: Context, event: string | undefined, flags: TriggerFlags): Promise<void> {
  if (flags.list) return list(context, flags)
  if (event === undefined) throw new RelayError('usage', 'No event: relay trigger --list has them')
  if (flags.print) return print(context, event, flags)
  const [{ readSendFlags }, { openDestination }, { synthesize }, { fromFixture }, { run }] =
    await Promise.all([
      import('../replay/flags.js'),
      import('../replay/destination.js'),
      import('../../templates/synthesize.js'),
      import('../../journal/fixture.js'),
      import('../replay/run.js'),
    ])
  const plan = readSendFlags(flags)
  await using destination = await openDestination(context, flags, plan)
  const made = fromFixture(synthesize(destination.provider, event, Date.now()))
  await run(context, flags, plan, [{ name: event, load: () => made }], destination)
}

async function list(context: Context, flags: TriggerFlags): Promise<void> {
  const { triggers } = await import('../../templates/synthesize.js')
  const { output, options } = prepare(context, flags)
  for (const trigger of triggers(options.provider ?? 'github')) {
    const [event, action = null] = trigger.split('.')
    if (flags.json) output.object({ type: 'event', event, action })
    else output.result(trigger)
  }
}

/** Signed where there is a secret; replay signs it otherwise. */
async function print(context: Context, event: string, flags: TriggerFlags): Promise<void> {
  const [{ readSendFlags }, { signingSecret }, { synthesize }, replay, journal] = await Promise.all([
    import('../replay/flags.js'),
    import('../signing-secret.js'),
    import('../../templates/synthesize.js'),
    import('../../replay/prepare.js'),
    import('../../journal/fixture.js'),
  ])
  const plan = readSendFlags(flags)
  const { output, options } = prepare(context, flags)
  const made = synthesize(options.provider ?? 'github', event, Date.now())
  const request = replay.prepare(journal.fromFixture(made), {
    ...plan,
    secret: signingSecret(context, flags, options),
  })
  const fixture = journal.toFixture({ ...made, deliveryId: made.delivery, ...request })
  output.exactly(journal.fixtureText(fixture))
}
