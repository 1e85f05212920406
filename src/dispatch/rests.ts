import type { Clock } from '../base/time.js'
import type { Random } from '../base/backoff.js'

/** Calls `run` once after `ms` milliseconds, unless the function it returns is called before. */
export type Timer = (ms: number, run: () => void) => () => void

export const systemTimer: Timer = (ms, run) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/** What time and chance are. */
export interface Time {
  readonly clock: Clock
  readonly timer: Timer
  readonly random: Random
}

/** What is to be left alone for a while. */
export class Rests<Key> {
  readonly #timer: Timer
  readonly #wakes = new Map<Key, () => void>()

  constructor(timer: Timer) {
    this.#timer = timer
  }

  get size(): number {
    return this.#wakes.size
  }

  has(key: Key): boolean {
    return this.#wakes.has(key)
  }

  /** Lets `key` rest for `ms` milliseconds, then calls `then`. */
  start(key: Key, ms: number, then: () => void): void {
    this.end(key)
    const cancel = this.#timer(ms, () => {
      this.#wakes.delete(key)
      then()
    })
    this.#wakes.set(key, cancel)
  }

  end(key: Key): void {
    this.#wakes.get(key)?.()
    this.#wakes.delete(key)
  }

  endAll(): void {
    for (const cancel of this.#wakes.values()) cancel()
    this.#wakes.clear()
  }
}

/** Resolves after `ms` milliseconds, or when `signal` aborts. */
export function rest(ms: number, timer: Timer, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = timer(ms, end)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  })
}
