import { probeDelay } from '../base/backoff.js'
import { MAX_AGE_MS } from './policy.js'
import { Rests, type Time } from './rests.js'
import { Waiting } from './waiting.js'

/** What became of an entry that was tried. */
export interface Step {
  /** Whether the target answered; undefined when it was not asked, or was cut off. */
  readonly reached: boolean | undefined
  /** True when there is nothing left to do for it; false when it is to be tried again. */
  readonly ended: boolean
  /** Milliseconds before it may be tried again; not given where the target is down. */
  readonly rest?: number
  /** Resolves when it is written down that it ended, or cannot be. Must not reject. */
  readonly recorded?: Promise<void>
}

/** Tries an entry once. Must not reject; once `signal` aborts, what it comes to no longer matters. */
export type Try = (n: number, signal: AbortSignal) => Promise<Step>

export interface QueueParts {
  /**
   * How many entries may be under way at once, and {@link RECORDING} times as many that the target has taken may still be being
   * written down. With 1 they are handed on strictly in order, each written down before the next.
   */
  readonly concurrency: number
  /** Ends entries that have waited too long, and gives those that it could not end. Must not reject. */
  readonly expire: (numbers: readonly number[]) => Promise<readonly number[]>
  /** Told when the target goes down, comes up, goes, or returns. */
  readonly onState: () => void
  /** Told when entries have left. */
  readonly onProgress: () => void
  readonly time: Time
}

export interface QueueStatus {
  /** `gone`: no longer configured; what is there waits for it to return. */
  readonly state: 'up' | 'down' | 'gone'
  /** Entries that wait or are under way. */
  readonly queued: number
  /** When it went down, or was gone. Milliseconds. */
  readonly since?: number
  /** When a target that is down is tried next. Milliseconds. */
  readonly nextProbeAt?: number
}

/**
 * A commit takes about as long as four exchanges with a target on this machine, and whoever waits for it has the target wait. Not
 * more, since what has not been written down is handed on again when relay is killed.
 */
const RECORDING = 4
/** How often it is looked whether entries for a target that is gone have become too old; the clock may jump meanwhile. */
const LOOK_EVERY = 60_000

interface Down {
  readonly since: number
  readonly failures: number
  readonly nextProbeAt: number
}

/**
 * What waits for one target, and when which of it is tried. An entry that is to be tried again keeps its place, so that those
 * behind it wait. A target that cannot be reached is tried with one entry at a time, at growing intervals, until it answers.
 * Whatever changes, `#pump` decides anew from what there is, so that nothing can be forgotten.
 */
export class TargetQueue {
  readonly #parts: QueueParts
  readonly #waiting = new Waiting()
  readonly #busy = new Set<number>()
  /** Entries that have ended, while that is written down. */
  readonly #recording = new Set<number>()
  /** Entries that came again while under way or being written down, and when. */
  readonly #again = new Map<number, number>()
  readonly #resting: Rests<number>
  readonly #pauses: Rests<'probe' | 'look'>
  readonly #tasks = new Set<Promise<void>>()
  readonly #stop = new AbortController()
  #try: Try | undefined
  #down: Down | undefined
  #goneSince: number | undefined
  #woken: NodeJS.Immediate | undefined

  constructor(parts: QueueParts) {
    this.#parts = parts
    this.#resting = new Rests(parts.time.timer)
    this.#pauses = new Rests(parts.time.timer)
  }

  /** True when nothing is under way, and nothing waits that could be tried. */
  get isIdle(): boolean {
    return this.#tasks.size === 0 && (!this.#try || this.#waiting.size === 0)
  }

  /** True when nothing is under way or waits. */
  get isEmpty(): boolean {
    return this.#tasks.size === 0 && this.#waiting.size === 0
  }

  get status(): QueueStatus {
    const queued = this.#waiting.size
    if (!this.#try) {
      return { state: 'gone', queued, ...(this.#goneSince !== undefined && { since: this.#goneSince }) }
    }
    if (!this.#down) return { state: 'up', queued }
    const { since, nextProbeAt } = this.#down
    return { state: 'down', queued, since, ...(this.#pauses.has('probe') && { nextProbeAt }) }
  }

  /** Has an entry that waits since then tried in its turn. */
  add(n: number, since: number): void {
    // What is under way may be just ending, so it is looked at again.
    if (this.#busy.has(n) || this.#recording.has(n)) this.#again.set(n, since)
    else this.#waiting.add(n, since)
    // Not at once: the sender of the delivery is answered first.
    if (!this.#stop.signal.aborted) this.#woken ??= setImmediate(() => this.#pump())
  }

  /** The target is configured: entries are tried. */
  open(tryOne: Try): void {
    const returned = this.#goneSince !== undefined
    this.#try = tryOne
    this.#goneSince = undefined
    this.#pauses.endAll()
    this.#pump()
    if (returned) this.#parts.onState()
  }

  /** The target is not configured any more: entries wait. One that is under way goes on to its end. */
  leave(): void {
    if (this.#goneSince !== undefined) return
    this.#try = undefined
    this.#down = undefined
    this.#goneSince = this.#parts.time.clock()
    this.#resting.endAll()
    this.#pauses.endAll()
    this.#parts.onState()
    this.#look()
  }

  /** Cuts off what is under way, and resolves when nothing is any more. */
  async close(): Promise<void> {
    this.#stop.abort()
    clearImmediate(this.#woken)
    this.#resting.endAll()
    this.#pauses.endAll()
    await Promise.all(this.#tasks)
  }

  #pump(): void {
    this.#woken = undefined
    for (let n = this.#next(); n !== undefined; n = this.#next()) this.#start(n)
  }

  /** The entry that may be tried now. */
  #next(): number | undefined {
    if (!this.#try || this.#stop.signal.aborted) return undefined
    if (this.#down && (this.#busy.size > 0 || this.#pauses.has('probe'))) return undefined
    const { concurrency } = this.#parts
    const recording = concurrency === 1 ? 1 : concurrency * RECORDING
    if (this.#busy.size + this.#resting.size >= concurrency || this.#recording.size >= recording)
      return undefined
    return this.#waiting.first((n) => !this.#busy.has(n) && !this.#resting.has(n))
  }

  #start(n: number): void {
    const isProbe = this.#down !== undefined
    this.#busy.add(n)
    this.#follow(async () => {
      const step = await this.#try?.(n, this.#stop.signal)
      this.#busy.delete(n)
      if (step?.recorded) this.#recording.add(n)
      if (step && !this.#stop.signal.aborted) this.#settle(n, step, isProbe)
      if (!step?.recorded) return
      await step.recorded
      this.#recording.delete(n)
      if (this.#stop.signal.aborted) return
      this.#takeAgain(n)
      this.#pump()
    })
  }

  #takeAgain(n: number): void {
    const since = this.#again.get(n)
    if (this.#again.delete(n) && since !== undefined) this.#waiting.add(n, since)
  }

  #settle(n: number, { reached, ended, rest, recorded }: Step, isProbe: boolean): void {
    if (ended) this.#waiting.delete(n)
    if (!recorded) this.#takeAgain(n)
    if (this.#try) {
      if (!ended && rest !== undefined) this.#resting.start(n, rest, () => this.#pump())
      if (reached === true) this.#comeUp()
      if (reached === false) this.#goDown(isProbe)
    }
    this.#pump()
  }

  #comeUp(): void {
    if (!this.#down) return
    this.#down = undefined
    this.#pauses.end('probe')
    this.#parts.onState()
  }

  #goDown(isProbe: boolean): void {
    // One that was under way when the target went down says nothing new.
    if (this.#down && !isProbe) return
    const { clock, random } = this.#parts.time
    const before = this.#down
    const failures = (before?.failures ?? 0) + 1
    const delay = probeDelay(failures, random)
    this.#down = { since: before?.since ?? clock(), failures, nextProbeAt: clock() + delay }
    this.#pauses.start('probe', delay, () => this.#pump())
    if (!before) this.#parts.onState()
    this.#expire()
  }

  #look(): void {
    this.#expire()
    this.#pauses.start('look', LOOK_EVERY, () => this.#look())
  }

  #expire(): void {
    const limit = this.#parts.time.clock() - MAX_AGE_MS
    const old = this.#waiting.until(limit).filter((n) => !this.#busy.has(n))
    if (old.length === 0) return
    for (const n of old) {
      this.#waiting.delete(n)
      this.#resting.end(n)
    }
    this.#follow(async () => {
      for (const n of await this.#parts.expire(old)) this.add(n, limit)
    })
  }

  #follow(task: () => Promise<void>): void {
    const done = task().finally(() => {
      this.#tasks.delete(done)
      this.#parts.onProgress()
    })
    this.#tasks.add(done)
  }
}
