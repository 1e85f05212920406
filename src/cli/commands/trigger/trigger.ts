import { RelayError } from '../../../base/errors.js'
import { fixtureText, fromFixture, toFixture } from '../../../fixtures/fixture.js'
import { prepare as prepareRequest } from '../../../replay/prepare.js'
import { synthesize, triggers } from '../../../replay/synthesize.js'
import type { Context } from '../../context.js'
import { prepare } from '../../settings/prepare.js'
import { signingSecret } from '../../settings/signing-secret.js'
import { shortTime } from '../../output/attempt-line.js'
import { type Destination, openDestination } from '../replay/destination.js'
import type { Result } from '../replay/result.js'
import { run } from '../replay/run.js'
import type { SendFlags } from '../replay/send-options.js'
import { readPlan, type SendPlan } from '../replay/send-plan.js'

type TriggerFlags = SendFlags & { readonly list?: boolean; readonly print?: boolean }

export async function runTrigger(context: Context, flags: TriggerFlags, event?: string): Promise<void> {
  if (flags.list) return list(context, flags)
  if (event === undefined) throw new RelayError('usage', 'No event given. relay trigger --list lists them')
  if (flags.print) return print(context, event, flags)
  const plan = readPlan(flags)
  await using destination = await openDestination(context, flags, plan)
  const recorded = fromFixture(synthesize(destination.provider, event, Date.now()))
  const items = [{ name: event, load: async () => recorded }]
  const isForPerson = destination.output.isTerminal && !flags.json && plan.times === 1
  await run(context, flags, plan, items, destination, {
    describe: isForPerson ? (result) => sentence(result, plan, destination) : undefined,
  })
}

/** Newest entries among which a delivery is looked for that was stored just now. */
const RECENT = 20

/** `Sent push: answered 200 in 31ms, entry #7`; undefined for an answer that was not expected. */
async function sentence(
  { ok, name, delivery, answer }: Result,
  { to }: SendPlan,
  destination: Destination,
): Promise<string | undefined> {
  if (!ok) return undefined
  const sent = `Sent ${name}: answered ${answer.status} in ${shortTime(Math.round(answer.ms))}`
  if (to !== undefined) return `${sent}, by ${to}`
  for await (const { n, deliveryId } of destination.journal().select({ last: RECENT }))
    if (deliveryId === delivery) return `${sent}, entry #${n}`
  return sent
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
