import { RelayError } from '../../base/errors.js'
import { fixtureText, fromFixture, toFixture } from '../../replay/fixture.js'
import { prepare } from '../../replay/prepare.js'
import { synthesize, triggers } from '../../replay/synthesize.js'
import type { Shell } from '../command.js'
import { journalOf } from '../journal.js'
import { shortTime } from '../output/deliveries.js'
import { profileFolder, webhookSecret } from '../profile.js'
import { checkSecretsPlace, type Loaded, openSettings } from '../settings/read.js'
import { openSending, readPlan, type Result, send, type SendFlags, type Sending } from './send.js'

interface TriggerFlags extends SendFlags {
  readonly list?: boolean
  readonly print?: boolean
}

/** Runs `relay trigger`. */
export async function runTrigger(shell: Shell, flags: TriggerFlags, event?: string): Promise<void> {
  if (flags.list) return list(shell, flags)
  if (event === undefined) throw new RelayError('usage', 'No event given. relay trigger --list lists them')
  if (flags.print) return print(shell, event, flags)
  const plan = readPlan(flags)
  await using sending = await openSending(shell, flags, plan)
  const recorded = fromFixture(synthesize(sending.attached.values.provider, event, Date.now()))
  const items = [{ name: event, load: async () => recorded }]
  const isForPerson = shell.out.isTerminal && !shell.json
  await send(shell, plan, items, sending, async (result) =>
    isForPerson ? sentence(result, plan.to, sending) : undefined,
  )
}

/** Newest entries among which a delivery is looked for that was stored just now. */
const RECENT = 20

/** `Sent push: answered 200 in 31ms, entry #7`; undefined for an answer that was not expected. */
async function sentence(
  { ok, name, delivery, answer }: Result,
  to: string | undefined,
  { attached, data }: Sending,
): Promise<string | undefined> {
  if (!ok) return undefined
  const sent = `Sent ${name}: answered ${answer.status} in ${shortTime(Math.round(answer.ms))}`
  if (to !== undefined) return `${sent}, by ${to}`
  for await (const { n, deliveryId } of journalOf(attached, data).select({ last: RECENT }))
    if (deliveryId === delivery) return `${sent}, entry #${n}`
  return sent
}

function list(shell: Shell, flags: TriggerFlags): void {
  const { out } = shell
  const { values } = readSettings(shell, flags)
  for (const trigger of triggers(values.provider)) {
    const [event, action = null] = trigger.split('.')
    if (shell.json) out.object({ type: 'event', event, action })
    else out.result(trigger)
  }
}

/** The settings of this shell, which are enough without an instance. */
function readSettings(shell: Shell, flags: TriggerFlags): Loaded {
  const loaded = openSettings(shell, flags).read()
  checkSecretsPlace(loaded.origins)
  return loaded
}

/** Prints a fixture. It is signed if there is a secret; otherwise replay signs it. */
async function print(shell: Shell, event: string, flags: TriggerFlags): Promise<void> {
  const plan = readPlan(flags)
  const loaded = readSettings(shell, flags)
  const { values } = loaded
  const fixture = synthesize(values.provider, event, Date.now())
  const attached = { ...loaded, folder: profileFolder(values), instance: undefined }
  const found = await webhookSecret(shell, attached, flags)
  const request = prepare(fromFixture(fixture), { ...plan, secret: found?.secret })
  shell.out.exactly(fixtureText(toFixture({ ...fixture, deliveryId: fixture.delivery, ...request })))
}
