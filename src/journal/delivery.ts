import type { Header } from '../http/headers.js'
import type { Forwards } from './forward.js'

/** How a delivery's signature verified: with the current webhook secret or the one before it. */
export type VerifiedBy = 'current' | 'previous'

/** Of a delivery that came through a tunnel, which does not carry the bytes that were signed. */
export type Restored = {
  /** How they were got back, in a word or two. */
  readonly how: string
  /** SHA-256 of the signed bytes, base64url. It identifies the delivery, because the headers are not signed. */
  readonly sha256: string
  /** Set if the payload does not prove the event: it fits others too, or none that is known. */
  readonly unproved?: true
  /** Set if the code host can send these bytes for two things that happened: they hold neither a time nor an id. */
  readonly repeatable?: true
}

/** One webhook request that proved genuine. */
export interface Delivery {
  /** Milliseconds since 1970-01-01 UTC. */
  readonly receivedAt: number
  readonly provider: string
  readonly event: string
  /** The provider's id of the delivery. */
  readonly deliveryId: string
  /** The provider's id of the hook; empty where it sends none. */
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
  /**
   * The branch or tag of a push, of what was created or deleted, or of a release, as the payload spells it: `refs/heads/main`, `v1.0`.
   * Absent where the payload has none, and in entries of earlier versions.
   */
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
  /** Present when the write took over its limit, so that the sender was answered 503 before the entry was stored. */
  readonly late?: true
}

/** A journal entry: the delivery, its number, how often it came again, and whether it was ignored. */
export interface Entry extends Delivery {
  readonly n: number
  readonly duplicates: number
  /** What kept it from every target when it came: the match of an ignore rule, or `#12` if entry 12 is the same event through another hook. */
  readonly ignoredBy?: string
}

/** What is known of an entry without its body. */
export type Summary = Omit<Entry, 'body'> & {
  /** Bytes of the body. */
  readonly size: number
  readonly forwards: Forwards
}
