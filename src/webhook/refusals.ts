import { setImmediate } from 'node:timers/promises'
import type { Command } from '../base/command-line.js'
import { RelayError, isError } from '../base/errors.js'
import { pathOf, shownSource } from '../base/source-names.js'
import { excerpt, type Log, createLogThrottle, type LogThrottle } from '../base/log.js'
import type { Clock } from '../base/time.js'
import { type Header, indexHeaders, singleValue } from '../http/headers.js'
import type { WebhookRequest } from '../senders/request.js'
import { type ListedKind, type RefusedRequest, type RefusedKind, RefusedList } from './refused.js'
import { provenElsewhere, type Source, type Sources } from '../senders/source.js'
import { otherHostText } from '../senders/code-hosts.js'
import { isSecretHeader } from '../senders/senders.js'

export interface RefusalParts {
  readonly log: Log
  /** Sources whose tokens are left out of the list, whichever address they were sent to. */
  readonly sources: Sources
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  /** Called with each request that is added to the list. Must not throw. */
  readonly onRefused?: (() => void) | undefined
  /** Called with each handshake. Must not throw. */
  readonly onHandshake?: ((handshake: HandshakeEvent) => void) | undefined
  readonly clock: Clock
  readonly command: Command
}

/** A handshake of a source. `reason`: why it was refused, or not answered, or null. */
export interface HandshakeEvent {
  readonly source: string
  readonly name: string
  /** Null for one that came through a tunnel, where relay answers nothing. */
  readonly status: number | null
  readonly reason: string | null
}

interface HandshakeResult extends Pick<HandshakeEvent, 'name'> {
  readonly status: number
  readonly refusal?: string | undefined
}

/** Finds the reason of a refusal from the stored part of the request. */
type FindReason = (held: WebhookRequest & Pick<RefusedRequest, 'at'>) => string | Promise<string>

const NOTHING: WebhookRequest = { headers: [], body: new Uint8Array() }
const TUNNEL = 'a tunnel message was refused'
const NOT_ANSWERED =
  'it came through a tunnel, whose server passes on no answer: enter the address at the sender while relay has one of its own'
/** Kinds whose reason has nothing to do with the sender's headers and body. */
const NOT_OF_CONTENT: ReadonlySet<ListedKind> = new Set(['too_large', 'wrong_path', 'handshake', 'question'])

/** A refusal, apart from the request. */
interface About extends Pick<RefusedRequest, 'via' | 'status' | 'kind'> {
  readonly source: Source
}

/** Records refused requests, and logs the reasons: the first of each kind at once, then a count each second. */
export class Refusals {
  readonly list = new RefusedList()
  readonly #parts: RefusalParts
  readonly #throttle: LogThrottle
  /** Sources whose handshake came through a tunnel. */
  readonly #asked = new Set<string>()

  constructor(parts: RefusalParts) {
    this.#parts = parts
    this.#throttle = createLogThrottle(parts.log)
  }

  /**
   * Records a request to a source's address that is answered with this error, or would have been if a hub had not
   * answered it before. Returns the error for the response, whose detail has the reason.
   */
  http(
    error: unknown,
    request: WebhookRequest,
    source: Source,
    via: RefusedRequest['via'] = 'http',
  ): unknown {
    const kind = error instanceof RelayError ? this.#kindOf(error, request, source) : undefined
    if (!(error instanceof RelayError) || !kind) return error
    const about = { via, source, status: error.status, kind } as const
    if (error.kind !== 'invalid_signature') return this.#listed(error, request, about)
    const { reason, claim } = this.#add(
      request,
      about,
      findSignature(request, error, source, { now: this.#parts.clock(), sources: this.#parts.sources }),
    )
    const path = pathOf(source.name)
    const where = shownSource(source.name) === undefined ? '' : `${path} `
    const write = async (): Promise<void> => {
      // Runs after the response has been sent.
      await setImmediate()
      const what = via === 'http' ? `POST ${path} was answered 401` : TUNNEL
      this.#parts.log.warn(`${what}: ${await reason()} (${claim})`)
    }
    this.#throttle(
      `${via === 'http' ? where : `${TUNNEL}, `}answered 401: ${summaryOf(kind, error)}`,
      () => void write(),
    )
    return error
  }

  /**
   * Records a delivery that a web page has a browser send to a source that nothing proves. Returns the error for the
   * response.
   */
  ofPage(request: WebhookRequest, source: Source, via: RefusedRequest['via']): RelayError {
    const error = new RelayError('forbidden', 'Deliveries that nothing proves are not taken from a browser')
    return this.#listed(error, request, { via, source, status: error.status, kind: 'no_signature' })
  }

  /** Records a refusal for another reason than the signature. Returns the error for the response, with the reason as detail. */
  #listed(error: RelayError, request: WebhookRequest, about: About): RelayError {
    const reason = this.#reasonOf(error, request, about.source)
    if (about.via === 'tunnel') {
      this.#addOfHub(request, about, reason)
      return error
    }
    const { claim } = this.#add(request, about, () => reason)
    return new RelayError(error.kind, error.message, { cause: error.cause, detail: `${reason} (${claim})` })
  }

  /** Records a delivery to a path that accepts none. Its body is not read. Returns a detail for the log. */
  misdirected(headers: WebhookRequest['headers'], status: number, source: Source): string {
    const about = { via: 'http', source, status, kind: 'wrong_path' } as const
    const reason = `it looks like a delivery: the payload URL of the webhook must end in ${pathOf(source.name)}`
    const { claim } = this.#add({ ...NOTHING, headers }, about, () => reason)
    return `${reason} (${claim})`
  }

  /** Records and logs a request that a hub has taken, to an address of no source, without its body. `source`: the nearest one. */
  misdirectedAtHub(request: WebhookRequest, source: Source, reason: string): void {
    this.#addOfHub({ ...request, body: NOTHING.body }, { source, status: 404, kind: 'wrong_path' }, reason)
  }

  /** Records and logs what the hub has answered 200 by itself. */
  #addOfHub(request: WebhookRequest, about: Omit<About, 'via'>, reason: string): void {
    const { claim } = this.#add(request, { ...about, via: 'tunnel' }, () => reason)
    this.#throttle(`${TUNNEL}: ${about.kind}`, () => this.#parts.log.warn(`${TUNNEL}: ${reason} (${claim})`))
  }

  /** Records a handshake of a source, and announces it. A secret that it brings is not in the list. */
  handshake(request: WebhookRequest, source: Source, { name, status, refusal }: HandshakeResult): void {
    this.#addHandshake(request, source, { name, status, refusal, via: 'http' })
    this.#parts.onHandshake?.({ source: source.name, name, status, reason: refusal ?? null })
  }

  /** Records a handshake that came through a tunnel, which passes no answer on. Announces the first of each source. */
  tunnelHandshake(request: WebhookRequest, source: Source, name: string): void {
    this.#addHandshake(request, source, { name, status: 200, refusal: NOT_ANSWERED, via: 'tunnel' })
    if (this.#asked.has(source.name)) return
    this.#asked.add(source.name)
    this.#parts.onHandshake?.({ source: source.name, name, status: null, reason: NOT_ANSWERED })
  }

  #addHandshake(
    request: WebhookRequest,
    source: Source,
    { name, status, refusal, via }: HandshakeResult & Pick<RefusedRequest, 'via'>,
  ): void {
    const about = { via, source, status, kind: 'handshake' } as const
    const reason = refusal === undefined ? `handshake ${name}` : `handshake ${name}: ${refusal}`
    const listed = source.sender.bringsSecret ? { ...request, ...NOTHING } : request
    this.#add(listed, about, () => reason)
  }

  /**
   * Records a request of another method than POST to a source's address, which was answered 405. Logs one that came
   * through a hub.
   */
  question(
    request: WebhookRequest,
    source: Source,
    { method, via = 'http' }: { readonly method: string; readonly via?: RefusedRequest['via'] },
  ): void {
    const about = { source, status: 405, kind: 'question' } as const
    const names = [...new Set(new URLSearchParams(request.query ?? '').keys())]
    const asked = names.length === 0 ? '' : ` with ${names.join(', ')} in its query`
    const reason = excerpt(`${method}${asked}: no handshake of ${source.sender.name}`)
    if (via === 'tunnel') this.#addOfHub(request, about, reason)
    else this.#add(request, { ...about, via }, () => reason)
  }

  /** Counts a refused tunnel message without adding it to the list. For a flood of signed messages. */
  countTunnel({ kind, message }: RelayError): void {
    const counted = kind === 'too_large' || kind === 'invalid_event' ? kind : 'invalid_signature'
    this.list.count(counted, this.#parts.clock())
    this.#throttle(`${TUNNEL}: ${message}`, () => this.#parts.log.warn(`${TUNNEL}: ${message}`))
  }

  /**
   * Records a tunnel message that is refused with this error. `request` is undefined if it was not read. Resolves once
   * it is logged or counted.
   */
  async tunnel(
    request: WebhookRequest | undefined,
    error: RelayError,
    source: Source,
    find?: FindReason,
  ): Promise<void> {
    const kind = this.#kindOf(error, request ?? NOTHING, source) ?? 'invalid_event'
    // Determined at once, so that a large request is not referenced until later.
    const known = this.#reasonOf(error, request ?? NOTHING, source)
    const about = { via: 'tunnel', source, status: error.status, kind } as const
    const refused = request && this.#add(request, about, find ?? (() => known))
    let isFirst = false
    this.#throttle(`${TUNNEL}: ${summaryOf(kind, error)}`, () => (isFirst = true))
    if (!isFirst) return
    const line = refused ? `${await refused.reason()} (${refused.claim})` : known
    this.#parts.log.warn(`${TUNNEL}: ${line}`)
  }

  /**
   * Adds a request to the list. `find` is called once, when the reason is first read, with the stored part of the
   * request.
   */
  #add(
    { headers, body, query, payloadUrl }: WebhookRequest,
    { source, ...about }: About,
    find: FindReason,
  ): Pick<RefusedRequest, 'reason'> & { readonly claim: string } {
    const lines = indexHeaders(headers)
    const { event, deliveryId, text } = source.sender.claim({ lines, body })
    const { sources } = this.#parts
    const all = [...sources.values()]
    const isSecret = ([name, value]: Header): boolean =>
      all.some(({ sender }) => sender.roleOf(name) === 'token') ||
      (isSecretHeader(name) && !source.sender.isSignature(name, value))
    // A size and a path have the same meaning for every code host.
    const isContent = !NOT_OF_CONTENT.has(about.kind)
    const otherHost = isContent ? otherHostText(lines, source.name) : undefined
    let found: Promise<string> | undefined
    const refused: RefusedRequest = this.list.add({
      at: this.#parts.clock(),
      source: source.name,
      ...about,
      reason: () => (found ??= (async () => otherHost ?? find(refused))()),
      event,
      deliveryId,
      headers: headers.filter((header) => !isSecret(header)),
      ...(query !== undefined && {
        query: all.reduce((left, { sender }) => sender.withoutSecret(left), query),
      }),
      ...(payloadUrl !== undefined && { payloadUrl }),
      body,
      size: Math.max(body.length, Number(singleValue(lines, 'content-length')) || 0),
    })
    this.#parts.onRefused?.()
    const show = this.#parts.command(`show refused:${refused.id}`)
    return { reason: refused.reason, claim: `${text}; ${show}` }
  }

  #kindOf({ kind }: RelayError, request: WebhookRequest, { sender }: Source): RefusedKind | undefined {
    if (kind === 'invalid_signature')
      return sender.hasSignature({ ...request, lines: indexHeaders(request.headers) }) ? kind : 'no_signature'
    return kind === 'invalid_event' || kind === 'too_large' ? kind : undefined
  }

  /** Reason of a refusal. For a delivery that is too large, it includes advice, since code hosts send it only once. */
  #reasonOf({ kind, cause, message }: RelayError, { headers }: WebhookRequest, { name }: Source): string {
    if (kind !== 'too_large') return isError(cause) ? cause.message : message
    const bytes = (count: number): string => `${count.toLocaleString('en-US')} byte${count === 1 ? '' : 's'}`
    const declared = singleValue(indexHeaders(headers), 'content-length')
    const limit = bytes(this.#parts.maxBody)
    const size = declared === undefined ? `over ${limit}` : bytes(Number(declared))
    return `${size}, the limit is ${limit}. Raise --max-body, then redeliver it at the ${shownSource(name) === undefined ? 'code host' : 'sender'}`
  }
}

/** Text under which further requests of a kind are counted in the log. */
function summaryOf(kind: RefusedKind, { message }: RelayError): string {
  return kind === 'no_signature' ? 'no well-formed signature' : message
}

/**
 * Returns a function that finds why a request is not proved. For a token, which costs nothing to compare and is not in
 * the list, the reason is found at once.
 */
function findSignature(
  request: WebhookRequest,
  { cause }: RelayError,
  source: Source,
  { now, sources }: { readonly now: number; readonly sources: Sources },
): FindReason {
  if (isError(cause)) return () => cause.message
  const { sender, secrets } = source
  const roles = new Set(request.headers.map(([name]) => sender.roleOf(name)))
  const isCostly = sender.coverage(secrets.current) !== 'sender' && roles.has('signature')
  if (!roles.has('token') || isCostly) {
    const { query, payloadUrl } = request
    return (held) => refusalHint({ ...held, query, payloadUrl }, source, held.at, sources)
  }
  const found = refusalHint(request, source, now)
  return () => found
}

/**
 * Largest body in bytes that is analysed: nearly every delivery fits. Anybody may send a body that takes a few dozen
 * hashes.
 */
export const MAX_EXPLAINED = 65_536

/** Explains in one line why a request is refused. Does not analyse a large body. */
export async function refusalHint(
  request: WebhookRequest,
  { name, sender, secrets }: Source,
  now: number,
  sources?: Sources,
): Promise<string> {
  if (request.body.byteLength > MAX_EXPLAINED)
    return 'its signature does not match, and its body is too large to analyse'
  const explanation = await sender.explain(request, secrets, now)
  const elsewhere =
    explanation.valid || !sources ? undefined : provenElsewhere(request, name, sources.values())
  if (elsewhere !== undefined) return elsewhere
  return explanation.valid ? 'its signature matches' : explanation.hint
}
