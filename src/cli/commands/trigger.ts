import { withoutMark } from '../../base/decode.js'
import { RelayError } from '../../base/errors.js'
import { MAX_MAX_BODY, type NamedScheme } from '../../base/settings.js'
import { hostSource } from '../../base/source-names.js'
import { fixtureText, type RecordedDelivery, toFixture } from '../../replay/fixture.js'
import { deliveryId, prepareRequest } from '../../replay/prepare.js'
import { SCHEME_NAMES } from '../../senders/senders.js'
import { SEND } from '../options.js'
import { define, printEach, type Shell } from '../command.js'
import { readInput } from '../input.js'
import { shortTime } from '../output/deliveries.js'
import { marked, own } from '../output/outside.js'
import type { Output } from '../output/output.js'
import { openProfile, type Profile } from '../profile.js'
import { openSources, readSources, sourceNamed } from '../sources.js'
import {
  openSending,
  printSent,
  readPlan,
  send,
  type SendFlags,
  type SentItem,
  sentJson,
  VERDICT,
  reportEdits,
} from '../send.js'

export const triggerCommand = define({
  ...SEND,
  description: `Sends a signed delivery as the code host would, to the running relay serve or to any URL. The payload is made up, with
every field of a real one. --source sends as another sender. --body sends a file, byte for byte except for a new id and, if the
body has one, the signed time; --keep-id keeps the id.`,
  examples: `relay trigger --list
relay trigger push
relay trigger issue_comment.created --set comment.body=/merge
relay trigger pull_request.opened --to http://localhost:3000/hook
relay trigger issues.opened --provider gitea --print > opened.json
relay trigger --list --source stripe
relay trigger --source stripe --event invoice.paid --body invoice.json`,
  args: [['[event]', 'event, event.action or source/event']],
  options: [
    ['--list', 'list the events'],
    ['--source <name>', 'source of the delivery', { defaultText: 'the code host' }],
    ['--event <event>', 'the same as the argument; without it, the one that the body names'],
    ['--body <file|->', 'send this body'],
    ['--print', 'print the fixture instead of sending it'],
    ...SEND.options,
  ],
  settings: ['provider'],
  input(flags: TriggerFlags, word?: string): TriggerFlags {
    if (word !== undefined && flags.event !== undefined && word !== flags.event)
      throw new RelayError('usage', `Two events are given: ${word}, and --event ${flags.event}`)
    const event = word ?? flags.event
    return { ...flags, ...(event !== undefined && { event }) }
  },
  run: runTrigger,
  print: printEach(printTriggered),
  json,
})

interface TriggerFlags extends SendFlags {
  readonly list?: boolean
  readonly print?: boolean
  readonly event?: string
  readonly body?: string
}

type Triggered =
  | ({ readonly type: 'sent'; readonly to: string | undefined } & SentItem)
  | { readonly type: 'event'; readonly event: string; readonly action: string | null }
  | { readonly type: 'fixture'; readonly text: string }

function runTrigger(shell: Shell, flags: TriggerFlags): AsyncIterable<Triggered> {
  const { source, event, list: isList, print: isPrinted } = flags
  if (isList) return list(shell, flags)
  // The form that routes and filters use: stripe/invoice.paid.
  const [, named, ofNamed] = /^([^/]+)\/(.+)$/.exec(event ?? '') ?? []
  if (named !== undefined && ofNamed !== undefined && (source === undefined || source === named))
    return runTrigger(shell, { ...flags, source: named, event: ofNamed })
  return isPrinted ? print(shell, flags) : sendOne(shell, flags)
}

/** @throws RelayError `usage` without an event, or a body that names one */
async function requireEvent(shell: Shell, { event, body, ...flags }: TriggerFlags): Promise<void> {
  if (event !== undefined || body !== undefined) return
  await using profile = await openMade(shell, flags)
  const lists = profile.command(`trigger --list${ofSource(flags.source)}`)
  throw new RelayError('usage', `No event given. ${lists} lists them`)
}

async function* sendOne(shell: Shell, flags: TriggerFlags): AsyncGenerator<Triggered> {
  await requireEvent(shell, flags)
  const { event } = flags
  const plan = readPlan(flags)
  await using profile = await openSending(shell, flags, plan)
  const recorded = await make(shell, profile, flags)
  const items = [{ name: event ?? recorded.event, load: async () => recorded }]
  const isForPerson = shell.out.isTerminal && !shell.json
  // Its id is new. A person reads a sentence, which needs no total.
  for await (const sent of send(shell, { ...plan, keepId: true }, items, profile, !isForPerson))
    yield { type: 'sent', to: plan.to, ...sent }
}

function printTriggered(triggered: Triggered, out: Output): void {
  const { type } = triggered
  if (type === 'fixture') return out.exactly(triggered.text)
  if (type === 'event') return out.result([triggered.event, triggered.action ?? []].flat().join('.'))
  const line = out.isTerminal ? sentence(triggered) : undefined
  if (line === undefined) printSent(triggered, out)
  else out.result(line, VERDICT)
}

function json(triggered: Triggered) {
  if (triggered.type === 'fixture') return triggered.text
  if (triggered.type === 'sent') return sentJson(triggered)
  const { event, action } = triggered
  return marked({ type: 'event', event: own(event), action: own(action) })
}

/** Loaded late: checks fixtures with zod. */
const examples = () => import('../../replay/synthesize.js')

async function make(
  shell: Shell,
  profile: Profile,
  { source: name, event, body: file, keepId = false }: TriggerFlags,
): Promise<RecordedDelivery> {
  const source = await findSource(shell, profile, name)
  const { provider, providerUrl } = profile.values
  const { commandWords, deliveryOf, exampleDelivery } = await examples()
  if (file === undefined)
    return exampleDelivery(source, event ?? '', {
      url: source.name === hostSource(provider) ? providerUrl : undefined,
      words: commandWords(profile.command),
    })
  const input = await readInput(shell, file, { tooLarge: 'larger than 25 MiB', limit: MAX_MAX_BODY })
  const body = withoutMark(input)
  const { recorded, added } = deliveryOf(source, event, body, { keepId })
  if (added.length > 0) shell.out.say(`Added to the body, which lacked it: ${added.join(', ')}`)
  return recorded
}

/**
 * Finds the source: the code host, a source of the settings, or a scheme of that name, to print its request or send it
 * elsewhere.
 */
async function findSource(
  shell: Shell,
  profile: Profile,
  name: string = hostSource(profile.values.provider),
): Promise<NamedScheme> {
  if (name === hostSource(profile.values.provider)) return { name, scheme: name }
  const sources = await readSources(shell, profile, await profile.data())
  const isSet = sources.some((each) => each.name === name)
  return !isSet && SCHEME_NAMES.includes(name) ? { name, scheme: name } : sourceNamed(profile, sources, name)
}

/** Formats `Sent push: answered 200 in 31ms, entry #7`. Undefined for an unexpected response. */
function sentence({ ok, name, n, answer, to }: Extract<Triggered, { type: 'sent' }>): string | undefined {
  if (!ok) return undefined
  const sent = `Sent ${name}: answered ${answer.status} in ${shortTime(Math.round(answer.ms))}`
  if (to !== undefined) return `${sent}, by ${to}`
  return n === null ? sent : `${sent}, entry #${n}`
}

async function* list(shell: Shell, flags: TriggerFlags): AsyncGenerator<Triggered> {
  await using profile = await openMade(shell, flags)
  const provider = hostSource(profile.values.provider)
  const { source = provider }: { source?: string } = flags
  const { triggerEvents } = await examples()
  const all = triggerEvents((await findSource(shell, profile, source)).scheme)
  if (all.length === 0)
    throw new RelayError(
      'no_match',
      `There are no examples of ${source}. ${profile.command(`trigger${ofSource(source)} --body <file>`)} sends a body of your own`,
    )
  for (const trigger of all) {
    const [event = '', action = null] = source === provider ? trigger.split('.') : [trigger]
    yield { type: 'event', event, action }
  }
}

function ofSource(source: string | undefined): string {
  return source === undefined ? '' : ` --source ${source}`
}

/** The code host is the one that this shell names, else that of the profile. An instance may know of another source. */
async function openMade(shell: Shell, flags: TriggerFlags): Promise<Profile> {
  return openProfile(shell, flags, {
    mustExist: false,
    instance: flags.source === undefined ? 'consult' : 'follow',
  })
}

/** Makes a fixture. It is signed if there is a secret; otherwise replay signs it. */
async function* print(shell: Shell, flags: TriggerFlags): AsyncGenerator<Triggered> {
  await requireEvent(shell, flags)
  const plan = readPlan(flags)
  await using profile = await openMade(shell, flags)
  const data = await profile.data()
  const recorded = await make(shell, profile, flags)
  const sourceOf = openSources(shell, profile, { ...plan, data, purpose: 'sign with' })
  const source = await sourceOf(recorded).catch((error: unknown) => {
    if (plan.secretEnv === undefined && error instanceof RelayError && error.kind !== 'storage')
      return undefined
    throw error
  })
  const request = prepareRequest(recorded, { ...plan, secrets: source?.secrets })
  reportEdits(shell, recorded, plan.edits, request, new Set())
  const made = { ...recorded, ...request, deliveryId: deliveryId(request, recorded) }
  yield { type: 'fixture', text: fixtureText(toFixture(made)) }
}
