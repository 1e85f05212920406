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
  /** The first {@link RefusedLimits.body} bytes. Empty where the body was not read. */
  readonly body: Uint8Array
  /** Bytes of the whole body, as far as it is known. */
  readonly size: number
}

/** How many requests of a kind were refused since the start, whether they are still in the list or not. */
export type RefusedCounts = Partial<Readonly<Record<RefusedKind, number>>>

/** The last refused requests, over HTTP and through the tunnel. In memory only. */
export interface RefusedList {
  add(refused: Omit<Refused, 'id'>): Refused
  /** The newest last. */
  list(): readonly Refused[]
  get(id: number): Refused | undefined
  counts(): RefusedCounts
  /** How many were refused in each of the last {@link MINUTES} minutes in which any was, by the minute's number since 1970. */
  minutes(): ReadonlyMap<number, number>
}

/** An hour, and the minute that is under way. */
const MINUTES = 61

export interface RefusedLimits {
  readonly entries: number
  /** Bytes of one body. */
  readonly body: number
  /** Bytes of all bodies and headers together. */
  readonly total: number
}

/** 100 are more than a person looks through; 256 KiB hold nearly every delivery whole. */
export const REFUSED_LIMITS: RefusedLimits = { entries: 100, body: 262_144, total: 8_388_608 }

/**
 * Keeps the last refused requests within the limits. Where there are too many, the oldest of the most frequent kind makes
 * room, so that a flood of one kind does not push out the others.
 */
export function createRefusedList(limits: RefusedLimits = REFUSED_LIMITS): RefusedList {
  const kept = new Map<number, Refused>()
  const counts: Partial<Record<RefusedKind, number>> = {}
  const minutes = new Map<number, number>()
  let total = 0
  let last = 0
  const makeRoom = (): void => {
    while (kept.size > limits.entries || total > limits.total) {
      const oldest = oldestOf(mostFrequent([...kept.values()]), kept.values())
      if (!oldest) return
      kept.delete(oldest.id)
      total -= sizeOf(oldest)
    }
  }
  return {
    add(given) {
      // A copy, so that the rest of a long body is not held.
      const body = given.body.length > limits.body ? given.body.slice(0, limits.body) : given.body
      const refused = { ...given, body, id: ++last }
      kept.set(refused.id, refused)
      total += sizeOf(refused)
      counts[refused.kind] = (counts[refused.kind] ?? 0) + 1
      const minute = Math.floor(refused.at / 60_000)
      minutes.set(minute, (minutes.get(minute) ?? 0) + 1)
      const [oldest] = minutes.keys()
      if (minutes.size > MINUTES && oldest !== undefined) minutes.delete(oldest)
      makeRoom()
      return refused
    },
    list: () => [...kept.values()],
    get: (id) => kept.get(id),
    counts: () => ({ ...counts }),
    minutes: () => minutes,
  }
}

function sizeOf({ body, headers }: Refused): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.length)
}

function mostFrequent(refused: readonly Refused[]): RefusedKind | undefined {
  const counts = new Map<RefusedKind, number>()
  for (const { kind } of refused) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return [...counts].toSorted(([, one], [, other]) => other - one)[0]?.[0]
}

function oldestOf(kind: RefusedKind | undefined, refused: Iterable<Refused>): Refused | undefined {
  for (const each of refused) if (each.kind === kind) return each
  return undefined
}
