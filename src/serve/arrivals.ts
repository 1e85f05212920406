import { sleep } from '../base/abort.js'
import { readAnnounced } from '../journal/announced.js'
import type { Journal } from '../journal/journal.js'
import type { Notice } from '../store/leases.js'

/**
 * How often the journal is searched for forwards that wait, in milliseconds, in case that a notice was lost; and for what part of the
 * time at most. What waits in a long queue is not urgent.
 */
const SEARCH_MS = 2000
const SEARCH_PART = 0.05

export interface ArrivalsParts {
  readonly journal: Pick<Journal, 'waiting' | 'newest' | 'forwards'>
  /** Gets each entry and the targets that it waits for. */
  readonly take: (n: number, targets: readonly string[]) => void
  /** Whether anything is taken. What begins to be taken is read then. Default: always. */
  readonly isTaking?: () => boolean
}

/**
 * Passes on what waits in a journal to which several relays write: each new entry after all that have a lower number. Numbers are
 * given in the order of commits, so that once an entry is known all before it can be read.
 */
export class Arrivals implements AsyncDisposable {
  readonly #parts: ArrivalsParts
  readonly #stop = new AbortController()
  /** Every entry up to this number was passed on. */
  #passed = 0
  /** The newest entry that is known of. */
  #newest = 0
  #reading: Promise<void> | undefined
  #searching: Promise<void> | undefined

  constructor(parts: ArrivalsParts) {
    this.#parts = parts
  }

  /** From now on: what waits before is read by those that start to forward it. @throws RelayError `storage` */
  async start(): Promise<void> {
    this.#passed = this.#newest = await this.#parts.journal.newest()
    this.#searching = this.#searchRegularly()
  }

  /** An entry that this relay has stored. */
  stored(n: number, targets: readonly string[]): void {
    if (n === this.#passed + 1 && !this.#reading) this.#passed = n
    if (n <= this.#passed) this.#parts.take(n, targets)
    this.#reach(n)
  }

  /** What another relay has stored. */
  announced(notice: Notice): void {
    if (notice.kind !== 'journal') return
    this.#reach(notice.newest)
    if (notice.words) for (const n of readAnnounced(notice.words).waiting) void this.#lookAt(n)
    else void this.search()
  }

  /** Finds all that waits. Does not reject: it is repeated. */
  async search(): Promise<void> {
    const { journal, take } = this.#parts
    try {
      for await (const { n, target } of journal.waiting()) {
        if (this.#stop.signal.aborted) return
        take(n, [target])
      }
      this.#reach(await journal.newest())
    } catch {
      // The database is away.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await Promise.all([this.#reading, this.#searching])
  }

  get #isTaking(): boolean {
    return this.#parts.isTaking?.() !== false
  }

  #reach(n: number): void {
    this.#newest = Math.max(this.#newest, n)
    if (this.#newest === this.#passed || this.#stop.signal.aborted) return
    // One after the other. What fails is read when something arrives, or by the next search.
    this.#reading ??= this.#read()
      .catch(() => {})
      .finally(() => (this.#reading = undefined))
  }

  async #read(): Promise<void> {
    const { journal, take } = this.#parts
    while (this.#passed < this.#newest && !this.#stop.signal.aborted) {
      let passed = this.#newest
      if (!this.#isTaking) {
        this.#passed = passed
        continue
      }
      for await (const { n, target } of journal.waiting({ after: this.#passed })) {
        take(n, [target])
        passed = Math.max(passed, n)
      }
      this.#passed = passed
      this.#newest = Math.max(this.#newest, passed)
    }
  }

  async #lookAt(n: number): Promise<void> {
    const forwards = await this.#parts.journal.forwards(n).catch(() => ({}))
    const waiting = Object.entries(forwards).filter(([, { status }]) => status === 'waiting')
    // Which may have read this entry before it waited again.
    if (n > this.#passed) await this.#reading
    if (n <= this.#passed)
      this.#parts.take(
        n,
        waiting.map(([target]) => target),
      )
  }

  async #searchRegularly(): Promise<void> {
    const { signal } = this.#stop
    for (let took = 0; !signal.aborted;) {
      await sleep(Math.max(SEARCH_MS, took / SEARCH_PART), { signal }).catch(() => {})
      if (signal.aborted) return
      const before = performance.now()
      if (this.#isTaking) await this.search()
      took = performance.now() - before
    }
  }
}
