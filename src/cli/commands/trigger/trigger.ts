import { RelayError } from '../../../base/errors.js'
import { fixtureText, fromFixture, toFixture } from '../../../fixtures/fixture.js'
import { prepare as prepareRequest } from '../../../replay/prepare.js'
import { synthesize, triggers } from '../../../sandbox/synthesize.js'
import type { Context } from '../../context.js'
import { prepare } from '../../settings/prepare.js'
import { signingSecret } from '../../settings/signing-secret.js'
import { openDestination } from '../replay/destination.js'
import { run } from '../replay/run.js'
import type { SendFlags } from '../replay/send-options.js'
import { readPlan } from '../replay/send-plan.js'

type TriggerFlags = SendFlags & { readonly list?: boolean; readonly print?: boolean }

export async function runTrigger(context: Context, flags: TriggerFlags, event?: string): Promise<void> {
  if (flags.list) return list(context, flags)
  if (event === undefined) throw new RelayError('usage', 'No event given. relay trigger --list lists them')
  if (flags.print) return print(context, event, flags)
  const plan = readPlan(flags)
  await using destination = await openDestination(context, flags, plan)
  const recorded = fromFixture(synthesize(destination.provider, event, Date.now()))
  await run(context, flags, plan, [{ name: event, load: async () => recorded }], destination)
}

function list(context: Context, flags: TriggerFlags): void {
  const { output, options } = prepare(context, flags)
  for (const trigger of triggers(options.provider)) {
    const [event, action = null] = trigger.split('.')
    if (flags.json) output.object({ type: 'event', event, action })
    else output.result(trigger)
  }
}

/** Prints a fixture. It is signed if there is a secret; otherwise replay signs it. */
function print(context: Context, event: string, flags: TriggerFlags): void {
  const plan = readPlan(flags)
  const { output, options } = prepare(context, flags)
  const fixture = synthesize(options.provider, event, Date.now())
  const secret = signingSecret(context, flags, { options })
  const request = prepareRequest(fromFixture(fixture), { ...plan, secret })
  output.exactly(fixtureText(toFixture({ ...fixture, deliveryId: fixture.delivery, ...request })))
}
