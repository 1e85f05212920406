import type { Clock } from '../base/time.js'
import type { Random } from '../base/backoff.js'

/** Calls `run` once after `ms` milliseconds, unless the function it returns is called before. */
export type Timer = (ms: number, run: () => void) => () => void

export const systemTimer: Timer = (ms, run) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/** Sources of time and chance. */
export interface Time {
  readonly clock: Clock
  /** The clock that ages are counted by: behind `clock` after that was set ahead. */
  readonly ages: Clock
  readonly timer: Timer
  readonly random: Random
  /** As in `Limits`. */
  readonly retries?: readonly number[]
  readonly probe?: number
}

/** Timers by key, one per key. */
export class RetryTimers<Key> {
  readonly #timer: Timer
  readonly #cancels = new Map<Key, () => void>()

  constructor(timer: Timer) {
    this.#timer = timer
  }

  get size(): number {
    return this.#cancels.size
  }

  has(key: Key): boolean {
    return this.#cancels.has(key)
  }

  /** Calls `then` after `ms` milliseconds. Replaces the timer that `key` has. */
  start(key: Key, ms: number, then: () => void): void {
    this.cancel(key)
    const cancel = this.#timer(ms, () => {
      this.#cancels.delete(key)
      then()
    })
    this.#cancels.set(key, cancel)
  }

  cancel(key: Key): void {
    this.#cancels.get(key)?.()
    this.#cancels.delete(key)
  }

  cancelAll(): void {
    for (const cancel of this.#cancels.values()) cancel()
    this.#cancels.clear()
  }
}

/** Resolves after `ms` milliseconds, or when `signal` aborts. */
export function delay(ms: number, timer: Timer, signal: AbortSignal): Promise<void> {
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
