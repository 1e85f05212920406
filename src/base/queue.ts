import { deadline, onAbort } from './wait.js'

/**
 * Values that are pushed, as a stream for one reader. The sender never waits for the reader: once `max` values wait,
 * further ones are dropped, and `dropped` makes a value of their number.
 */
export class Queue<Value> implements AsyncIterable<Value> {
  readonly #max: number
  readonly #dropped: (count: number) => Value
  readonly #values: Value[] = []
  #lost = 0
  #isEnded = false
  #wake = (): void => {}

  constructor(max: number, dropped: (count: number) => Value) {
    this.#max = max
    this.#dropped = dropped
  }

  readonly push = (value: Value): void => {
    if (this.#values.length < this.#max) this.#values.push(value)
    else this.#lost += 1
    this.#wake()
  }

  /** Ends the stream after the values that wait. */
  readonly end = (): void => {
    this.#isEnded = true
    this.#wake()
  }

  /** Yields the values for `limit` milliseconds, after which the stream ends. @throws the signal's reason */
  async *within(limit: number, signal: AbortSignal): AsyncGenerator<Value, void> {
    const stop = onAbort(deadline(limit, signal), this.end)
    try {
      yield* this
    } finally {
      stop()
    }
    signal.throwIfAborted()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Value, void> {
    for (;;) {
      for (let next = this.#values.splice(0); next.length > 0; next = this.#values.splice(0)) yield* next
      const lost = this.#lost
      this.#lost = 0
      if (lost > 0) yield this.#dropped(lost)
      else if (this.#isEnded) return
      else if (this.#values.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}
