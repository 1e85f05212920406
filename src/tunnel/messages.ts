import { EventEmitter, once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { sleep } from '../base/wait.js'
import { type ErrorKind, RelayError, toRelayError } from '../base/errors.js'
import {
  type Header,
  type HeaderLines,
  indexHeaders,
  isSendable,
  endToEndHeaders,
  canonicalHeaderName,
} from '../http/headers.js'
import type { Clock } from '../base/time.js'
import type { Log } from '../base/log.js'
import { TOO_DEEP, fieldsOf, ownMember, parseJson } from '../json/parse.js'
import { MAX_DEPTH } from '../json/text.js'
import { likelySecrets } from '../senders/likely-secrets.js'
import type { WebhookRequest } from '../senders/request.js'
import type { Intake } from '../webhook/intake.js'
import { MAX_EXPLAINED, refusalHint, type Refusals } from '../webhook/refusals.js'
import type { MessageBody, RestoredBody } from '../senders/restore.js'
import type { RestoreLimits, SignatureForm } from '../senders/sender.js'
import type { Source } from '../senders/source.js'
import { claimsRoundTrip, ROUND_TRIP_FORMS, type RoundTrips } from './round-trip.js'

export interface MessagesParts extends Source, RestoreLimits {
  readonly clock: Clock
  readonly intake: Intake
  readonly refusals: Refusals
  readonly log: Log
  /** Most characters of waiting messages, including {@link OVERHEAD}. A single one may be longer. */
  readonly maxWaiting: number
  readonly roundTrips: RoundTrips
  /** Called with the id of a message once it, and all before it, are in the journal or refused. Must not reject. */
  readonly onHandled: (id: string) => Promise<void>
  /** Ends the wait while storage refuses. */
  readonly signal: AbortSignal
}

/** Most messages that are stored together: those of one transaction of the journal. */
const BATCH = 64
/**
 * Characters that each waiting message counts in addition to its own, since each takes work and memory, however short
 * it is.
 */
const OVERHEAD = 2048
/**
 * Longest time in milliseconds that messages block the event loop, except a single one. Deliveries over HTTP are
 * handled in between.
 */
const SLICE_MS = 5
/**
 * Length of a pause for each millisecond spent on unproved messages, so that these use half of the processor. If more
 * than a batch wait, which only short ones can, a quarter of that, so that messages behind them are not late because of
 * the pauses.
 */
const PAUSE = { few: 1, many: 0.25 }
/**
 * Characters of other messages, including {@link OVERHEAD}, after which a message that was put off is tried in one more
 * encoding, while more arrive.
 */
const TURN = 1_048_576
/** Delay in milliseconds before a delivery that storage refused is tried again. */
const STORAGE_RETRY_MS = 1000
/** Shortest pause in milliseconds, since a timer takes at least one. */
const MIN_PAUSE_MS = 10
const FREED = 'freed'
/** Most refused messages that are listed in a second; others are counted. Anybody may send any number. */
const LISTED = 10
/** Longest unsigned message, in characters, that is read for its claims. */
const MAX_UNSIGNED = 32_768
/**
 * Most characters of messages that are put off: a second or two of work. A single one may be longer. Genuine ones among
 * them are rare, since a server usually passes on the length of the body.
 */
const MAX_PUT_OFF = 4_194_304
const UNPROVED = new RelayError('invalid_signature', 'Invalid signature')
const NOT_TRIED = new RelayError('invalid_signature', 'Invalid signature', {
  cause: new Error(
    'no likely way to write its JSON matches its signature, and too many such messages wait to try the others',
  ),
})

/** Kinds of errors that are the sender's fault, or a stranger's. */
const REFUSED: ReadonlySet<ErrorKind> = new Set(['invalid_signature', 'invalid_event', 'too_large'])

/** A message that has arrived, with its id in the stream. */
interface Arrived {
  readonly text: string
  readonly id: string
  /** Arrival in milliseconds since 1970-01-01 UTC. */
  readonly at: number
}

/** A message that matches in no likely encoding. `before` is the id of the message before it. */
interface PutOff extends Arrived {
  readonly before: string
}

/** A restored delivery, as arguments of intake. */
type RestoredDelivery = Parameters<Intake['receive']>

/**
 * Passes a channel's messages to the intake, in order, across all its connections. Anybody may write to the channel, so
 * each message is first tried in the likely encodings, which takes one parse and a few hashes. A message that matches
 * in none is put off until no other waits.
 */
export class Messages {
  #parts: MessagesParts
  #form: SignatureSearch
  readonly #waiting: Arrived[] = []
  /** Characters of waiting messages. */
  #size = 0
  readonly #freed = new EventEmitter()
  readonly #putOff: PutOff[] = []
  #putOffSize = 0
  /** Id of the last message that was handled or put off. */
  #last = ''
  /** Method of the last restored delivery. */
  #lastHow: RestoredBody['how'] | undefined
  /**
   * Milliseconds spent on unproved messages since the last pause. A flood of them uses at most half of the processor.
   */
  #owed = 0
  /** Milliseconds for which the event loop ran, and the time when it last did. */
  #away = 0
  #ran = -Infinity
  #working: Promise<void> | undefined
  #hasLost = false
  /** Rate limiters for unsigned messages that are read, and for other messages that are listed. */
  readonly #unsignedLeft = perSecond(LISTED)
  readonly #listedLeft = perSecond(LISTED)

  constructor(parts: MessagesParts) {
    this.#parts = parts
    this.#form = signatureForm(parts)
  }

  /** Has the source's scheme and secrets replaced, for the messages that are read from now on. */
  use(source: Source): void {
    this.#parts = { ...this.#parts, ...source }
    this.#form = signatureForm(source)
  }

  /** Queues a message. One without a signature is refused at once, except a few that are read for the log. */
  enqueue(text: string, id: string): void {
    if (!this.isSigned(text) && !(text.length <= MAX_UNSIGNED && this.#unsignedLeft()))
      return void this.#parts.refusals.tunnel(undefined, this.#form.missing, this.#parts)
    this.#waiting.push({ text, id, at: this.#parts.clock() })
    this.#size += sizeOf(text)
    this.#working ??= this.#work()
  }

  /** True if the message may be a delivery. A greeting has no signature. */
  isSigned(text: string): boolean {
    return this.#form.signed.test(text)
  }

  /** Resolves once there is room for another message. */
  async room(): Promise<void> {
    while (this.#size >= this.#parts.maxWaiting) await once(this.#freed, FREED)
  }

  /** Resolves once all messages that have arrived are handled. */
  async handled(): Promise<void> {
    await this.#working
  }

  /** Handles all messages. Does not reject. */
  async #work(): Promise<void> {
    for (;;) {
      await this.#handleWaiting()
      const [oldest] = this.#putOff
      if (!oldest) break
      await this.#handlePutOff(oldest)
    }
    this.#working = undefined
  }

  /** Handles waiting messages until it is the turn of one that was put off. Does not reject. */
  async #handleWaiting(): Promise<void> {
    for (let size = 0; this.#waiting.length > 0 && (size < TURN || this.#putOff.length === 0);) {
      const batch = this.#nextBatch()
      for (const { text } of batch) size += sizeOf(text)
      await this.#handle(batch)
    }
  }

  #nextBatch(): readonly Arrived[] {
    let [count, size] = [0, 0]
    for (const { text } of this.#waiting) {
      if (count === BATCH || size >= TURN) break
      count++
      size += sizeOf(text)
    }
    return this.#waiting.splice(0, count)
  }

  /** Handles a batch of messages. Does not reject. */
  async #handle(batch: readonly Arrived[]): Promise<void> {
    const deliveries: RestoredDelivery[] = []
    for (const arrived of batch) {
      const began = this.#busy()
      const delivery = await this.#tryLikely(arrived)
      this.#last = arrived.id
      if (delivery) deliveries.push(delivery)
      else this.#owed += this.#busy() - began
      // Proved deliveries do not wait for the pause that unproved ones cause.
      if (this.#pauseDue() > 0) await this.#store(deliveries.splice(0))
      await this.#pause()
    }
    await this.#store(deliveries)
    await this.#sayHandled()
    for (const { text } of batch) this.#size -= sizeOf(text)
    this.#freed.emit(FREED)
  }

  /** Handles the oldest message that was put off. Does not reject. */
  async #handlePutOff(oldest: PutOff): Promise<void> {
    const delivery = await this.#tryAll(oldest)
    await this.#store(delivery ? [delivery] : [])
    this.#putOff.shift()
    this.#putOffSize -= sizeOf(oldest.text)
    await this.#sayHandled()
  }

  /** Milliseconds that this process has spent, without other work of the event loop. */
  #busy(): number {
    return performance.now() - this.#away
  }

  /** Milliseconds to pause for unproved messages. 0 until that is worth a timer. */
  #pauseDue(): number {
    const due = this.#owed * (this.#waiting.length > BATCH ? PAUSE.many : PAUSE.few)
    return due >= MIN_PAUSE_MS && !this.#parts.signal.aborted ? due : 0
  }

  /** Lets the event loop run, for as long as is due. Does not reject. */
  async #pause(): Promise<void> {
    const due = this.#pauseDue()
    if (due === 0) return this.#breathe()
    this.#owed = 0
    const { signal } = this.#parts
    await this.#leave(sleep(due, { signal }).catch(() => {}))
  }

  /** Lets the event loop run if messages have blocked it for long enough. */
  async #breathe(): Promise<void> {
    if (performance.now() - this.#ran >= SLICE_MS) await this.#leave(setImmediate())
  }

  async #leave(until: Promise<unknown>): Promise<void> {
    const left = performance.now()
    await until
    this.#ran = performance.now()
    this.#away += this.#ran - left
  }

  /** Reports the messages before the oldest one that was put off as handled. Does not reject. */
  async #sayHandled(): Promise<void> {
    const [oldest] = this.#putOff
    if (!this.#hasLost) await this.#parts.onHandled(oldest ? oldest.before : this.#last)
  }

  /**
   * Restores the delivery in a message if a likely encoding matches. Undefined if it is none, was refused, or is put
   * off. Does not reject.
   */
  async #tryLikely(arrived: Arrived): Promise<RestoredDelivery | undefined> {
    const breathe = (): Promise<void> => this.#breathe()
    return this.#read(arrived, breathe, async (message, parts) => {
      const { roundTrips } = parts
      if (await roundTrips.isOwn(message, message.lines)) return undefined
      const likely = { last: this.#lastHow }
      const { restored, isAll } = await parts.sender.restoreLikely(
        message,
        message.lines,
        parts,
        likely,
        breathe,
      )
      if (restored || isAll) return restored ?? UNPROVED
      const size = sizeOf(arrived.text)
      if (this.#putOff.length > 0 && this.#putOffSize + size > MAX_PUT_OFF) return NOT_TRIED
      this.#putOff.push({ ...arrived, before: this.#last })
      this.#putOffSize += size
      return undefined
    })
  }

  /**
   * Restores the delivery in a message if any encoding matches. Messages that arrive are handled between two attempts.
   * Does not reject.
   */
  async #tryAll(arrived: PutOff): Promise<RestoredDelivery | undefined> {
    let began = this.#busy()
    const next = async (): Promise<void> => {
      this.#owed += this.#busy() - began
      await this.#pause()
      await this.#handleWaiting()
      began = this.#busy()
    }
    return this.#read(
      arrived,
      next,
      async (message, parts) => (await parts.sender.restore(message, message.lines, parts, next)) ?? UNPROVED,
    )
  }

  /**
   * Reads a message. `find` returns its body as it was signed, the reason for a refusal, or undefined for neither.
   * Undefined if it is no delivery. `next` is called between two hashes of a search for the reason. Does not reject.
   */
  async #read(
    { text, at }: Arrived,
    next: () => Promise<void>,
    find: (message: Message, source: MessagesParts) => Promise<RestoredBody | RelayError | undefined>,
  ): Promise<RestoredDelivery | undefined> {
    const parts = this.#parts
    const { refusals } = parts
    let [message, isReading]: [Message | undefined, boolean] = [undefined, true]
    // The list may ask for the reason later.
    const between = (): Promise<void> => (isReading ? next() : setImmediate())
    try {
      message = readMessage(text, (name) => parts.sender.roleOf(name) === 'signature')
      const found = message && (await find(message, parts))
      if (!message || !found) return undefined
      const { headers, raw } = message
      if (await this.#isHandshake(message, found instanceof RelayError ? undefined : found.body))
        return undefined
      if (found instanceof RelayError) {
        if (parts.sender.hasSignature(message) && !this.#listedLeft()) {
          refusals.countTunnel(found)
          return undefined
        }
        // Does not reference the message, which may be long.
        const isRaw = raw !== undefined
        const why = (held: WebhookRequest) => whyUnproved(held, isRaw, parts, between)
        await refusals.tunnel(requestOf(message), found, parts, found === UNPROVED ? why : undefined)
        return undefined
      }
      this.#lastHow = found.how
      return [
        { headers, body: found.body, query: message.query, payloadUrl: parts.payloadUrl },
        { source: parts, restored: found.how, at },
      ]
    } catch (error) {
      await this.#fail(message ? requestOf(message) : { headers: [], body: Buffer.from(text) }, error)
      return undefined
    } finally {
      isReading = false
    }
  }

  /** Lists a message that is a handshake, and no delivery. `signed`: its body as it was signed, if that is known. */
  async #isHandshake(message: Message, signed: Uint8Array | undefined): Promise<boolean> {
    const { sender, secrets, refusals, clock } = this.#parts
    const request = { ...requestOf(message), ...(signed && { body: signed }) }
    const received = { ...request, lines: message.lines, method: 'POST' }
    const handshaken = await sender.handshake(received, secrets, clock())
    if (handshaken && this.#listedLeft()) refusals.tunnelHandshake(request, this.#parts, handshaken.name)
    return handshaken !== undefined
  }

  /** Stores deliveries in order. While storage refuses, this waits, and so does the stream. Does not reject. */
  async #store(deliveries: readonly RestoredDelivery[]): Promise<void> {
    const { log, signal } = this.#parts
    let left = deliveries
    for (let tries = 1; left.length > 0; tries++) {
      const problems = await Promise.all(left.map((delivery) => this.#receive(delivery)))
      left = left.filter((_, index) => problems[index])
      const why = problems.find((problem) => problem)
      if (why && tries === 1) log.warn(`the tunnel waits until storage works again: ${why.message}`)
      if (why) await sleep(STORAGE_RETRY_MS, { signal }).catch(() => {})
    }
  }

  /** Passes a delivery to intake. Resolves to a failure of storage if it should be tried again. */
  async #receive([request, from]: RestoredDelivery): Promise<RelayError | undefined> {
    const { intake, signal } = this.#parts
    try {
      await intake.receive(request, from)
    } catch (thrown) {
      const error = toRelayError(thrown)
      if (error.kind === 'storage' && !signal.aborted) return error
      await this.#fail(request, error)
    }
    return undefined
  }

  async #fail(request: WebhookRequest, thrown: unknown): Promise<void> {
    const error = toRelayError(thrown)
    const { refusals, log } = this.#parts
    // A correct signature may have a signed time that is too old.
    if (REFUSED.has(error.kind))
      return this.#listedLeft() ? refusals.tunnel(request, error, this.#parts) : refusals.countTunnel(error)
    this.#hasLost = true
    log.error(`a delivery from the tunnel was lost: ${error.message}`, error)
  }
}

/** How a channel's messages show that they are signed, and the error of those that are not. */
interface SignatureSearch {
  readonly signed: RegExp
  readonly missing: RelayError
}

function signatureForm({ secrets, sender }: Source): SignatureSearch {
  const forms = sender.signaturesOf(secrets.current)
  const names = forms.map(({ header }) => canonicalHeaderName(header)).join(' or ')
  const cause = new Error(`invalid signature (there is no ${names}, or it is malformed)`)
  return {
    signed: signatureIn([...forms, ...ROUND_TRIP_FORMS]),
    missing: new RelayError('invalid_signature', 'Invalid signature', { cause }),
  }
}

/** Characters that a message counts while it waits. */
function sizeOf(text: string): number {
  return text.length + OVERHEAD
}

/** Rate limiter: returns a function that is true at most `count` times in a second. */
function perSecond(count: number): () => boolean {
  let [left, since] = [0, -Infinity]
  return () => {
    const now = performance.now()
    if (now - since >= 1000) [left, since] = [count, now]
    return left-- > 0
  }
}

/** A request in a tunnel's message. Method and path are not read. */
interface Message extends MessageBody, Pick<WebhookRequest, 'query'> {
  readonly headers: readonly Header[]
  readonly lines: HeaderLines
}

/** Members of a message that the server adds. */
const NOT_HEADERS = new Set(['body', 'bodyB', 'query', 'timestamp'])
/** Most characters of header names and values: Node's limit over HTTP. */
const MAX_HEADERS = 16_384
/**
 * Headers that proxies before a tunnel's server add: standard ones, and those of Cloudflare, Azure, AWS, Heroku, Render
 * and Fly.
 */
const PROXY_HEADERS =
  /^(?:forwarded|via|x-forwarded-.*|x-original-.*|x-real-ip|x-client-ip|x-cluster-client-ip|client-ip|true-client-ip|x-scheme|x-request-(?:id|start)|cf-.*|cdn-loop|x-arr-.*|x-azure-.*|x-appservice-.*|x-waws-.*|x-site-deployment-id|was-default-hostname|disguised-host|max-forwards|x-amz(?:n|-cf)-.*|x-envoy-.*|connect-time|total-route-time|rndr-id|render-proxy-ttl|fly-.*|traceparent|tracestate)$/i

/**
 * Parses a message: an object with a member for each header and the parsed `body`. gosmee sends the exact bytes
 * instead, as base64 in `bodyB`. Undefined for a message that is not a request, like a greeting.
 * @throws RelayError `invalid_event` if it is not JSON, is nested too deep, or has more headers than HTTP accepts
 */
function readMessage(text: string, isKept: (name: string) => boolean): Message | undefined {
  if (!text.startsWith('{')) return undefined
  let message: object
  try {
    message = fieldsOf(parseJson(text))
  } catch (error) {
    if (error instanceof SyntaxError && error.message === TOO_DEEP)
      throw invalidMessage(`JSON is nested more than ${MAX_DEPTH} deep`)
    throw invalidMessage('the message is not JSON, or is far over --max-body')
  }
  const [value, encoded] = [ownMember(message, 'body'), ownMember(message, 'bodyB')]
  const raw = typeof encoded === 'string' ? Buffer.from(encoded, 'base64') : undefined
  if (value === undefined && !raw) return undefined
  const sent: Header[] = []
  let size = 0
  for (const header of linesIn(message)) {
    if (!isSendable(header) || PROXY_HEADERS.test(header[0])) continue
    size += header[0].length + header[1].length
    if (size > MAX_HEADERS) throw invalidMessage(TOO_MANY)
    sent.push(header)
  }
  // The server has converted the names to lower case.
  const headers = endToEndHeaders(sent, isKept).map(([name, one]): Header => [canonicalHeaderName(name), one])
  return {
    headers,
    lines: indexHeaders(headers),
    value,
    raw,
    query: queryIn(message),
    length: Number(ownMember(message, 'content-length')),
  }
}

/**
 * Query of the channel's address, which a smee server has parsed: texts and lists of texts by name. Undefined without
 * one. Anything else is left out.
 */
function queryIn(message: object): string | undefined {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(fieldsOf(ownMember(message, 'query'))))
    for (const one of Array.isArray(value) ? value : [value])
      if (typeof one === 'string') query.append(name, one)
  return query.size === 0 ? undefined : query.toString()
}

const TOO_MANY = 'more headers than HTTP accepts'
/** Most header lines, as Node reads of a request (nodejs.org/api/http.html, server.maxHeadersCount). */
const MAX_LINES = 2000

/**
 * Header lines of a message: its members, whose values may be lists. @throws RelayError `invalid_event` for more than
 * {@link MAX_LINES}
 */
function* linesIn(message: object): Generator<Header> {
  let count = 0
  for (const name of Object.keys(message)) {
    if (NOT_HEADERS.has(name)) continue
    const member = ownMember(message, name)
    for (const one of Array.isArray(member) ? member : [member]) {
      if (++count > MAX_LINES) throw invalidMessage(TOO_MANY)
      if (typeof one === 'string') yield [name, one]
    }
  }
}

function invalidMessage(reason: string): RelayError {
  return new RelayError('invalid_event', 'Invalid event', { cause: new Error(reason) })
}

/** The request with the body that the server wrote. */
function requestOf({ headers, raw, value, query }: Message): WebhookRequest {
  const body = raw ?? Buffer.from(JSON.stringify(value))
  return { headers, body, ...(query !== undefined && { query }) }
}

/**
 * Pattern for a well-formed signature in the text of a message, which takes some microseconds for 7 KB. If a header may
 * have several signatures, others may precede it.
 */
function signatureIn(forms: readonly SignatureForm[]): RegExp {
  const members = forms.map(({ header, pattern, isList }) => {
    const value = isList ? `(?:[^"]{0,${MAX_BEFORE}}[,; ])?${pattern}` : `${pattern}"`
    return `"${header}"${COLON}"${value}`
  })
  return new RegExp(members.join('|'))
}

/** Most characters before a signature: a time, and some signatures with another secret or of another kind. */
const MAX_BEFORE = 512

/** A colon with little white space, since more of it would be matched again and again. */
const COLON = String.raw`\s{0,9}:\s{0,9}\[?\s{0,9}`

/**
 * Explains why a message is not proved. Without the exact bytes, relay cannot distinguish a wrong secret from bytes
 * that the server changed.
 */
async function whyUnproved(
  held: WebhookRequest,
  isRaw: boolean,
  options: MessagesParts,
  next: () => Promise<void>,
): Promise<string> {
  const lines = indexHeaders(held.headers)
  if (claimsRoundTrip(lines)) return 'another relay on this channel sent it to itself'
  if (isRaw || !options.sender.hasSignature({ lines }))
    return `invalid signature (${await refusalHint(held, options, options.clock())})`
  if (held.body.length <= MAX_EXPLAINED) {
    const message = { value: parseJson(held.body) }
    const { current: own, previous } = options.secrets
    const all = previous ? [own, previous] : [own]
    for (const [current, { hint }] of all.flatMap((each) => [...likelySecrets(each)]))
      if (await options.sender.restore(message, lines, { ...options, secrets: { current } }, next))
        return hint
  }
  return 'unverifiable through this tunnel (signed with another secret, or the server changed the bytes)'
}
