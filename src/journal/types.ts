import type { Header } from '../http/headers.js'

/** How a delivery's signature verified: with its source's current secret or the one before it; `none`: nothing proves it. */
export type VerifiedBy = 'current' | 'previous' | 'none'

/** Of a delivery that came through a tunnel, which does not carry the bytes that were signed. */
export type Restored = {
  /** How they were got back, in a word or two. */
  readonly how: string
  /** SHA-256 of the signed bytes, base64url. It identifies the delivery, because the headers are not signed. */
  readonly sha256: string
  /** Set if the payload does not prove the event: it fits others too, or none that is known. */
  readonly unproved?: true
  /** Set if the sender can send these bytes for two things that happened, since they hold neither a time nor an id; or if it signs the id. */
  readonly repeatable?: true
}

/** One webhook request that proved genuine. */
export interface Delivery {
  /** Milliseconds since 1970-01-01 UTC. */
  readonly receivedAt: number
  /** The source: the code host's name, or that of another sender. */
  readonly provider: string
  /** How it is signed, as the settings write it; the source's name if absent. */
  readonly scheme?: string
  readonly event: string
  /** The sender's id of the delivery. */
  readonly deliveryId: string
  /** The sender's id of the hook; empty where it sends none. */
  readonly hookId: string
  /** In the order received, without those that carry credentials. */
  readonly headers: readonly Header[]
  /** The exact bytes that were signed and sent. */
  readonly body: Uint8Array
  readonly verifiedBy: VerifiedBy
  /** The payload's `action`, `repository.full_name` and issue or pull-request number, where it has them. */
  readonly action: string | null
  readonly repo: string | null
  readonly number: number | null
  /** The branch or tag of a push, of what was created or deleted, or of a release, as the payload spells it: `refs/heads/main`, `v1.0`. */
  readonly ref?: string
  /** Absent where it came over HTTP, byte for byte. */
  readonly restored?: Restored
}

/** A delivery's place in the journal. */
export interface Receipt {
  /** The entry's number: 1, 2, 3 … */
  readonly n: number
  /** True when the journal already had this delivery; `n` is then that entry. */
  readonly duplicate: boolean
  /** The ids of the targets that wait for it. Of a duplicate, some may have waited before. */
  readonly targets: readonly string[]
  /** As of {@link Entry}. */
  readonly ignoredBy?: string
}

/** A journal entry: the delivery, its number, how often it came again, and whether it was ignored. */
export interface Entry extends Delivery {
  readonly n: number
  readonly duplicates: number
  /** The match of the ignore rule that kept it from every target when it came. */
  readonly ignoredBy?: string
}

/** What is known of an entry without its body. */
export type Summary = Omit<Entry, 'body'> & {
  /** Bytes of the body. */
  readonly size: number
  readonly forwards: Forwards
}

/** The status of the forward of an entry to one target. `failed` is final until the delivery comes again. */
export type ForwardStatus = 'waiting' | 'succeeded' | 'failed'

export type Forward = {
  readonly status: ForwardStatus
  /** Answers that asked for a retry, since it began to wait. */
  readonly tries: number
  /** When it began to wait, in milliseconds. */
  readonly since: number
  /** Why it failed, for a person. */
  readonly reason?: string
}

/**
 * Whether it failed, or an answer asked for another attempt. An attempt that found its target unreachable is none of these: the target is
 * down then, and the delivery waits. As FAILED_ATTEMPT of store/schema.ts.
 */
export function isFailedAttempt({ status, tries }: Pick<Forward, 'status' | 'tries'>): boolean {
  return status === 'failed' || tries > 0
}

/** By target id. An entry without any was never to be forwarded. */
export type Forwards = Readonly<Record<string, Forward>>

/** How many forwards have each status. */
export type ForwardCounts = Readonly<Record<ForwardStatus, number>>

/** The forwards to one target. */
export interface TargetCounts extends ForwardCounts {
  /** When the first that waits began to, in milliseconds; null where none waits. */
  readonly oldest: number | null
}

/** What one attempt came to. */
export type Outcome = 'succeeded' | 'retry' | 'refused' | 'unreachable' | 'timed out' | 'killed'

/** One attempt, or several in a row whose connection failed in the same way. */
export interface Attempt {
  /** When it began, in milliseconds; of several, the last. */
  readonly at: number
  readonly target: string
  readonly outcome: Outcome
  /** The HTTP status or exit code; null when there was none. */
  readonly status: number | null
  /** How long it took; of several, the last. */
  readonly ms: number
  /** The start of the target's answer or output: the first 4096 bytes. */
  readonly answer: Uint8Array
  /** The answer's headers, without credentials; absent where there was no HTTP answer. */
  readonly headers?: readonly Header[]
  /** At most {@link MAX_ERROR} characters are stored. */
  readonly error: string | null
  readonly count: number
}

/** Enough for any message of the system. */
export const MAX_ERROR = 1024

/** A forward that waits, and how many attempts were made before. */
export interface Due {
  readonly n: number
  readonly forward: Forward
  readonly earlier: number
}

/**
 * Which targets a delivery that came again is forwarded to: those where it failed and those that are new, all that do not have it waiting,
 * or none.
 */
export type OnDuplicate = 'if-failed' | 'always' | 'never'

/** What becomes of a delivery that is appended. */
export interface Plan {
  /** The ids of the targets that it is forwarded to, in the order of the routes. */
  readonly targets: readonly string[]
  /** The match of the rule that ignores it; there are no targets then. */
  readonly ignoredBy?: string | undefined
  readonly onDuplicate: OnDuplicate
}

/** The last attempt at a target: what a line of a list shows of it. */
export interface LastAttempt extends Pick<Attempt, 'target' | 'outcome' | 'status' | 'ms'> {
  readonly n: number
}

/** The deliveries received in one minute. */
export interface Minute {
  /** Its number since 1970. */
  readonly minute: number
  /** At most 10,000 are counted. */
  readonly received: number
  /** How many of those counted have failed at a target, or needed another attempt there. */
  readonly failed: number
}

/** The header of a delivery that a user edited and sent: the number of the entry that it is a copy of. Only relay sets it. */
export const EDITED_HEADER = 'X-Relay-Edited'

export function isEditedHeader(name: string): boolean {
  return name.length === EDITED_HEADER.length && name.toLowerCase() === EDITED_HEADER.toLowerCase()
}

/** The number of the entry that a delivery is an edited copy of; undefined for one that came from outside. */
export function editedFrom({ headers }: Pick<Delivery, 'headers'>): number | undefined {
  const [, value] = headers.find(([name]) => isEditedHeader(name)) ?? []
  return value === undefined ? undefined : Number(value)
}

/** What a delivery is about within its repository: `#12`, a branch or a tag; null where the payload names none. */
export function subjectOf({ number, ref }: Pick<Delivery, 'number' | 'ref'>): string | null {
  if (number !== null) return `#${number}`
  return ref === undefined ? null : shortRef(ref)
}

/** The name of a branch or tag; the event says which of the two it is. */
export function shortRef(ref: string): string {
  return ref.replace(/^refs\/(?:heads|tags)\//, '')
}

/** Why an entry was forwarded to no target. */
export function ignoredText(ignoredBy: string): string {
  return `ignored by ${ignoredBy}`
}
