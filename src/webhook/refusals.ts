import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { createLogThrottle } from '../base/log-throttle.js'
import { type Clock, systemClock } from '../base/time.js'
import { inTurns } from '../base/turns.js'
import type { WebhookScheme } from '../providers/provider.js'
import { explainSteps, type ExplainParts } from './explain.js'
import { type HeaderLines, indexHeaders, only, withoutCredentials } from './headers.js'
import { claimedIdentity, claimText } from './identity.js'
import type { WebhookRequest } from './intake.js'
import { invalidReason, sizeReason } from './refusal-detail.js'
import { createRefusedList, type Refused, type RefusedKind, type RefusedList } from './refused-list.js'
import { isSignature, SIGNATURE_HEADER } from './signature.js'

export interface RefusalParts extends ExplainParts {
  readonly log: Log
  readonly scheme: WebhookScheme
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  /** Called with each request that is added to the list. Must not throw. */
  readonly onRefused?: (() => void) | undefined
  readonly clock?: Clock | undefined
}

/** Why a message of the tunnel was refused: an error of the intake, or a reason that is found on demand. */
export type TunnelRefusal = RelayError | { readonly reason: () => string | Promise<string> }

/** Keeps refused requests, and logs why they were refused: the first of each kind at once, then how many in a second. */
export interface Refusals {
  readonly list: RefusedList
  /** A request to /webhook that is answered with this error. Returns the error to answer with, whose detail says why. */
  http(error: unknown, request: WebhookRequest): unknown
  /** A delivery that was sent to a path that takes none, whose body is not read. Returns a detail for the log. */
  misdirected(headers: WebhookRequest['headers'], status: number): string
  /** A message of the tunnel; undefined if it was not read, so that it is only logged. Resolves once it is logged, or counted. */
  tunnel(request: WebhookRequest | undefined, refusal: TunnelRefusal): Promise<void>
}

/** How a log line counts further requests of a kind. */
const SUMMARIES: Readonly<Record<RefusedKind, string>> = {
  no_signature: 'no well-formed signature',
  invalid_signature: 'Invalid signature',
  invalid_event: 'Invalid event',
  too_large: 'Request too large',
  wrong_path: 'Not found',
}
const TUNNEL = 'a tunnel message was refused'
const NOTHING: WebhookRequest = { headers: [], body: new Uint8Array() }

export function createRefusals(parts: RefusalParts): Refusals {
  const { log, scheme, maxBody, onRefused, clock = systemClock } = parts
  const list = createRefusedList()
  const throttle = createLogThrottle(log)
  const keep = (request: WebhookRequest, about: About): Refused => {
    const refused = list.add({ at: clock(), ...describe(request, about, scheme) })
    onRefused?.()
    return refused
  }
  const logged = async (refused: Refused, start: string): Promise<void> => {
    const reason = await refused.reason()
    log.warn(`${start}: ${reason} (${claimOf(refused, scheme)})`)
  }
  return {
    list,
    http(error, request) {
      const kind = error instanceof RelayError ? kindOf(error, indexHeaders(request.headers)) : undefined
      if (!(error instanceof RelayError) || !kind) return error
      const { status, message, cause } = error
      const about = { via: 'http', status, kind } as const
      if (error.kind === 'invalid_signature') {
        const explained = explainable(request)
        const refused = keep(request, { ...about, reason: () => refusalHint(explained, parts) })
        const write = async (): Promise<void> => {
          // After the answer has been sent.
          await setImmediate()
          await logged(refused, 'POST /webhook was answered 401')
        }
        throttle(`answered 401: ${SUMMARIES[kind]}`, () => void write())
        return error
      }
      const reason = reasonOf(error, request, maxBody)
      const refused = keep(request, { ...about, reason: () => reason })
      return new RelayError(error.kind, message, { cause, detail: `${reason} (${claimOf(refused, scheme)})` })
    },
    misdirected(headers, status) {
      const reason = 'it looks like a delivery: the payload URL of the webhook must end in /webhook'
      const about = { via: 'http', status, kind: 'wrong_path', reason: () => reason } as const
      return `${reason} (${claimOf(keep({ headers, body: new Uint8Array() }, about), scheme)})`
    },
    async tunnel(request, refusal) {
      const { headers, body } = request ?? NOTHING
      const { error, reason } =
        refusal instanceof RelayError ? known(refusal, { headers, body }, maxBody) : unsigned(refusal)
      const kind = kindOf(error, indexHeaders(headers)) ?? 'invalid_event'
      const about = { via: 'tunnel', status: error.status, kind, reason } as const
      const refused = request && keep(request, about)
      let isFirst = false
      throttle(`${TUNNEL}: ${SUMMARIES[kind]}`, () => (isFirst = true))
      if (!isFirst) return
      if (refused) await logged(refused, TUNNEL)
      else log.warn(`${TUNNEL}: ${await reason()}`)
    },
  }
}

interface TunnelReason extends Pick<About, 'reason'> {
  readonly error: RelayError
}

/** The reason is found at once, so that a large request is not held for it. */
function known(error: RelayError, request: WebhookRequest, maxBody: number): TunnelReason {
  const reason = reasonOf(error, request, maxBody)
  return { error, reason: () => reason }
}

function unsigned({ reason }: Pick<About, 'reason'>): TunnelReason {
  return { error: new RelayError('invalid_signature', 'Invalid signature'), reason }
}

interface About extends Pick<Refused, 'via' | 'status' | 'kind'> {
  readonly reason: () => string | Promise<string>
}

/** The part of a request that the list holds. */
function describe(
  { headers, body }: WebhookRequest,
  about: About,
  scheme: WebhookScheme,
): Omit<Refused, 'id' | 'at'> {
  const lines = indexHeaders(headers)
  return {
    ...about,
    reason: once(about.reason),
    ...claimedIdentity(lines, scheme),
    headers: withoutCredentials(headers),
    body,
    size: Math.max(body.length, Number(only(lines, 'content-length')) || 0),
  }
}

/** `unproved: event push, delivery 72d3162e-cc78; relay show refused:3`. Anybody can write these headers. */
function claimOf({ id, headers }: Refused, scheme: WebhookScheme): string {
  return `${claimText(indexHeaders(headers), scheme)}; relay show refused:${id}`
}

/** Undefined for an error that does not mean that the request was refused, such as a full disk. */
function kindOf({ kind }: RelayError, lines: HeaderLines): RefusedKind | undefined {
  if (kind === 'invalid_signature')
    return isSignature(only(lines, SIGNATURE_HEADER)) ? 'invalid_signature' : 'no_signature'
  return kind === 'invalid_event' || kind === 'too_large' ? kind : undefined
}

function reasonOf(error: RelayError, { headers }: WebhookRequest, maxBody: number): string {
  return error.kind === 'too_large'
    ? sizeReason(only(indexHeaders(headers), 'content-length'), maxBody)
    : invalidReason(error)
}

function once(find: About['reason']): () => Promise<string> {
  let found: Promise<string> | undefined
  return () => (found ??= (async () => find())())
}

/**
 * Bytes: 64 KiB, which nearly every delivery fits. Anybody may send a body that is slow on purpose. Its longest step
 * writes and hashes one encoding, which takes 20 ms for 64 KiB and 60 ms for 256 KiB.
 */
export const MAX_EXPLAINED = 65_536

/** What of a request is held for {@link refusalHint}. */
function explainable({ headers, body }: WebhookRequest): WebhookRequest {
  return { headers, body: body.length > MAX_EXPLAINED ? body.slice(0, MAX_EXPLAINED + 1) : body }
}

/** Why a request is refused, in one line for the user. Yields to the event loop; does not analyse a large body. */
export async function refusalHint(request: WebhookRequest, parts: ExplainParts): Promise<string> {
  if (request.body.byteLength > MAX_EXPLAINED)
    return 'its signature does not match, and its body is too large to analyse'
  const explanation = await inTurns(explainSteps(request, parts))
  return explanation.valid ? 'its signature matches' : explanation.hint
}
