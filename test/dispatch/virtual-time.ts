import type { Time } from '../../src/dispatch/retry-timers.js'

interface Pending {
  readonly ms: number
  readonly at: number
  readonly run: () => void
}

/** Time that passes only when a test advances it, and chance that always returns the middle. */
export class VirtualTime implements Time {
  #now: number
  readonly #pending = new Set<Pending>()
  readonly #waiting = new Set<() => void>()

  constructor(now = Date.parse('2026-11-20T10:00:00Z')) {
    this.#now = now
  }

  readonly clock = (): number => this.#now
  /** By how much ages are behind, in milliseconds. */
  behind = 0
  readonly ages = (): number => this.#now - this.behind
  readonly random = (): number => 0.5
  readonly timer = (ms: number, run: () => void): (() => void) => {
    const pending = { ms, at: this.#now + ms, run }
    this.#pending.add(pending)
    for (const look of this.#waiting) look()
    return () => void this.#pending.delete(pending)
  }

  /** The lengths of the pending waits. */
  get waits(): number[] {
    return [...this.#pending].map(({ ms }) => ms)
  }

  /** Resolves once so many waits are pending. */
  async waited(count = 1): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.#pending.size < count) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }

  /** Advances to the end of the next wait, which may still have to begin, and returns its length. */
  async next(): Promise<number> {
    await this.waited()
    const [first] = [...this.#pending].toSorted((one, other) => one.at - other.at)
    if (!first) throw new Error('unreachable: something waits')
    this.advance(first.at - this.#now)
    return first.ms
  }

  /** Advances the clock and runs every timer that is due. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const [due] = [...this.#pending]
        .filter(({ at }) => at <= end)
        .toSorted((one, other) => one.at - other.at)
      if (!due) break
      this.#now = Math.max(this.#now, due.at)
      this.#pending.delete(due)
      due.run()
    }
    this.#now = end
  }
}
