import type { Header } from '../http/headers.js'

/**
 * Result of verifying a delivery's signature: it matches the source's current secret or the previous one. `own`: relay
 * made it with its own key pair for the source, whose sender signs with another. `none`: the source has no proof.
 */
export type VerifiedBy = 'current' | 'previous' | 'own' | 'none'

/** Restoration of a delivery from a tunnel, which does not preserve the signed bytes. */
export type Restoration = {
  /** Method of the restoration, in a word or two. */
  readonly how: string
  /** SHA-256 of the signed bytes, base64url. It identifies the delivery, because the headers are not signed. */
  readonly sha256: string
  /** Set if the payload does not prove the event: it fits others too, or none that is known. */
  readonly unproved?: true
  /**
   * Set if the sender can send the same bytes for two occurrences, since they contain neither a time nor an id, or if
   * it signs the id.
   */
  readonly repeatable?: true
  /** Set if the event is part of what identifies the delivery, since the payload fits several. */
  readonly named?: true
}

/** Name of an event, as its sender gives it. */
export interface NamedEvent {
  readonly event: string
  /** The payload's `action`, if it has one. */
  readonly action: string | null
}

/** An event with the source that sent it. */
export interface SourceEvent extends NamedEvent {
  /** Source: the code host's name, or that of another sender. */
  readonly provider: string
}

/** The fields of a delivery that determine its targets. */
export interface VerifiedEvent extends SourceEvent {
  readonly verifiedBy: VerifiedBy
}

export type NumberKind = 'issue' | 'pull'

/** Subject of a delivery within its repository. */
export interface DeliverySubject {
  /** Number of an issue or pull request, if the payload has one. */
  readonly number: number | null
  /** Kind of the numbered item, if issues and pull requests are numbered separately (GitLab). */
  readonly kind?: NumberKind | undefined
  /**
   * Branch or tag of a push, a creation or deletion, or a release, as the payload spells it: `refs/heads/main`, `v1.0`.
   */
  readonly ref?: string | undefined
}

export interface DeliveryBody {
  /** The exact bytes that were signed and sent. */
  readonly body: Uint8Array
}

/** The headers and the body of a request, as they are stored. */
export interface StoredRequest extends DeliveryBody {
  /** Headers in the order received, without credentials. */
  readonly headers: readonly Header[]
}

/** One webhook request that was verified. */
export interface Delivery extends VerifiedEvent, DeliverySubject, StoredRequest {
  /** Milliseconds since 1970-01-01 UTC. */
  readonly receivedAt: number
  /** Scheme of the signature, as the settings write it. Default: the source's name. */
  readonly scheme?: string | undefined
  /** The sender's id of the delivery. */
  readonly deliveryId: string
  /** The sender's id of the hook. Empty if it sends none. */
  readonly hookId: string
  /**
   * Query of the address at which it arrived, without `?`: visible ASCII, at most 16 KiB. No signature covers it.
   * Absent without one.
   */
  readonly query?: string | undefined
  /** The payload's `repository.full_name`, if it has one. */
  readonly repo: string | null
  /** Absent for a delivery that came over HTTP, byte for byte. */
  readonly restored?: Restoration | undefined
}

/** Bytes of a delivery besides its body and its headers: its row and index entries. */
const ROW_BYTES = 1024
/** {@link storedBytes} of a row of `delivery`, in SQL. */
export const STORED_BYTES = `(size + length(headers) + coalesce(length(query), 0) + ${ROW_BYTES})`

/** Bytes that a delivery takes in the database, about. */
export function storedBytes({ body, headers, query = '' }: Delivery): number {
  return body.byteLength + JSON.stringify(headers).length + query.length + ROW_BYTES
}

/** Result of appending a delivery to the journal. */
export interface Receipt {
  /** The entry's number: 1, 2, 3 … */
  readonly n: number
  /** True if the journal already had this delivery; `n` is then that entry. */
  readonly duplicate: boolean
  /** Ids of the targets that wait for it. For a duplicate, some may have waited before. */
  readonly targets: readonly string[]
  /** As in {@link Entry}. */
  readonly ignoredBy?: string
}

/** A journal entry: the delivery, its number, its duplicates, and the rule that ignored it. */
export interface Entry extends Delivery {
  readonly n: number
  readonly duplicates: number
  /** The ignore rule that kept the delivery from every target. */
  readonly ignoredBy?: string
}

/** An entry without its body. */
export type Summary = Omit<Entry, 'body'> & {
  /** Size of the body in bytes. */
  readonly size: number
  readonly forwards: Forwards
}

/** Status of the forward of an entry to one target. `failed` is final unless the delivery arrives again. */
export type ForwardStatus = 'waiting' | 'succeeded' | 'failed'

export type Forward = {
  readonly status: ForwardStatus
  /** Failed attempts in this wait: the target asked for another one, or did not answer in time. */
  readonly tries: number
  /** Start of the wait, in milliseconds. */
  readonly since: number
  /** Time before which it is not tried again, in milliseconds. Absent if it ended, or was not tried in this wait. */
  readonly due?: number
  /** Reason of a failure, for a person. */
  readonly reason?: string
}

/**
 * True if a forward failed, or a target asked for another attempt. An unreachable target does not count: the delivery
 * waits until it is back. Same as FAILED_ATTEMPT of store/schema.ts.
 */
export function isFailedAttempt({ status, tries }: Omit<Forward, 'since' | 'reason'>): boolean {
  return status === 'failed' || tries > 0
}

/** Forwards by target id. Empty for an entry without targets. */
export type Forwards = Readonly<Record<string, Forward>>

/** Number of forwards by status. */
export type ForwardCounts = Readonly<Record<ForwardStatus, number>>

/** Number of forwards to one target. */
export interface TargetCounts extends ForwardCounts {
  /** Start of the longest wait in milliseconds, or null if none waits. */
  readonly oldest: number | null
}

/** Why a delivery waits for a target. */
export interface WaitReason {
  /** `down: connection refused`, `behind #3`; with `nextTryAt`, it ends in `tried again`. */
  readonly text: string
  /** Time of the attempt that it waits for, in milliseconds since 1970-01-01 UTC. */
  readonly nextTryAt?: number
}

/** Outcome of one attempt. */
export type AttemptOutcome = 'succeeded' | 'retry' | 'refused' | 'unreachable' | 'timed out' | 'killed'

/** The part of an attempt that a line of a list shows. */
export interface AttemptSummary {
  readonly target: string
  readonly outcome: AttemptOutcome
  /** HTTP status or exit code, or null. */
  readonly status: number | null
  /** Duration in milliseconds; of several, the last. */
  readonly ms: number
}

/** One attempt, or several in a row whose connection failed in the same way. */
export interface Attempt extends AttemptSummary {
  /** Start in milliseconds; of several, the last. */
  readonly at: number
  /** First 4096 bytes of the target's response or output. */
  readonly answer: Uint8Array
  /** Headers of the response, without credentials. Absent without an HTTP response. */
  readonly headers?: readonly Header[]
  /** Error message. At most {@link MAX_ERROR} characters are stored. */
  readonly error: string | null
  readonly count: number
}

/** Longest error in characters: enough for any message of the system. */
export const MAX_ERROR = 1024

/** Forwards that wait for a target, in order. */
export interface Waiting {
  /** Forwards that were not tried in this wait, in the order of arrival. */
  readonly first: readonly DueForward[]
  /** Forwards to be tried again, the earliest first, also those whose time has not come. */
  readonly again: readonly DueForward[]
}

/** A waiting forward. */
export interface DueForward {
  readonly n: number
  readonly forward: Forward
  /** True if the last attempt was not answered in time. */
  readonly isUnanswered: boolean
}

/**
 * Forwarding of a duplicate: to targets where it failed and new ones, to all that do not already wait for it, or to
 * none.
 */
export type OnDuplicate = 'if-failed' | 'always' | 'never'

/** Forwarding of a delivery that is appended. */
export interface Plan {
  /** Ids of the targets that it is forwarded to, in the order of the routes. */
  readonly targets: readonly string[]
  /** The ignore rule that matches it. There are no targets then. */
  readonly ignoredBy?: string | undefined
  readonly onDuplicate: OnDuplicate
  /** Milliseconds after which an equal delivery is a new one. Default: never. */
  readonly sameWithin?: number | undefined
  /**
   * Start of the wait for the targets, for a delivery that had waited elsewhere. Milliseconds since 1970-01-01 UTC.
   * Default: when it was received.
   */
  readonly since?: number | undefined
}

/** Last attempt at a target, for a line of a list. */
export interface LastAttempt extends AttemptSummary {
  readonly n: number
}

/** Deliveries received in one minute. */
export interface MinuteCounts {
  /** Number of the minute since 1970. */
  readonly minute: number
  /** At most 10,000 are counted. */
  readonly received: number
  /** Number of those counted that failed at a target, or needed another attempt. */
  readonly failed: number
}

/** Header of a delivery that a user edited and sent: the number of the original entry. Only relay sets it. */
export const EDITED_HEADER = 'X-Relay-Edited'

export function isEditedHeader(name: string): boolean {
  return name.length === EDITED_HEADER.length && name.toLowerCase() === EDITED_HEADER.toLowerCase()
}

/**
 * Header of a delivery that is forwarded as it came, although its signed time is so long ago that its receiver may refuse
 * it, since only its sender could sign it again. Its value is `true`. Only relay sets it.
 */
export const LATE_HEADER = 'X-Relay-Late'

/**
 * Header with the claims, in base64url, of a token that is a credential and so not stored. Without the token's signature
 * they prove nothing. Only relay sets it, and does not forward it: it makes another token with them.
 */
export const CLAIMS_HEADER = 'X-Relay-Claims'

const RELAY_HEADERS: ReadonlySet<string> = new Set(
  [EDITED_HEADER, LATE_HEADER, CLAIMS_HEADER].map((name) => name.toLowerCase()),
)

/** True for a header that a request from outside cannot claim. */
export function isRelayHeader(name: string): boolean {
  return RELAY_HEADERS.has(name.toLowerCase())
}

/** Number of the entry that a delivery is an edited copy of. Undefined for one from outside. */
export function editedFrom({ headers }: { readonly headers: readonly Header[] }): number | undefined {
  const [, value] = headers.find(([name]) => isEditedHeader(name)) ?? []
  return value === undefined ? undefined : Number(value)
}

/** Formats the number of a delivery's subject: `#12`, or `!12` for a merge request of GitLab. Empty if it has none. */
export function numberText({ number, kind }: Pick<DeliverySubject, 'number' | 'kind'>): string {
  return number === null ? '' : `${kind === 'pull' ? '!' : '#'}${number}`
}

/** Subject of a delivery within its repository: `#12`, a branch or a tag. Null if the payload names none. */
export function subjectOf({ number, kind, ref }: DeliverySubject): string | null {
  if (number !== null) return numberText({ number, ...(kind && { kind }) })
  return ref === undefined ? null : shortRef(ref)
}

/** Name of a branch or tag. The event tells which one it is. */
export function shortRef(ref: string): string {
  return ref.replace(/^refs\/(?:heads|tags)\//, '')
}

/** Explains why an entry was forwarded to no target. */
export function ignoredText(ignoredBy: string): string {
  return `ignored by ${ignoredBy}`
}
