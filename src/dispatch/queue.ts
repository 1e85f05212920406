import { nearbyProbeDelay, probeDelay } from '../base/backoff.js'
import { PendingQueue } from './pending-queue.js'
import { MAX_AGE_MS } from './policy.js'
import { RetryTimers, type Time } from './retry-timers.js'

/** What one attempt came to, for the queue. */
export interface AttemptResult {
  /** Whether the target answered; undefined when nothing was sent, or the attempt was interrupted. */
  readonly reached: boolean | undefined
  /** True when nothing is left to do for the entry; false when it must be attempted again. */
  readonly ended: boolean
  /** Milliseconds before the entry may be attempted again. Absent while the target is down. */
  readonly delay?: number
  /** Resolves when the end is recorded, or never can be. Must not reject. */
  readonly recorded?: Promise<void>
}

export interface AttemptContext {
  /** Aborts when relay stops. The result no longer matters then. */
  readonly signal: AbortSignal
  /** Resolves when the entry's turn to be sent has come. False: it must not be sent, since its target was removed or relay stops. */
  readonly ready: () => Promise<boolean>
}

/** Attempts an entry once. Must not reject. */
export type AttemptFn = (n: number, context: AttemptContext) => Promise<AttemptResult>

export interface QueueParts {
  /**
   * Number of entries that may be in flight at once. With 1 they are sent strictly in order, each after the end of the one before
   * it was recorded.
   */
  readonly concurrency: number
  /** Fails entries that waited too long, and returns those that it could not fail. Must not reject. */
  readonly expire: (numbers: readonly number[]) => Promise<readonly number[]>
  /** Called when the target goes down, comes up, is removed, or returns. */
  readonly onState: () => void
  /** Called when entries have left. */
  readonly onProgress: () => void
  readonly time: Time
}

export interface QueueStatus {
  /** `gone`: no longer configured; its entries wait for it to return. */
  readonly state: 'up' | 'down' | 'gone'
  /** Entries that wait or are in flight. */
  readonly queued: number
  /** When it went down, or was removed. Milliseconds. */
  readonly since?: number
  /** When a target that is down is attempted next. Milliseconds. */
  readonly nextProbeAt?: number
}

/**
 * Multiplied by `concurrency`, the number of sent entries whose end may still be unrecorded: a commit takes about as long as four
 * exchanges with a target on this machine. Not more, since these are sent again after a crash.
 */
const RECORDING_FACTOR = 4
/** How often the entries of a removed target are checked for their age. Milliseconds. */
const EXPIRY_INTERVAL_MS = 60_000

interface Down {
  readonly since: number
  readonly failures: number
  readonly nextProbeAt: number
}

/**
 * The entries that wait for one target, and when each is attempted. An entry that must be attempted again keeps its place, so
 * those behind it wait. A target that cannot be reached gets one entry at a time, at growing intervals, until it answers; one on
 * this machine gets it more often. After every change `#pump` decides from the present state alone, so that no entry can be forgotten.
 */
export class TargetQueue {
  readonly #parts: QueueParts
  readonly #pending = new PendingQueue()
  readonly #inFlight = new Set<number>()
  /** Entries that have ended, while that is recorded. */
  readonly #recording = new Map<number, Promise<void>>()
  /** Entries that arrived again while in flight or recorded, and when. */
  readonly #repeated = new Map<number, number>()
  readonly #backingOff: RetryTimers<number>
  readonly #timers: RetryTimers<'probe' | 'expiry'>
  readonly #tasks = new Set<Promise<void>>()
  readonly #stop = new AbortController()
  #attempt: AttemptFn | undefined
  #nearby = false
  #down: Down | undefined
  #removedAt: number | undefined
  #nextPump: NodeJS.Immediate | undefined

  constructor(parts: QueueParts) {
    this.#parts = parts
    this.#backingOff = new RetryTimers(parts.time.timer)
    this.#timers = new RetryTimers(parts.time.timer)
  }

  /** True when nothing is in flight, and nothing waits that could be attempted. */
  get isIdle(): boolean {
    return this.#tasks.size === 0 && (!this.#attempt || this.#pending.size === 0)
  }

  /** True when nothing is in flight or waits. */
  get isEmpty(): boolean {
    return this.#tasks.size === 0 && this.#pending.size === 0
  }

  get status(): QueueStatus {
    const queued = this.#pending.size
    if (!this.#attempt) {
      return { state: 'gone', queued, ...(this.#removedAt !== undefined && { since: this.#removedAt }) }
    }
    if (!this.#down) return { state: 'up', queued }
    const { since, nextProbeAt } = this.#down
    return { state: 'down', queued, since, ...(this.#timers.has('probe') && { nextProbeAt }) }
  }

  /** Adds an entry that has waited since then. An entry that waits already is not added again. */
  add(n: number, since: number): void {
    // An entry in flight may be just ending, so it is attempted again.
    if (this.#inFlight.has(n) || this.#recording.has(n)) this.#repeated.set(n, since)
    else this.#pending.add(n, since)
    // Not at once: the sender of the delivery is answered first.
    if (!this.#stop.signal.aborted) this.#nextPump ??= setImmediate(() => this.#pump())
  }

  /** The target is configured: its entries are attempted. `nearby`: it is on this machine, so it is probed more often. */
  attach(attempt: AttemptFn, { nearby = false } = {}): void {
    const returned = this.#removedAt !== undefined
    this.#attempt = attempt
    this.#nearby = nearby
    this.#removedAt = undefined
    this.#timers.cancelAll()
    this.#pump()
    if (returned) this.#parts.onState()
  }

  /** The target is not configured any more: its entries wait. One that is being sent continues to its end. */
  detach(): void {
    if (this.#removedAt !== undefined) return
    this.#attempt = undefined
    this.#down = undefined
    this.#removedAt = this.#parts.time.clock()
    this.#backingOff.cancelAll()
    this.#timers.cancelAll()
    this.#parts.onState()
    this.#expireRegularly()
  }

  /** Attempts what waits now, instead of after its delay. */
  retryNow(): void {
    if (!this.#attempt) return
    this.#timers.cancel('probe')
    this.#backingOff.cancelAll()
    this.#pump()
  }

  /** Interrupts what is in flight, and resolves when nothing is any more. */
  async close(): Promise<void> {
    this.#stop.abort()
    clearImmediate(this.#nextPump)
    this.#backingOff.cancelAll()
    this.#timers.cancelAll()
    await Promise.all(this.#tasks)
  }

  #pump(): void {
    this.#nextPump = undefined
    for (let n = this.#next(); n !== undefined; n = this.#next()) this.#start(n)
  }

  /** The entry that may be attempted now. */
  #next(): number | undefined {
    if (!this.#attempt || this.#stop.signal.aborted) return undefined
    if (this.#down && (this.#inFlight.size > 0 || this.#timers.has('probe'))) return undefined
    const { concurrency } = this.#parts
    if (this.#inFlight.size + this.#backingOff.size >= concurrency) return undefined
    if (this.#recording.size >= concurrency * RECORDING_FACTOR) return undefined
    return this.#pending.first((n) => !this.#inFlight.has(n) && !this.#backingOff.has(n))
  }

  #start(n: number): void {
    const isProbe = this.#down !== undefined
    this.#inFlight.add(n)
    this.#track(async () => {
      const result = await this.#attempt?.(n, this.#contextOf(this.#attempt))
      this.#inFlight.delete(n)
      if (result?.recorded) this.#recording.set(n, result.recorded)
      if (result && !this.#stop.signal.aborted) this.#settle(n, result, isProbe)
      if (!result?.recorded) return
      await result.recorded
      this.#recording.delete(n)
      if (this.#stop.signal.aborted) return
      this.#requeueRepeated(n)
      this.#pump()
    })
  }

  /** An attempt may read its entry while the end of the one before is recorded; with a concurrency of 1 it then waits for that. */
  #contextOf(attempt: AttemptFn): AttemptContext {
    const { signal } = this.#stop
    return {
      signal,
      ready: async () => {
        if (this.#parts.concurrency === 1) await Promise.all(this.#recording.values())
        return this.#attempt === attempt && !signal.aborted
      },
    }
  }

  #requeueRepeated(n: number): void {
    const since = this.#repeated.get(n)
    if (this.#repeated.delete(n) && since !== undefined) this.#pending.add(n, since)
  }

  #settle(n: number, { reached, ended, delay, recorded }: AttemptResult, isProbe: boolean): void {
    if (ended) this.#pending.delete(n)
    if (!recorded) this.#requeueRepeated(n)
    if (this.#attempt) {
      if (!ended && delay !== undefined) this.#backingOff.start(n, delay, () => this.#pump())
      if (reached === true) this.#markUp()
      if (reached === false) this.#markDown(isProbe)
    }
    this.#pump()
  }

  #markUp(): void {
    if (!this.#down) return
    this.#down = undefined
    this.#timers.cancel('probe')
    this.#parts.onState()
  }

  #markDown(isProbe: boolean): void {
    // An attempt that was in flight when the target went down is no further failure.
    if (this.#down && !isProbe) return
    const { clock, random, probe } = this.#parts.time
    const before = this.#down
    const failures = (before?.failures ?? 0) + 1
    const now = clock()
    const since = before?.since ?? now
    const delay = this.#nearby
      ? nearbyProbeDelay(now - since, random, probe)
      : probeDelay(failures, random, probe)
    this.#down = { since, failures, nextProbeAt: now + delay }
    this.#timers.start('probe', delay, () => this.#pump())
    if (!before) this.#parts.onState()
    this.#expire()
  }

  #expireRegularly(): void {
    this.#expire()
    this.#timers.start('expiry', EXPIRY_INTERVAL_MS, () => this.#expireRegularly())
  }

  #expire(): void {
    const limit = this.#parts.time.ages() - MAX_AGE_MS
    const old = this.#pending.waitingSince(limit).filter((n) => !this.#inFlight.has(n))
    if (old.length === 0) return
    for (const n of old) {
      this.#pending.delete(n)
      this.#backingOff.cancel(n)
    }
    this.#track(async () => {
      for (const n of await this.#parts.expire(old)) this.add(n, limit)
    })
  }

  #track(task: () => Promise<void>): void {
    const done = task().finally(() => {
      this.#tasks.delete(done)
      this.#parts.onProgress()
    })
    this.#tasks.add(done)
  }
}
