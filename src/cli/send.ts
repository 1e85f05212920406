import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../base/errors.js'
import { Disposal } from '../base/lifetime.js'
import { systemClock } from '../base/time.js'
import type { RecordedDelivery } from '../replay/fixture.js'
import { secretPrint } from '../instance/protocol.js'
import { Journal } from '../journal/journal.js'
import { parseEdit } from '../replay/edit.js'
import {
  deliveryId,
  prepareRequest,
  type Prepared,
  type PrepareOptions,
  type Tamper,
} from '../replay/prepare.js'
import { type SendResult, openSender, parseExpectation, type RequestSender } from '../replay/send.js'
import type { Declaration, Flags, Shell } from './command.js'
import { parseFlag } from './input.js'
import { bytesField } from './output/deliveries.js'
import { marked, outside, own } from './output/outside.js'
import type { Output } from './output/output.js'
import { green, type Line, red, t, textOf } from './output/text.js'
import { SECRET_ENV } from './options.js'
import { notServed } from './advice.js'
import { openProfile, type Profile } from './profile.js'
import { shellWord } from '../base/text.js'
import { sendsSecret } from '../schemes/proof.js'
import { openSources, type RecordedSource, restartHere } from './sources.js'
import { targetAddress } from './settings/parse.js'

export interface SendFlags extends Flags {
  readonly secretEnv?: string
  readonly source?: string
  readonly to?: string
  readonly set?: readonly string[]
  readonly setOnly?: readonly string[]
  readonly tamper?: Tamper
  readonly keepId?: boolean
  readonly keepSignature?: boolean
  readonly expect: string
  readonly stop?: boolean
}

/** Reads how requests are made, sent and checked. @throws RelayError `usage` that names the flag */
export function readPlan({ set = [], setOnly = [], ...flags }: SendFlags) {
  const to = flags.to === undefined ? undefined : parseFlag('--to', flags.to, targetAddress)
  const { secretEnv, source, tamper, keepId = false, keepSignature = false, stop = false } = flags
  const edits = [
    ...set.map((text) => parseEdit(text)),
    ...setOnly.map((text) => parseEdit(text, { only: true })),
  ]
  if (keepSignature && edits.length > 0)
    throw new RelayError(
      'usage',
      '--keep-signature: cannot be combined with --set, which needs a new signature',
    )
  const expectation = parseExpectation(flags.expect)
  return { to, secretEnv, source, edits, tamper, keepId, keepSignature, expectation, stop }
}
type SendPlan = ReturnType<typeof readPlan>

/** The profile whose requests are sent, or that receives them. */
export function openSending(shell: Shell, flags: SendFlags, { to }: SendPlan): Promise<Profile> {
  return openProfile(
    shell,
    flags,
    to === undefined ? { problems: 'fail' } : { mustExist: false, instance: 'consult' },
  )
}

export interface Item {
  /** Name on its line: a file, `#7`. */
  readonly name: string
  /**
   * Reads the delivery. Undefined if an old entry was removed meanwhile. @throws RelayError that names an invalid file
   */
  readonly load: () => Promise<RecordedDelivery | undefined>
}

/** A sent delivery with its response. */
export interface SentItem {
  readonly name: string
  readonly event: string
  readonly delivery: string
  /** Its entry in the journal, if the running instance stored it and this process can read that. */
  readonly n: number | null
  readonly ok: boolean
  readonly expected: string
  /** True if it was signed again, because its signed time is too long ago. */
  readonly signedAgain: boolean
  readonly answer: SendResult
  /** Columns of the widest name of the run. */
  readonly width: number
}

/** Fewest requests for which a count is shown. */
const MIN_COUNTED = 50
/** Columns before the name. A longer line continues below it. */
export const VERDICT = 5

/**
 * Sends every item. An item that cannot be read or signed ends the run, after those before it were sent. `isTotalled`
 * prints the number of sent items at the end, unless a response was unexpected.
 * @throws RelayError `target_failed` for an unexpected status; `no_match` if all entries were removed; `usage` for an
 * item that cannot be edited or signed; `unavailable` without an address and an instance; `settings` without a secret;
 * errors of loading an item
 */
export async function* send(
  shell: Shell,
  plan: SendPlan,
  items: readonly Item[],
  profile: Profile,
  isTotalled = true,
): AsyncGenerator<SentItem> {
  const { out, signal } = shell
  const { expectation, stop } = plan
  // Files were read synchronously, so Ctrl-C is noticed only now.
  await setImmediate()
  signal.throwIfAborted()
  await using closing = new Disposal()
  const mail = await createMailer(shell, plan, profile, closing)
  const width = items.reduce((widest, { name }) => Math.max(widest, textOf(name).width), 0)
  // If the results are on the same screen, each is a line already.
  const isCounted = !out.isTerminal && items.length >= MIN_COUNTED
  let [sent, failed, known] = [0, 0, 0]
  const refused: RecordedSource[] = []
  try {
    for (const { name, load } of items) {
      const recorded = await load()
      // The entry was removed from the journal meanwhile.
      if (!recorded) continue
      const { source, isKnown, answer, ...made } = await mail(name, recorded)
      const { status } = answer
      const ok = expectation.fits(status)
      sent += 1
      if (isKnown) known += 1
      if (!ok) failed += 1
      if (!ok && (status === 401 || status === 404)) refused.push(source)
      yield { name, event: recorded.event, ok, expected: expectation.text, ...made, answer, width }
      if (isCounted) out.count(`${sent}/${items.length}`)
      if (!ok && stop) break
    }
  } finally {
    out.count()
    if (failed === 0 && sent > 0 && isTotalled) out.say(own(`${sent} sent`))
    if (known > 0) out.say(`${known} ${KNOWN}`)
  }
  if (sent === 0) throw new RelayError('no_match', 'The selected entries are gone from the journal')
  if (failed > 0) throw failure(`${failed} of ${sent} answers were not as expected`, plan, profile, refused)
}

export function printSent(sent: SentItem, out: Output): void {
  out.result(resultLine(sent, sent.width, out.width), VERDICT)
}

export function sentJson({ name, event, delivery, n, ok, expected, signedAgain, answer }: SentItem) {
  const { status, ms, error, body } = answer
  const about = {
    type: 'result',
    name: outside(name),
    event: outside(event),
    ok,
    expected: own(expected),
  } as const
  const made = { delivery: outside(delivery), n, signedAgain, status, ms: Math.round(ms) }
  return marked({ ...about, ...made, error: outside(error), ...bytesField('answer', body) })
}

const KNOWN =
  'under the recorded id: one that relay has is a duplicate, forwarded again only to targets at which it failed. --to sends it to one'

const UNPROVED =
  'nothing proved it when it came, so it is not signed with the secret that its source has now. --keep-signature sends it as it came; --secret-env signs it'

/** Explains why a scheme that only a file names does not get a secret. */
function unnamed(profile: Profile, { name, schemeText }: RecordedSource): string {
  const source = shellWord(name === schemeText ? name : `${name}=${schemeText}`)
  return `its scheme, which you have not named, sends the secret itself. If ${name} is a source of yours, run ${profile.command(`source add ${source}`)}; --keep-signature sends the delivery as it is`
}

/** Signs recorded deliveries, each as its source does, and posts them to the running instance or to the address of `--to`. */
async function createMailer(shell: Shell, plan: SendPlan, profile: Profile, closing: Disposal) {
  const { keepId, keepSignature, edits, to, secretEnv } = plan
  const { signal, seams } = shell
  const { instance } = profile
  // First: data that another user can change is not believed in what follows.
  const data = await profile.data()
  if (to === undefined && !instance) throw notServed(profile, ', or name an address with --to')
  const sourceOf = openSources(shell, profile, {
    secretEnv,
    data,
    purpose: 'sign with',
    named: plan.source,
    // At another address, a fixture with its own key needs no real secret.
    usesOwnKeys: to !== undefined && secretEnv === undefined,
  })
  const senders = new Map<string, RequestSender>()
  return async (name: string, loaded: RecordedDelivery) => {
    const source = await sourceOf(loaded)
    const recorded = { ...loaded, scheme: source.schemeText }
    // Anyone may have sent it before its source had a secret. With a signature, it would pass for a genuine delivery.
    const isUnproved = loaded.verifiedBy === 'none' && source.scheme.proofs.length > 0
    if (isUnproved && !keepSignature && secretEnv === undefined)
      throw new RelayError('usage', `${name}: ${UNPROVED}`)
    const { current: secret } = source.secrets
    if (!source.isNamed && !keepSignature && sendsSecret(secret, source.scheme))
      throw new RelayError('usage', `${name}: ${unnamed(profile, source)}`)
    // Another sender's delivery goes to a target unchanged; relay itself would count it as a duplicate.
    const isHost = source.place !== undefined
    const freshId = !keepId && (isHost || edits.length > 0 || to === undefined)
    const now = (seams?.clock ?? systemClock)()
    const outgoing = prepareNamed(name, recorded, { ...plan, secret, freshId, now })
    const url = to ?? `${instance?.url}${source.path}`
    const sender = senders.get(url) ?? closing.use(openSender(url))
    senders.set(url, sender)
    const answer = await sender.send(outgoing, { signal })
    const delivery = deliveryId(outgoing, recorded)
    // It was sent, even if it is not in the journal.
    const isStored = to === undefined && answer.status === 200
    const known =
      isStored && data ? await new Journal(data.sql).known([delivery]).catch(() => undefined) : undefined
    const n = known?.get(delivery) ?? null
    // The instance may count it as a duplicate, though it was to have its own id.
    const isKnown = freshId && !isHost && delivery === recorded.deliveryId
    return { source, delivery, n, isKnown, signedAgain: outgoing.isRenewed, answer }
  }
}

/** Makes the error for unexpected responses. It says if the instance has another secret, or lacks the source. */
function failure(
  text: string,
  { to }: SendPlan,
  profile: Profile,
  refused: readonly RecordedSource[],
): RelayError {
  const { instance } = profile
  if (to !== undefined || !instance) return new RelayError('target_failed', text)
  const served = new Set(instance.sources?.map(({ name }) => name))
  const absent = refused.find(({ name, place }) => place === undefined && !served.has(name))
  if (instance.sources && absent)
    return new RelayError(
      'target_failed',
      `${text}. relay serve runs without the source ${absent.name}. ${restartHere(profile)}`,
    )
  const other = refused.find(
    ({ place, secrets }) =>
      place !== undefined && secretPrint(instance, secrets.current) !== instance.secretPrint,
  )
  if (!other) return new RelayError('target_failed', text)
  const { place } = other
  const whose = place === 'profile' ? 'the profile' : place
  return new RelayError(
    'target_failed',
    `${text}. This shell signs with the webhook secret of ${whose}, and process ${instance.pid} has another. Set RELAY_WEBHOOK_SECRET to the secret that relay serve was started with`,
  )
}

function prepareNamed(name: string, recorded: RecordedDelivery, options: PrepareOptions): Prepared {
  try {
    return prepareRequest(recorded, options)
  } catch (error) {
    throw error instanceof RelayError ? new RelayError(error.kind, `${name}: ${error.message}`) : error
  }
}

/** Columns for the verdict, the status and the time. */
const AROUND_NAME = 20
/** Maximum columns of an unexpected response, or of the reason why there is none. */
const MAX_REASON = 120

/**
 * Formats `ok #7 200 31ms signed again`, `FAIL push.json 500 12ms expected 2xx: {"error":"…"}`. Names lose their start
 * if they do not fit.
 */
function resultLine(
  { name, ok, expected, signedAgain, answer }: SentItem,
  width: number,
  columns: number,
): Line {
  const room = Math.min(width, columns - AROUND_NAME)
  const shown = textOf(name).cutStart(room).pad(room)
  const again = signedAgain ? '  signed again' : ''
  const line = t` ${shown}  ${answer.status ?? '-'}  ${Math.round(answer.ms)}ms${again}`
  const reason = textOf((answer.error ?? Buffer.from(answer.body).toString()).trim()).cut(MAX_REASON)
  return ok
    ? t`${green('ok  ')}${line}`
    : t`${red('FAIL')}${line}  expected ${expected}${reason.width === 0 ? '' : ': '}${reason}`
}

/** Declaration shared by replay and trigger. */
export const SEND = {
  options: [
    ['--to <url>', 'send to this URL, or port of this machine', { defaultText: 'the running relay serve' }],
    SECRET_ENV,
    ['--set <path=value>', 'change a field, its copies and addresses, and sign again', { repeatable: true }],
    ['--set-only <path=value>', 'the same, but change nothing else', { repeatable: true }],
    ['--tamper <part>', 'part to change after signing, to be rejected', { choices: ['signature', 'body'] }],
    ['--keep-id', 'send the recorded delivery id', { defaultText: 'a new id each time' }],
    ['--expect <status>', 'expected status: 2xx, 401, …', { default: '2xx' }],
    ['--stop', 'stop at the first unexpected status'],
  ],
  env: ['home', 'store', 'webhookSecret'],
  exits: [[3, 'a status was not the expected one'], 130],
} as const satisfies Partial<Declaration>
