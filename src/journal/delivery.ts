import type { HandOns } from './hand-on.js'

/** How a delivery's signature verified: with the current webhook secret or the one before it. */
export type VerifiedBy = 'current' | 'previous'

/** One header as received: the name's own spelling, the value decoded as latin1. */
export type Header = readonly [name: string, value: string]

/** Of a delivery that came through a tunnel, which does not carry the bytes that were signed. */
export type Restored = {
  /** How they were got back, in a word or two. */
  readonly how: string
  /** SHA-256 of what was signed, base64url. The delivery is known by it: what else came with it is signed by nobody. */
  readonly sha256: string
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
  /** Absent where it came over HTTP, byte for byte. */
  readonly restored?: Restored
}

/** A delivery's place in the journal. */
export interface Receipt {
  /** The entry's number: 1, 2, 3 … */
  readonly n: number
  /** True when the journal already had this delivery; `n` is then that entry. */
  readonly duplicate: boolean
  /** The ids of the targets it is to be handed on to now. */
  readonly targets: readonly string[]
}

/** A journal entry: the delivery, its number, and how often it came again. */
export interface Entry extends Delivery {
  readonly n: number
  readonly duplicates: number
}

/** What is known of an entry without its body. */
export type Summary = Omit<Entry, 'body'> & {
  /** Bytes of the body. */
  readonly size: number
  readonly handOns: HandOns
}
