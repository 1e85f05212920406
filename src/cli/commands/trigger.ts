import { withoutMark } from '../../base/decode.js'
import { RelayError } from '../../base/errors.js'
import { MAX_MAX_BODY } from '../../base/settings.js'
import { fixtureText, type RecordedDelivery, toFixture } from '../../replay/fixture.js'
import { deliveryId, prepareRequest } from '../../replay/prepare.js'
import { deliveryOf, exampleDelivery, triggerEvents } from '../../replay/synthesize.js'
import { SCHEME_NAMES } from '../../schemes/senders.js'
import type { Source } from '../../webhook/signature.js'
import type { Shell } from '../command.js'
import { readInput } from '../input.js'
import { shortTime } from '../output/deliveries.js'
import { attach, commandAt, commandFor, openData, profileFolder } from '../profile.js'
import { openSettings } from '../settings/read.js'
import { openSources, readSources, sourceNamed } from '../sources.js'
import { openSending, readPlan, type Result, send, type SendFlags, type Sending } from './send.js'

interface TriggerFlags extends SendFlags {
  readonly list?: boolean
  readonly print?: boolean
  readonly event?: string
  readonly body?: string
}

export async function runTrigger(shell: Shell, flags: TriggerFlags, word?: string): Promise<void> {
  const { source, body, list: isList, print: isPrinted } = flags
  if (isList) return list(shell, flags)
  if (word !== undefined && flags.event !== undefined && word !== flags.event)
    throw new RelayError('usage', `Two events are given: ${word}, and --event ${flags.event}`)
  const event = word ?? flags.event
  // As routes and filters name it: stripe/invoice.paid.
  const [, named, ofNamed] = /^([^/]+)\/(.+)$/.exec(event ?? '') ?? []
  if (source === undefined && named !== undefined && ofNamed !== undefined)
    return runTrigger(shell, { ...flags, source: named, event: ofNamed })
  if (event === undefined && body === undefined) throw await noEvent(shell, flags)
  if (isPrinted) return print(shell, event, flags)
  const plan = readPlan(flags)
  await using sending = await openSending(shell, flags, plan)
  const recorded = await make(shell, sending, flags, event)
  const items = [{ name: event ?? recorded.event, load: async () => recorded }]
  const isForPerson = shell.out.isTerminal && !shell.json
  // Its id is new.
  await send(shell, { ...plan, keepId: true }, items, sending, (result) =>
    isForPerson ? sentence(result, plan.to) : undefined,
  )
}

async function noEvent(shell: Shell, flags: TriggerFlags): Promise<RelayError> {
  const lists = await commandAt(shell, flags, `trigger --list${ofSource(flags.source)}`)
  return new RelayError('usage', `No event given. ${lists} lists them`)
}

/** The settings, and the data of the profile if it has any. */
type Place = Pick<Sending, 'data'> & { readonly attached: Settled }

async function make(
  shell: Shell,
  place: Place,
  { source: name, body: file, keepId = false }: TriggerFlags,
  event: string | undefined,
): Promise<RecordedDelivery> {
  const source = await findSource(shell, place, name)
  const { provider, providerUrl } = place.attached.values
  if (file === undefined)
    return exampleDelivery(source, event ?? '', {
      url: source.name === provider ? providerUrl : undefined,
      command: (line) => commandFor(place.attached, line),
    })
  const input = await readInput(shell, file, { tooLarge: 'larger than 25 MiB', limit: MAX_MAX_BODY })
  const body = withoutMark(input)
  const { recorded, added } = deliveryOf(source, event, body, { keepId })
  if (added.length > 0) shell.out.say(`Added to the body, which lacked it: ${added.join(', ')}`)
  return recorded
}

/** The code host, a source that is set, or a sender of that name that is not set: to print what it sends, or to send it elsewhere. */
async function findSource(
  shell: Shell,
  { attached, data }: Place,
  name: string = attached.values.provider,
): Promise<Pick<Source, 'name' | 'schemeText'>> {
  if (name === attached.values.provider) return { name, schemeText: name }
  const sources = await readSources(shell, attached, data)
  const isSet = sources.some((each) => each.name === name)
  return !isSet && SCHEME_NAMES.includes(name)
    ? { name, schemeText: name }
    : sourceNamed(attached, sources, name)
}

/** `Sent push: answered 200 in 31ms, entry #7`; undefined for an answer that was not expected. */
function sentence({ ok, name, n, answer }: Result, to: string | undefined): string | undefined {
  if (!ok) return undefined
  const sent = `Sent ${name}: answered ${answer.status} in ${shortTime(Math.round(answer.ms))}`
  if (to !== undefined) return `${sent}, by ${to}`
  return n === null ? sent : `${sent}, entry #${n}`
}

async function list(shell: Shell, flags: TriggerFlags): Promise<void> {
  const { out, json } = shell
  const attached = await readAttached(shell, flags)
  const { provider } = attached.values
  const { source = provider }: { source?: string } = flags
  await using data = source === provider ? undefined : await openData(attached)
  const all = triggerEvents((await findSource(shell, { attached, data }, source)).schemeText)
  if (all.length === 0)
    throw new RelayError(
      'no_match',
      `There are no examples of ${source}. ${commandFor(attached, `trigger${ofSource(source)} --body <file>`)} sends a body of your own`,
    )
  for (const trigger of all) {
    const [event, action = null] = source === provider ? trigger.split('.') : [trigger]
    if (json) out.object({ type: 'event', event, action })
    else out.result(trigger)
  }
}

function ofSource(source: string | undefined): string {
  return source === undefined ? '' : ` --source ${source}`
}

type Settled = Awaited<ReturnType<typeof readAttached>>

/** The settings of this shell, which are enough for the code host. An instance may know of another source. */
async function readAttached(shell: Shell, flags: TriggerFlags) {
  if (flags.source !== undefined) return attach(shell, flags, 'any')
  const settings = await openSettings(shell, flags)
  const loaded = await settings.read()
  const { values } = loaded
  return { ...loaded, profile: values.profile, folder: profileFolder(values), instance: undefined }
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
  const request = prepareRequest(recorded, { ...plan, secret: source?.secrets.current })
  shell.out.exactly(
    fixtureText(toFixture({ ...recorded, ...request, deliveryId: deliveryId(request, recorded) })),
  )
}
