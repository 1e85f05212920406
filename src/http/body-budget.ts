import type { Duplex } from 'node:stream'
import { RelayError } from '../base/errors.js'

/** 64 MiB: 64 of the largest bodies at the default limit, and far less than a workstation has. */
export const MIN_BODY_BUDGET = 67_108_864
/** With a higher limit per body, the budget is four of the largest bodies. */
const LARGEST_BODIES = 4
/** 512 bytes: what Node holds for one chunk of a body besides its bytes (measured: 400 to 500). */
const CHUNK_OVERHEAD = 512
/** 5 s: by then the bodies read at the same time have ended, unless their senders stall. */
const RETRY_AFTER_SECONDS = 5

/** The limit in bytes for all bodies being read at the same time, where one may have `maxBody` bytes. */
export function bodyBudgetFor(maxBody: number): number {
  return Math.max(MIN_BODY_BUDGET, LARGEST_BODIES * maxBody)
}

/** One body's share of a {@link BodyBudget}. */
export interface BodyShare {
  /** Counts a chunk of this many bytes. May refuse the largest body, which can be this one. */
  readonly add: (bytes: number) => void
  /** The body has arrived completely: it still counts, but is no longer refused. */
  readonly complete: () => void
  /** Returns the counted bytes to the budget. Calling it again does nothing. */
  readonly release: () => void
}

interface OpenBody {
  bytes: number
  readonly refuse: (error: RelayError) => void
}

/**
 * Memory limit for all bodies that a listener is reading. Only the bytes that have arrived count, until the response to the
 * request is sent: a body that waits to be verified takes memory too. Over the limit the largest body is refused, so
 * that a client that stalls large bodies does not block deliveries, most of which are small.
 */
export class BodyBudget {
  readonly #limit: number
  readonly #bodies = new Set<OpenBody>()
  #used = 0

  /** `limit` is in bytes. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** The bytes counted now. */
  get used(): number {
    return this.#used
  }

  /** `refuse` must release the share; its error is `unavailable` (503) with `Retry-After`. */
  open(refuse: (error: RelayError) => void): BodyShare {
    const body: OpenBody = { bytes: 0, refuse }
    this.#bodies.add(body)
    let isReleased = false
    return {
      add: (bytes) => {
        body.bytes += bytes + CHUNK_OVERHEAD
        this.#used += bytes + CHUNK_OVERHEAD
        if (this.#used > this.#limit) this.#refuseLargest()
      },
      complete: () => void this.#bodies.delete(body),
      release: () => {
        this.#bodies.delete(body)
        if (!isReleased) this.#used -= body.bytes
        isReleased = true
      },
    }
  }

  #refuseLargest(): void {
    let largest: OpenBody | undefined
    for (const body of this.#bodies) if (!largest || body.bytes > largest.bytes) largest = body
    largest?.refuse(
      new RelayError('unavailable', 'Too many request bodies at once', { retryAfter: RETRY_AFTER_SECONDS }),
    )
  }
}

const budgets = new WeakMap<Duplex, BodyBudget>()

/** Makes every body read from this connection count towards `budget`. */
export function setBodyBudget(socket: Duplex, budget: BodyBudget): void {
  budgets.set(socket, budget)
}

/** The budget of this connection; undefined when the listener has set none. */
export function bodyBudgetOf(socket: Duplex): BodyBudget | undefined {
  return budgets.get(socket)
}
