import type { Header } from '../http/headers.js'

/** Why a request was refused, in kinds that are counted. */
export type RefusedKind = 'no_signature' | 'invalid_signature' | 'invalid_event' | 'too_large' | 'wrong_path'

/** A request that was refused. Nothing in it is proved, and it is never forwarded. */
export interface Refused {
  /** 1, 2, 3 … since the start of the instance. */
  readonly id: number
  /** Milliseconds since 1970-01-01 UTC. */
  readonly at: number
  readonly via: 'http' | 'tunnel'
  /** The name of the source that it was sent to. */
  readonly source: string
  /** The HTTP status of the answer; for the tunnel, the one it would have been. */
  readonly status: number
  readonly kind: RefusedKind
  /** One sentence for the user. Found on the first call only, since it can take many hashes. */
  readonly reason: () => Promise<string>
  /** As the headers claim, at most 200 characters; null without the header. */
  readonly event: string | null
  readonly deliveryId: string | null
  /** Without those that carry credentials. */
  readonly headers: readonly Header[]
  /** The first 256 KiB. Empty where the body was not read. */
  readonly body: Uint8Array
  /** Bytes of the whole body, as far as it is known. */
  readonly size: number
}

/** How many requests of a kind were refused since the start, whether they are still in the list or not. */
export type RefusedCounts = Partial<Readonly<Record<RefusedKind, number>>>

/** More than a person looks through. */
const MAX_ENTRIES = 100
/** 256 KiB hold nearly every delivery whole. */
const MAX_BODY = 262_144
/** Bytes of all bodies and headers together: 8 MiB. */
const MAX_TOTAL = 8_388_608

/** An hour, and the minute that is under way. */
const MINUTES = 61

/** The last refused requests, in memory. The oldest of the most frequent kind makes room: a flood pushes out no other kind. */
export class RefusedList {
  readonly #kept = new Map<number, Refused>()
  readonly #counts: Partial<Record<RefusedKind, number>> = {}
  readonly #minutes = new Map<number, number>()
  #total = 0
  #last = 0

  add(given: Omit<Refused, 'id'>): Refused {
    // A copy, so that the rest of a long body, or the buffer around a short one, is not held.
    const body = new Uint8Array(given.body.subarray(0, MAX_BODY))
    const refused = { ...given, body, id: ++this.#last }
    const { id, kind, at } = refused
    this.#kept.set(id, refused)
    this.#total += sizeOf(refused)
    this.count(kind, at)
    while (this.#kept.size > MAX_ENTRIES || this.#total > MAX_TOTAL) this.#makeRoom()
    return refused
  }

  /** Counts one that is not in the list. `at`: milliseconds since 1970-01-01 UTC. */
  count(kind: RefusedKind, at: number): void {
    this.#counts[kind] = (this.#counts[kind] ?? 0) + 1
    const minute = Math.floor(at / 60_000)
    this.#minutes.set(minute, (this.#minutes.get(minute) ?? 0) + 1)
    const [oldest = minute] = this.#minutes.keys()
    if (this.#minutes.size > MINUTES) this.#minutes.delete(oldest)
  }

  /** The newest last. */
  list(): readonly Refused[] {
    return [...this.#kept.values()]
  }

  get(id: number): Refused | undefined {
    return this.#kept.get(id)
  }

  counts(): RefusedCounts {
    return { ...this.#counts }
  }

  /** How many were refused in each of the last 61 minutes in which any was, by the minute's number since 1970. */
  minutes(): ReadonlyMap<number, number> {
    return this.#minutes
  }

  #makeRoom(): void {
    const counts = new Map<RefusedKind, number>()
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

function sizeOf({ body, headers }: Refused): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.length)
}
