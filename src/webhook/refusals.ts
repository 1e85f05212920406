import { setImmediate } from 'node:timers/promises'
import type { Command } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { isCodeHost } from '../base/settings.js'
import { type Log, createLogThrottle, type LogThrottle } from '../base/log.js'
import type { Clock } from '../base/time.js'
import { CREDENTIAL_HEADERS, indexHeaders, singleValue } from '../http/headers.js'
import { explainSignature } from './explain.js'
import { claimOf, type WebhookRequest } from './intake.js'
import { type RefusedRequest, type RefusedKind, RefusedList } from './refused.js'
import { hasProof, proofsFor, tokenHeaders } from '../schemes/proof.js'
import type { Proof } from '../schemes/scheme.js'
import { pathOf, type SigningConfig, type Source, type Sources } from './signature.js'

export interface RefusalParts {
  readonly log: Log
  /** Sources whose tokens are left out of the list, whichever address they were sent to. */
  readonly sources: Sources
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  /** Called with each request that is added to the list. Must not throw. */
  readonly onRefused?: (() => void) | undefined
  readonly clock: Clock
  readonly command: Command
}

/** Finds the reason of a refusal from the stored part of the request. */
type FindReason = (held: WebhookRequest & Pick<RefusedRequest, 'at'>) => string | Promise<string>

const NOTHING: WebhookRequest = { headers: [], body: new Uint8Array() }
const TUNNEL = 'a tunnel message was refused'

/** Records refused requests, and logs the reasons: the first of each kind at once, then a count each second. */
export class Refusals {
  readonly list = new RefusedList()
  readonly #parts: RefusalParts
  readonly #throttle: LogThrottle

  constructor(parts: RefusalParts) {
    this.#parts = parts
    this.#throttle = createLogThrottle(parts.log)
  }

  /**
   * Records a request to a source's address that is answered with this error. Returns the error for the response, whose
   * detail has the reason.
   */
  http(error: unknown, request: WebhookRequest, source: Source): unknown {
    const kind = error instanceof RelayError ? this.#kindOf(error, request, source) : undefined
    if (!(error instanceof RelayError) || !kind) return error
    const about = { via: 'http', source, status: error.status, kind } as const
    if (error.kind !== 'invalid_signature') {
      const reason = this.#reasonOf(error, request, source)
      const { claim } = this.#add(request, about, () => reason)
      return new RelayError(error.kind, error.message, { cause: error.cause, detail: `${reason} (${claim})` })
    }
    const { reason, claim } = this.#add(
      request,
      about,
      findSignature(request, error, source, this.#parts.clock()),
    )
    const path = pathOf(source.name)
    const where = isCodeHost(source.name) ? '' : `${path} `
    const write = async (): Promise<void> => {
      // Runs after the response has been sent.
      await setImmediate()
      this.#parts.log.warn(`POST ${path} was answered 401: ${await reason()} (${claim})`)
    }
    this.#throttle(`${where}answered 401: ${summaryOf(kind, error)}`, () => void write())
    return error
  }

  /** Records a delivery to a path that accepts none. Its body is not read. Returns a detail for the log. */
  misdirected(headers: WebhookRequest['headers'], status: number, source: Source): string {
    const about = { via: 'http', source, status, kind: 'wrong_path' } as const
    const reason = `it looks like a delivery: the payload URL of the webhook must end in ${pathOf(source.name)}`
    const { claim } = this.#add({ ...NOTHING, headers }, about, () => reason)
    return `${reason} (${claim})`
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
    { headers, body }: WebhookRequest,
    { source, ...about }: Pick<RefusedRequest, 'via' | 'status' | 'kind'> & { readonly source: Source },
    find: FindReason,
  ): Pick<RefusedRequest, 'reason'> & { readonly claim: string } {
    const lines = indexHeaders(headers)
    const { event, deliveryId, text } = claimOf(lines, source.scheme, body)
    const { sources } = this.#parts
    const tokens = new Set([...sources.values()].flatMap(({ scheme }) => [...tokenHeaders(scheme)]))
    let found: Promise<string> | undefined
    const refused: RefusedRequest = this.list.add({
      at: this.#parts.clock(),
      source: source.name,
      ...about,
      reason: () => (found ??= (async () => find(refused))()),
      event,
      deliveryId,
      headers: headers.filter(([name]) => !CREDENTIAL_HEADERS.test(name) && !tokens.has(name.toLowerCase())),
      body,
      size: Math.max(body.length, Number(singleValue(lines, 'content-length')) || 0),
    })
    this.#parts.onRefused?.()
    const show = this.#parts.command(`show refused:${refused.id}`)
    return { reason: refused.reason, claim: `${text}; ${show}` }
  }

  #kindOf({ kind }: RelayError, { headers }: WebhookRequest, { scheme }: Source): RefusedKind | undefined {
    if (kind === 'invalid_signature') return hasProof(indexHeaders(headers), scheme) ? kind : 'no_signature'
    return kind === 'invalid_event' || kind === 'too_large' ? kind : undefined
  }

  /** Reason of a refusal. For a delivery that is too large, it includes advice, since code hosts send it only once. */
  #reasonOf({ kind, cause, message }: RelayError, { headers }: WebhookRequest, { name }: Source): string {
    if (kind !== 'too_large') return cause instanceof Error ? cause.message : message
    const bytes = (count: number): string => `${count.toLocaleString('en-US')} byte${count === 1 ? '' : 's'}`
    const declared = singleValue(indexHeaders(headers), 'content-length')
    const limit = bytes(this.#parts.maxBody)
    const size = declared === undefined ? `over ${limit}` : bytes(Number(declared))
    return `${size}, the limit is ${limit}. Raise --max-body, then redeliver it at the ${isCodeHost(name) ? 'code host' : 'sender'}`
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
  now: number,
): FindReason {
  if (cause instanceof Error) return () => cause.message
  const { scheme, secrets } = source
  const lines = indexHeaders(request.headers)
  const isStripped = [...tokenHeaders(scheme)].some((name) => lines.has(name))
  const isCostly = ({ header, algorithm }: Proof): boolean => algorithm !== 'token' && lines.has(header)
  if (!isStripped || proofsFor(secrets.current, scheme).some(isCostly))
    return (held) => refusalHint(held, source, held.at)
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
  sender: SigningConfig,
  now: number,
): Promise<string> {
  if (request.body.byteLength > MAX_EXPLAINED)
    return 'its signature does not match, and its body is too large to analyse'
  const explanation = await explainSignature(request, sender, now)
  return explanation.valid ? 'its signature matches' : explanation.hint
}
