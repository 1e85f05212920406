import type { Clock } from '../../base/time.js'
import type { Message, Outcome } from './send.js'

/** GitHub can show and redeliver the last 3 days (https://docs.github.com/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks). */
const LOG_PERIOD_MS = 3 * 86_400_000
/** Maximum number of logged deliveries of all hooks; the oldest are removed first. */
const LOG_LIMIT = 10_000
/** Maximum size of their payloads, 64 MiB: a payload is about 8 KB, one with a long comment 70 KB. */
const MAX_PAYLOADS = 67_108_864
/** GitHub's ids have 64 bits, and neighbours are equal once read as JavaScript numbers. They grow, also from one sandbox to the next. */
const FIRST_ID = 3_842_091_948_768_772_096n

/** A delivery that was sent once. A redelivery is another one with the same GUID. */
export interface LoggedDelivery extends Message, Outcome {
  readonly id: bigint
  readonly hookId: number
  /** Address that it was sent to. */
  readonly url: string
  readonly redelivery: boolean
  /** Milliseconds since 1970-01-01 UTC. */
  readonly deliveredAt: number
  /** Seconds from the request to the end of the response. */
  readonly duration: number
}

/** What the sandbox sent, of all hooks, in memory and bounded. */
export class DeliveryLog {
  readonly #clock: Clock
  readonly #limits: { readonly entries: number; readonly payloads: number }
  readonly #entries = new Map<bigint, LoggedDelivery>()
  #payloads = 0
  #nextId: bigint

  constructor(clock: Clock, limits = { entries: LOG_LIMIT, payloads: MAX_PAYLOADS }) {
    this.#nextId = FIRST_ID + BigInt(clock()) * 1000n
    this.#clock = clock
    this.#limits = limits
  }

  add(delivery: Omit<LoggedDelivery, 'id'>): void {
    const id = this.#nextId++
    this.#entries.set(id, { id, ...delivery })
    this.#payloads += delivery.payload.length
    this.#removeOld()
  }

  /** Deliveries of a hook, newest first. */
  of(hookId: number): readonly LoggedDelivery[] {
    this.#removeOld()
    return [...this.#entries.values()].filter((entry) => entry.hookId === hookId).toReversed()
  }

  find(hookId: number, id: bigint): LoggedDelivery | undefined {
    this.#removeOld()
    const entry = this.#entries.get(id)
    return entry?.hookId === hookId ? entry : undefined
  }

  /** Entries are in the order of their ends, so that the first is the oldest to within one time limit. */
  #removeOld(): void {
    const since = this.#clock() - LOG_PERIOD_MS
    for (const { id, deliveredAt, payload } of this.#entries.values()) {
      const full = this.#entries.size > this.#limits.entries || this.#payloads > this.#limits.payloads
      if (!full && deliveredAt >= since) return
      this.#entries.delete(id)
      this.#payloads -= payload.length
    }
  }
}
