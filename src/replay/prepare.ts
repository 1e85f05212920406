import { randomUUID } from 'node:crypto'
import type { WebhookSecrets } from '../base/settings.js'
import { endToEndHeaders, indexHeaders } from '../http/headers.js'
import { CLAIMS_HEADER, type Entry, LATE_HEADER } from '../journal/types.js'
import { bodyDigest, isOwnId } from '../senders/identity.js'
import type { Tamper, WebhookRequest } from '../senders/request.js'
import { senderOf } from '../senders/senders.js'
import type { Source } from '../senders/source.js'
import { applyEdits, type Edit } from './edit.js'
import type { RecordedDelivery, SourceScheme } from './fixture.js'

export interface PrepareOptions {
  /** Undefined: nothing is signed. */
  readonly secrets: WebhookSecrets | undefined
  readonly edits?: readonly Edit[]
  readonly tamper?: Tamper | undefined
  /** Gives the delivery a new id. If the id is signed, only a changed or synthesized body gets one. */
  readonly freshId?: boolean
  /** True if the body is not as a sender sent it. */
  readonly isMade?: boolean
  /** Sends the recorded signature, however old it is. */
  readonly keepSignature?: boolean | undefined
  /**
   * True if a delivery that is late, and that only its sender could sign again, is sent as it came. Default: relay signs
   * it with its own key.
   */
  readonly keepsLate?: boolean
  /** Address that the sender was given, which some sign. */
  readonly payloadUrl?: string | undefined
  /** Milliseconds since 1970-01-01 UTC. Default: now. */
  readonly now?: number
}

export interface Prepared extends WebhookRequest {
  /** True if it was signed again because its signed time is too long ago. */
  readonly isRenewed: boolean
  /** True if it is as it came, its signed time too long ago, since only its sender could sign it again. */
  readonly isLate: boolean
  /** Paths of the members that changed with those of the edits. */
  readonly alsoChanged?: readonly string[]
}

/**
 * Prepares the request for a recorded delivery. Keeps the recorded bytes and signature if the secret made that
 * signature and its time is within the sender's tolerance. Otherwise signs them now, as the sender does. Adds the
 * headers that a hand-written fixture lacks.
 * @throws RelayError `usage` as {@link applyEdits}; `settings` for a scheme with parts that relay does not know
 */
export function prepareRequest(
  recorded: RecordedDelivery,
  {
    secrets,
    edits = [],
    tamper,
    freshId = false,
    isMade = edits.length > 0,
    keepSignature = false,
    keepsLate = false,
    now = Date.now(),
    payloadUrl,
  }: PrepareOptions,
): Prepared {
  const sender = senderOf(recorded.scheme ?? recorded.provider)
  const isFresh = freshId && !keepSignature && (isMade || !secrets || !sender.signsId(secrets.current))
  const { event, deliveryId: own, query } = recorded
  const isOwn = isOwnId(own, recorded.body, query)
  const headers = sender.complete({
    event,
    // An id that the sender did not provide is relay's own.
    deliveryId: isOwn ? undefined : own,
    headers: endToEndHeaders(recorded.headers, (name) => sender.roleOf(name) === 'signature'),
    body: recorded.body,
  })
  const kind = sender.kindOf(recorded.body, event)
  const { body, also } = edits.length > 0 ? applyEdits(recorded.body, edits, kind) : { ...recorded, also: [] }
  const made = { headers, body, query, payloadUrl }
  const request = isFresh ? sender.withId(made, randomUUID(), isMade ? kind : undefined) : made
  const received = { ...request, lines: indexHeaders(request.headers) }
  const proven = secrets && sender.prove(received, { current: secrets.current, own: secrets.own })
  const isStale = proven !== undefined && sender.isStale(request, proven, now)
  const by = proven?.by ?? recorded.verifiedBy
  const isSenders =
    secrets !== undefined && by !== undefined && by !== 'none' && !sender.canSignAs(by, secrets)
  const isKept = isSenders && keepsLate && !isMade && sender.hasSignature(received)
  const isLate = isKept && sender.staleReason(request, secrets, now, by) === 'late'
  if (!secrets || keepSignature || isKept || (proven && !isStale))
    return {
      ...sender.tamper(withoutClaims(isLate ? late(request) : request), tamper),
      isRenewed: false,
      isLate,
      alsoChanged: also,
    }
  // Corrupted after signing, so that the signature does not match.
  const signed = sender.tamper(withoutClaims(sender.sign(request, secrets, now, kind)), tamper)
  return { ...signed, isRenewed: isStale && !isMade, isLate: false, alsoChanged: also }
}

/** Removes the claims with which relay makes a token. */
function withoutClaims<Request extends Pick<WebhookRequest, 'headers'>>(request: Request): Request {
  return { ...request, headers: request.headers.filter(([name]) => name !== CLAIMS_HEADER) }
}

/** Marks a request whose receiver may refuse its signed time. */
function late<Request extends Pick<WebhookRequest, 'headers'>>(request: Request): Request {
  return { ...request, headers: [...request.headers, [LATE_HEADER, 'true']] }
}

/**
 * Prepares an entry for forwarding. It is forwarded as received, unless the sender's token is not stored, or the signed
 * time is so old that the receiver would refuse it. Then it is signed with the current secret of its source; where only
 * the sender has the key, it is marked with {@link LATE_HEADER}. An entry that arrived without proof is never signed, since anybody may have sent it before the source had a secret. Without
 * `withToken`, a token is left out, because it is the secret itself.
 */
export function forwardedRequest(
  entry: Entry,
  source: Source | undefined,
  now: number,
  { withToken = true }: { readonly withToken?: boolean } = {},
): Prepared {
  const { body, query, headers, scheme = entry.provider } = entry
  const own = source?.sender ?? senderOf(scheme)
  const kept = endToEndHeaders(headers, (name) => own.roleOf(name) === 'signature')
  const unchanged = withoutClaims({ headers: kept, body, query, isRenewed: false, isLate: false })
  if (!source || entry.verifiedBy === 'none') return unchanged
  const { sender, secrets, payloadUrl } = source
  const why = sender.staleReason({ ...unchanged, payloadUrl }, secrets, now, entry.verifiedBy)
  if (why === undefined || (why === 'token' && !withToken)) return unchanged
  if (why === 'late') return { ...late(unchanged), isLate: true }
  return prepareRequest({ ...entry, scheme: sender.scheme }, { secrets, now, payloadUrl })
}

/** Reads the sender's id of a delivery, as intake does. */
export function deliveryId(request: WebhookRequest, { provider, scheme = provider }: SourceScheme): string {
  return senderOf(scheme).idOf(request) ?? bodyDigest(request.body, request.query)
}
