import type { Header } from '../http/headers.js'

/** Kinds of refusals that are counted. */
export type RefusedKind = 'no_signature' | 'invalid_signature' | 'invalid_event' | 'too_large' | 'wrong_path'

/**
 * Kinds of listed requests. `handshake`: the sender's question to the address, answered or not. `question`: a request of
 * another method than POST that is no handshake of the source. Neither is a delivery, and neither is counted as refused.
 */
export type ListedKind = RefusedKind | 'handshake' | 'question'

/** A listed request. Nothing in it is proved, and it is never forwarded. */
export interface RefusedRequest {
  /** 1, 2, 3 … since the start of the instance. */
  readonly id: number
  /** Milliseconds since 1970-01-01 UTC. */
  readonly at: number
  readonly via: 'http' | 'tunnel'
  /** Name of the source that it was sent to. */
  readonly source: string
  /** HTTP status of the response. For the tunnel, the status that it would have had. */
  readonly status: number
  readonly kind: ListedKind
  /** Reason in one sentence for the user. Determined on the first call, since it can take many hashes. */
  readonly reason: () => Promise<string>
  /** Claims of the headers, at most 200 characters. Null without the header. */
  readonly event: string | null
  readonly deliveryId: string | null
  /** Headers without credentials. */
  readonly headers: readonly Header[]
  /** Query of its address, without a secret, and the address that its sender was given. */
  readonly query?: string | undefined
  readonly payloadUrl?: string | undefined
  /** First 256 KiB of the body. Empty if the body was not read. */
  readonly body: Uint8Array
  /** Size of the whole body in bytes, as far as it is known. */
  readonly size: number
}

/** Number of requests of each kind refused since the start, including those no longer in the list. */
export type RefusedCounts = Partial<Readonly<Record<RefusedKind, number>>>

/** Most listed requests: more than a person looks through. */
const MAX_ENTRIES = 100
/** Most stored bytes of a body: nearly every delivery fits. */
const MAX_BODY = 262_144
/** Most bytes of all bodies and headers together: 8 MiB. */
const MAX_TOTAL = 8_388_608

/** Counted minutes: an hour, and the current one. */
const MINUTES = 61

/**
 * List of the last refused requests, in memory. The oldest of the most frequent kind is removed first, so that a flood
 * does not displace other kinds.
 */
export class RefusedList {
  readonly #kept = new Map<number, RefusedRequest>()
  readonly #counts: Partial<Record<RefusedKind, number>> = {}
  readonly #minutes = new Map<number, number>()
  #total = 0
  #last = 0

  add(given: Omit<RefusedRequest, 'id'>): RefusedRequest {
    // Copied, so that neither the rest of a long body nor the buffer around a short one stays in memory.
    const body = new Uint8Array(given.body.subarray(0, MAX_BODY))
    const refused = { ...given, body, id: ++this.#last }
    const { id, kind, at } = refused
    this.#kept.set(id, refused)
    this.#total += sizeOf(refused)
    if (kind !== 'handshake' && kind !== 'question') this.count(kind, at)
    while (this.#kept.size > MAX_ENTRIES || this.#total > MAX_TOTAL) this.#makeRoom()
    return refused
  }

  /** Counts a request that is not listed. `at` is milliseconds since 1970-01-01 UTC. */
  count(kind: RefusedKind, at: number): void {
    this.#counts[kind] = (this.#counts[kind] ?? 0) + 1
    const minute = Math.floor(at / 60_000)
    this.#minutes.set(minute, (this.#minutes.get(minute) ?? 0) + 1)
    const [oldest = minute] = this.#minutes.keys()
    if (this.#minutes.size > MINUTES) this.#minutes.delete(oldest)
  }

  /** All listed requests, the newest last. */
  list(): readonly RefusedRequest[] {
    return [...this.#kept.values()]
  }

  get(id: number): RefusedRequest | undefined {
    return this.#kept.get(id)
  }

  counts(): RefusedCounts {
    return { ...this.#counts }
  }

  /** Number of refusals in each of the last 61 minutes with any, by the minute's number since 1970. */
  minutes(): ReadonlyMap<number, number> {
    return this.#minutes
  }

  #makeRoom(): void {
    const counts = new Map<ListedKind, number>()
    for (const { kind } of this.#kept.values()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
    const most = Math.max(...counts.values())
    for (const refused of this.#kept.values()) {
      if (counts.get(refused.kind) !== most) continue
      this.#kept.delete(refused.id)
      this.#total -= sizeOf(refused)
      return
    }
  }
}

function sizeOf({ body, headers }: RefusedRequest): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.length)
}
