import { publicAddress } from './addresses.js'
import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../base/errors.js'
import { Disposal } from '../base/lifetime.js'
import { systemClock } from '../base/time.js'
import type { Forward } from '../journal/types.js'
import type { RecordedDelivery } from '../replay/fixture.js'
import { isFormBody } from '../http/forms.js'
import { secretPrint } from '../instance/protocol.js'
import { Journal } from '../journal/journal.js'
import { formatStatus, labelOf } from '../dispatch/routes.js'
import { type Edit, lackingPaths, parseEdit } from '../replay/edit.js'
import { entryOf } from '../replay/entry.js'
import { deliveryId, prepareRequest, type Prepared, type PrepareOptions } from '../replay/prepare.js'
import type { Tamper } from '../senders/request.js'
import { type SendResult, openSender, parseExpectation, type RequestSender } from '../replay/send.js'
import type { Flags, Shell } from './command.js'
import { parseFlag } from './input.js'
import { bytesField } from './output/delivery.js'
import { marked, outside, own, timeField } from './output/outside.js'
import type { Output } from './output/output.js'
import { green, type Line, red, t, textOf } from './output/text.js'
import { type AgainResult, forwardEntry } from './again.js'
import { callInstance } from './instance-client.js'
import { notServed } from './advice.js'
import { openProfile, type Profile } from './profile.js'
import { shellWord } from '../base/text.js'
import { openSources, type RecordedSource, restartHere, addressesOf } from './sources.js'
import { targetAddress } from './settings/parse.js'

export interface SendFlags extends Flags {
  readonly secretEnv?: string
  readonly source?: string
  readonly to?: string
  readonly set?: readonly string[]
  readonly setOnly?: readonly string[]
  /** True: a path of an edit that the payload lacks is an error. Default: it is added, with a warning. */
  readonly onlyExisting?: boolean
  readonly tamper?: Tamper
  readonly keepId?: boolean
  readonly keepSignature?: boolean
  readonly expect?: string
  readonly stop?: boolean
}

/** Reads how requests are made, sent and checked. @throws RelayError `usage` that names the flag */
export function readPlan({ set = [], setOnly = [], ...flags }: SendFlags) {
  const to = flags.to === undefined ? undefined : parseFlag('--to', flags.to, targetAddress)
  const { secretEnv, source, tamper, keepId = false, keepSignature = false, stop = false } = flags
  const { onlyExisting = false } = flags
  const edits = [
    ...set.map((text) => parseEdit(text)),
    ...setOnly.map((text) => parseEdit(text, { only: true })),
  ]
  if (keepSignature && edits.length > 0)
    throw new RelayError(
      'usage',
      '--keep-signature: cannot be combined with --set, which needs a new signature',
    )
  // Who tampers with a delivery wants to see it rejected.
  const expectation = parseExpectation(flags.expect ?? (tamper === undefined ? '2xx' : '4xx'))
  return { to, secretEnv, source, edits, onlyExisting, tamper, keepId, keepSignature, expectation, stop }
}
/** How an entry is forwarded again, instead of sent as a request of its own. */
type Forwarding = Parameters<typeof forwardEntry>[3]
type SendPlan = ReturnType<typeof readPlan> & { readonly forwarding?: Forwarding | undefined }

/** True if nothing of a delivery is changed, and relay is to have it: its entry can be forwarded again. */
export function isUnchanged({ to, secretEnv, source, edits, tamper, keepSignature }: SendPlan): boolean {
  const isOwn = to === undefined && secretEnv === undefined && source === undefined
  return isOwn && edits.length === 0 && tamper === undefined && !keepSignature
}

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
  /** Number of the entry, unless it is a file. */
  readonly n?: number
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
  /** True if it was sent as it came, its signed time too long ago, since only its sender could sign it again. */
  readonly late?: boolean
  /** Short name of the target to which relay has forwarded it, for an entry that is forwarded again. */
  readonly target?: AgainResult['target']
  /** The same entry's forward to it, after the attempt. */
  readonly forward?: AgainResult['forward']
  /** Next step for it there, for a person. */
  readonly follows?: AgainResult['follows']
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
  const { expectation, stop, forwarding } = plan
  // Files were read synchronously, so Ctrl-C is noticed only now.
  await setImmediate()
  signal.throwIfAborted()
  await using closing = new Disposal()
  const post = await createPoster(shell, plan, profile, closing)
  const width = items.reduce((widest, { name }) => Math.max(widest, textOf(name).width), 0)
  // If the results are on the same screen, each is a line already.
  const isCounted = !out.isTerminal && items.length >= MIN_COUNTED
  let [sent, answers, failed] = [0, 0, 0]
  const refused: RecordedSource[] = []
  try {
    for (const item of items) {
      const recorded = await item.load()
      // The entry was removed from the journal meanwhile.
      if (!recorded) continue
      const before = [answers, failed]
      for await (const { source, answer, hasArrived, ...made } of post(item, recorded)) {
        const { status } = answer
        if (answers === before[0]) sent += 1
        answers += 1
        const isForwarded = hasArrived !== undefined && expectation.isDefault
        const ok = isForwarded ? hasArrived : expectation.fits(status)
        if (!ok && forwarding?.isFinal !== true) failed += 1
        if (!ok && source && (status === 401 || status === 404)) refused.push(source)
        yield {
          name: item.name,
          event: recorded.event,
          ok,
          expected: expectation.text,
          ...made,
          answer,
          width,
        }
      }
      if (isCounted) out.count(`${sent}/${items.length}`)
      if (failed > (before[1] ?? 0) && stop) break
    }
  } finally {
    out.count()
    if (failed === 0 && sent > 0 && isTotalled) out.say(own(`${sent} sent`))
  }
  if (sent === 0) throw new RelayError('no_match', 'The selected entries are gone from the journal')
  if (failed > 0)
    throw failure(`${failed} of ${answers} answers were not as expected`, plan, profile, refused)
}

export function printSent(sent: SentItem, out: Output): void {
  out.result(resultLine(sent, sent.width, out.width), VERDICT)
  if (sent.follows !== undefined) out.say(sent.follows)
}

export function sentJson(sent: SentItem) {
  const { name, event, delivery, n, ok, expected, signedAgain, late, target, forward, answer } = sent
  const { status, ms, error, body } = answer
  const about = {
    type: 'result',
    name: outside(name),
    event: outside(event),
    ok,
    expected: own(expected),
  } as const
  const to =
    target === undefined
      ? {}
      : { target: own(labelOf(target.id)), targetName: own(target.name), ...forwardFields(forward) }
  const kept = late === true ? { late } : {}
  const made = { delivery: outside(delivery), n, signedAgain, ...kept, ...to, status, ms: Math.round(ms) }
  return marked({ ...about, ...made, error: outside(error), ...bytesField('answer', body) })
}

/** State of an entry that was forwarded again. */
function forwardFields(forward: Forward | undefined) {
  if (!forward) return {}
  const { status: state, due } = forward
  return { state, nextTryAt: state === 'waiting' && due !== undefined ? timeField(due) : null }
}

const UNPROVED =
  'nothing proved it when it came, so it is not signed with the secret that its source has now. --keep-signature sends it as it came; --secret-env signs it'

/** Explains why a scheme that only a file names does not get a secret. */
function unnamed(profile: Profile, { name, sender: { scheme } }: RecordedSource): string {
  const source = shellWord(name === scheme ? name : `${name}=${scheme}`)
  return `its scheme, which you have not named, sends the secret itself. If ${name} is a source of yours, run ${profile.command(`source add ${source}`)}; --keep-signature sends the delivery as it is`
}

/** Result of sending a delivery once, or of forwarding it to one target. */
interface Posted extends Pick<
  SentItem,
  'delivery' | 'n' | 'signedAgain' | 'late' | 'answer' | 'target' | 'forward' | 'follows'
> {
  /** Source that signed it. */
  readonly source?: RecordedSource
  /** True if the target of an entry that is forwarded again has it. */
  readonly hasArrived?: boolean
}

/** Sends recorded deliveries. An entry that is unchanged is forwarded again, if the instance has a route at all. */
async function createPoster(shell: Shell, plan: SendPlan, profile: Profile, closing: Disposal) {
  const { forwarding } = plan
  const { mail, provedSource } = await createMailer(shell, plan, profile, closing)
  return async function* ({ name, n }: Item, loaded: RecordedDelivery): AsyncGenerator<Posted, void> {
    let isForwarded = false
    if (forwarding && n !== undefined) {
      if (loaded.verifiedBy === 'none') await provedSource(name, loaded)
      for await (const result of forwardEntry(shell, profile, n, forwarding)) {
        isForwarded = true
        yield { delivery: loaded.deliveryId, n, signedAgain: false, ...result }
      }
    }
    if (!isForwarded) yield await mail(name, loaded)
  }
}

/**
 * Signs recorded deliveries, each as its source does, and posts them to the running instance or to the address of `--to`.
 */
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
  const warned = new Set<string>()
  /** @throws RelayError `usage` for a delivery that nothing proved, of a source that now has a secret */
  const provedSource = async (name: string, loaded: RecordedDelivery): Promise<RecordedSource> => {
    const source = await sourceOf(loaded)
    // Anyone may have sent it before its source had a secret. With a signature, it would pass for a genuine delivery.
    const isUnproved = loaded.verifiedBy === 'none' && source.sender.proves
    if (isUnproved && !keepSignature && secretEnv === undefined)
      throw new RelayError('usage', `${name}: ${UNPROVED}`)
    return source
  }
  const mail = async (name: string, loaded: RecordedDelivery): Promise<Posted> => {
    const source = await provedSource(name, loaded)
    const recorded = { ...loaded, scheme: source.sender.scheme }
    if (plan.onlyExisting) requirePaths(loaded, edits)
    const { secrets } = source
    if (!source.isNamed && !keepSignature && source.sender.coverage(secrets.current) === 'sender')
      throw new RelayError('usage', `${name}: ${unnamed(profile, source)}`)
    // Another sender's delivery goes to a target unchanged; relay itself would count it as a duplicate.
    const isHost = source.place !== undefined
    const freshId = !keepId && (isHost || edits.length > 0 || to === undefined)
    const now = (seams?.clock ?? systemClock)()
    // A target knows the address that the sender was given; relay, the one at which it is reached without a tunnel.
    const payloadUrl =
      to === undefined ? publicAddress(profile) + source.path : addressesOf(profile)(source.name)
    // relay itself would refuse its time.
    const keepsLate = to !== undefined
    const options = { ...plan, secrets, keepsLate, freshId, now, payloadUrl }
    const outgoing = prepareNamed(name, recorded, options)
    reportEdits(shell, loaded, edits, outgoing, warned)
    const url = to ?? `${instance?.url}${source.path}`
    const sender = senders.get(url) ?? closing.use(openSender(url))
    senders.set(url, sender)
    const journal = to === undefined && data ? new Journal(data.sql) : undefined
    const post = (): Promise<SendResult> => sender.send(outgoing, { signal })
    const { answer, n, delivery } = await postAndFind(post, recorded, outgoing, journal)
    // The instance may count it as a duplicate, though it was to have its own id.
    const isKnown = freshId && !isHost && delivery === recorded.deliveryId
    if (instance && n !== null)
      await callInstance(instance, 'forward again', { id: n, which: isKnown ? 'all' : 'waiting' }, shell)
    const { isRenewed: signedAgain, isLate } = outgoing
    return { source, delivery, n, signedAgain, ...(isLate && { late: true }), answer }
  }
  return { mail, provedSource }
}

/** Sends a request, and finds the entry that it has become. It was sent, even if it is not in the journal. */
async function postAndFind(
  post: () => Promise<SendResult>,
  recorded: RecordedDelivery,
  outgoing: Prepared,
  journal: Journal | undefined,
): Promise<{ readonly answer: SendResult; readonly n: number | null; readonly delivery: string }> {
  const before = (await journal?.newest().catch(() => undefined)) ?? 0
  const answer = await post()
  const id = deliveryId(outgoing, recorded)
  const wanted = { id, before, source: recorded.provider, size: outgoing.body.byteLength }
  const found =
    answer.status === 200 && journal ? await entryOf(journal, wanted).catch(() => undefined) : undefined
  return { answer, n: null, delivery: id, ...found }
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

/** Most members that are named. */
const MAX_ALSO = 8

/** @throws RelayError `usage` for the first path of edits that a delivery lacks, with the nearest */
function requirePaths({ body }: RecordedDelivery, edits: readonly Edit[]): void {
  if (edits.length === 0) return
  const [lacking] = lackingPaths(body, edits, { form: isFormBody(body) })
  if (lacking)
    throw new RelayError('usage', `--set: ${lackingText(lacking)}. Nothing was sent`, {
      quotesOutside: lacking.nearest !== undefined,
    })
}

function lackingText({ path, nearest }: ReturnType<typeof lackingPaths>[number]): string {
  return `the payload has no ${path}${nearest === undefined ? '' : ` (did you mean ${nearest}?)`}`
}

/**
 * Reports what edits do beyond what they name, each once: it warns of a path of `--set` that a delivery lacks, with the
 * nearest, and names the members that changed with others.
 */
export function reportEdits(
  { out }: Shell,
  { body }: RecordedDelivery,
  edits: readonly Edit[],
  { alsoChanged = [] }: Prepared,
  reported: Set<string>,
): void {
  if (edits.length === 0) return
  for (const lacking of lackingPaths(body, edits, { form: isFormBody(body) })) {
    if (reported.has(lacking.path)) continue
    reported.add(lacking.path)
    out.log.warn(`--set: ${lackingText(lacking)}. It is added`)
  }
  if (alsoChanged.length === 0) return
  const more = alsoChanged.length - MAX_ALSO
  const named = alsoChanged.slice(0, MAX_ALSO).join(', ') + (more > 0 ? ` and ${more} more` : '')
  const text = `--set also changed ${named}`
  if (!reported.has(text)) out.say(text)
  reported.add(text)
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
  { name, ok, expected, signedAgain, late = false, target, answer }: SentItem,
  width: number,
  columns: number,
): Line {
  const room = Math.min(width, columns - AROUND_NAME)
  const shown = textOf(name).cutStart(room).pad(room)
  const again = signedAgain ? '  signed again' : late ? '  as it came, late' : ''
  const { status } = answer
  const to = target === undefined ? '' : ` → ${target.name}`
  const result = status === null ? '-' : target === undefined ? status : formatStatus(target.id, status)
  const line = t` ${shown}${to}  ${result}  ${Math.round(answer.ms)}ms${again}`
  const reason = textOf((answer.error ?? Buffer.from(answer.body).toString()).trim()).cut(MAX_REASON)
  return ok
    ? t`${green('ok  ')}${line}`
    : t`${red('FAIL')}${line}  expected ${expected}${reason.width === 0 ? '' : ': '}${reason}`
}
