import { EventEmitter, once } from 'node:events'
import type { Delivery } from '../journal/delivery.js'
import type { Attempt } from '../journal/forward.js'

/** Bytes of a delivery's rows besides body and headers, and of an attempt's besides the answer: about what SQLite needs. */
const ROWS = 512

/** About how many bytes a delivery adds to the journal. */
export function deliverySize({ headers, body }: Delivery): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.byteLength + ROWS)
}

/** About how many bytes an attempt adds to the journal. */
export function attemptSize({ answer, headers = [] }: Attempt): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, answer.byteLength + ROWS)
}

/** Counts bytes that are added, and reports when they reach a limit. */
export class Growth {
  readonly #limit: number
  readonly #events = new EventEmitter()
  #since = 0
  /** Bytes since the start. */
  total = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  add(bytes: number): void {
    this.total += bytes
    this.#since += bytes
    if (this.#since >= this.#limit) this.#events.emit('reached')
  }

  /** Counts from zero again. */
  reset(): void {
    this.#since = 0
  }

  /** Resolves when the limit is reached, or `signal` aborts. */
  async reached(signal: AbortSignal): Promise<void> {
    if (this.#since >= this.#limit) return
    await once(this.#events, 'reached', { signal }).catch(() => {})
  }
}
