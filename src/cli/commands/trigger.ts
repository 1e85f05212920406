import { createReadStream } from 'node:fs'
import path from 'node:path'
import { RelayError } from '../../base/errors.js'
import { MAX_MAX_BODY } from '../../base/settings.js'
import { fixtureText, type Recorded, toFixture } from '../../replay/fixture.js'
import { deliveryId, prepare } from '../../replay/prepare.js'
import { deliveryOf, exampleOf, triggers } from '../../replay/synthesize.js'
import { SCHEME_NAMES } from '../../schemes/senders.js'
import type { Source } from '../../webhook/signature.js'
import type { Shell } from '../command.js'
import { readInput } from '../input.js'
import { journalOf } from '../journal.js'
import { shortTime } from '../output/deliveries.js'
import { attach, openData, profileFolder } from '../profile.js'
import { openSources } from '../senders.js'
import { checkSecretsPlace, openSettings } from '../settings/read.js'
import { readSources, sourceNamed } from '../sources.js'
import { openSending, readPlan, type Result, send, type SendFlags, type Sending } from './send.js'

interface TriggerFlags extends SendFlags {
  readonly list?: boolean
  readonly print?: boolean
  readonly source?: string
  readonly event?: string
  readonly body?: string
}

/** Runs `relay trigger`. */
export async function runTrigger(shell: Shell, flags: TriggerFlags, word?: string): Promise<void> {
  if (flags.list) return list(shell, flags)
  if (word !== undefined && flags.event !== undefined && word !== flags.event)
    throw new RelayError('usage', `Two events are given: ${word}, and --event ${flags.event}`)
  const event = word ?? flags.event
  if (event === undefined && flags.body === undefined)
    throw new RelayError('usage', `No event given. relay trigger --list${ofSource(flags)} lists them`)
  if (flags.print) return print(shell, event, flags)
  const plan = readPlan(flags)
  await using sending = await openSending(shell, flags, plan)
  const recorded = await make(shell, sending, flags, event)
  const items = [{ name: event ?? recorded.event, load: async () => recorded }]
  const isForPerson = shell.out.isTerminal && !shell.json
  // Its id is new.
  await send(shell, { ...plan, keepId: true }, items, sending, async (result) =>
    isForPerson ? sentence(result, plan.to, sending) : undefined,
  )
}

/** The delivery to send, unsigned. @throws RelayError as `synthesize`, `exampleOf` and `deliveryOf` */
async function make(
  shell: Shell,
  { attached, data }: { readonly attached: Settled; readonly data: Sending['data'] },
  { source: name, body: file, keepId = false }: TriggerFlags,
  event: string | undefined,
): Promise<Recorded> {
  const { provider } = attached.values
  const source =
    name === undefined || name === provider
      ? { name: provider, schemeText: provider }
      : await findSource(shell, attached, data, name)
  if (file !== undefined) {
    const { recorded, added } = deliveryOf(source, event, await readBody(shell, file), { keepId })
    if (added.length > 0) shell.out.say(`Added to the body, which lacked it: ${added.join(', ')}`)
    return recorded
  }
  return exampleOf(source, event ?? '')
}

/** The source with that name, or a sender with that name that is not set: to print what it sends, or to send it elsewhere. */
async function findSource(
  shell: Shell,
  attached: Settled,
  data: Sending['data'],
  name: string,
): Promise<Pick<Source, 'name' | 'schemeText'>> {
  const sources = await readSources(shell, attached, data)
  const isSet = sources.some((each) => each.name === name)
  return !isSet && SCHEME_NAMES.includes(name) ? { name, schemeText: name } : sourceNamed(sources, name)
}

async function readBody({ cwd, stdin, signal }: Shell, file: string): Promise<Buffer> {
  const isPiped = file === '-'
  const name = isPiped ? 'Standard input' : file
  const stream = isPiped ? stdin : createReadStream(path.resolve(cwd, file))
  return readInput(stream, { name, tooLarge: 'larger than 25 MiB', limit: MAX_MAX_BODY }, signal)
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

async function list(shell: Shell, flags: TriggerFlags): Promise<void> {
  const { out } = shell
  const attached = await readAttached(shell, flags)
  const { provider } = attached.values
  const ofHost = flags.source === undefined || flags.source === provider
  const data = ofHost ? undefined : await openData(attached)
  await using _closing = data
  const scheme = ofHost ? provider : (await findSource(shell, attached, data, flags.source ?? '')).schemeText
  const all = triggers(scheme)
  if (all.length === 0)
    throw new RelayError(
      'no_match',
      `There are no examples of ${flags.source}. relay trigger${ofSource(flags)} --body <file> sends a body of your own`,
    )
  for (const trigger of all) {
    const [event, action = null] = ofHost ? trigger.split('.') : [trigger]
    if (shell.json) out.object({ type: 'event', event, action })
    else out.result(trigger)
  }
}

function ofSource({ source }: TriggerFlags): string {
  return source === undefined ? '' : ` --source ${source}`
}

type Settled = Awaited<ReturnType<typeof readAttached>>

/** The settings of this shell, which are enough for the code host. An instance may know of another source. */
async function readAttached(shell: Shell, flags: TriggerFlags) {
  if (flags.source !== undefined) return attach(shell, flags, 'any')
  const loaded = openSettings(shell, flags).read()
  checkSecretsPlace(loaded.origins)
  return { ...loaded, folder: profileFolder(loaded.values), instance: undefined }
}

/** Prints a fixture. It is signed if there is a secret; otherwise replay signs it. */
async function print(shell: Shell, event: string | undefined, flags: TriggerFlags): Promise<void> {
  const plan = readPlan(flags)
  const attached = await readAttached(shell, flags)
  await using data = await openData(attached)
  const recorded = await make(shell, { attached, data }, flags, event)
  const sourceOf = openSources(shell, attached, { ...plan, data, purpose: 'sign with' })
  const source = await sourceOf(recorded).catch((error: unknown) => {
    if (plan.secretEnv === undefined && error instanceof RelayError && error.kind !== 'storage')
      return undefined
    throw error
  })
  const request = prepare(recorded, { ...plan, secret: source?.secrets.current })
  shell.out.exactly(
    fixtureText(toFixture({ ...recorded, ...request, deliveryId: deliveryId(request, recorded) })),
  )
}
