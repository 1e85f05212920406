import type { Log } from '../base/log.js'
import { isLoopback } from '../base/loopback.js'
import { LIMITS, type Limits } from '../base/seams.js'
import { systemClock } from '../base/time.js'
import type { Journal } from '../journal/journal.js'
import type { Environment } from './command-environment.js'
import { openCommandTarget } from './command-target.js'
import { createExpiry } from './expiry.js'
import { type AttemptEvent, createAttempt } from './attempt.js'
import type { Owner } from './owner.js'
import { openHttpTarget } from './http-target.js'
import { type QueueStatus, TargetQueue } from './queue.js'
import { systemTimer, type Time } from './retry-timers.js'
import { labelOf, type Route } from './route.js'
import type { OpenTarget } from './target.js'

export interface TargetStatus extends Omit<QueueStatus, 'state'> {
  /** `elsewhere`: another relay of the same service forwards to it. */
  readonly state: QueueStatus['state'] | 'elsewhere'
  readonly id: string
  readonly label: string
}

export type DispatchLimits = Pick<Limits, 'http' | 'command' | 'grace' | 'retries' | 'probe'>

export interface DispatcherOptions {
  readonly journal: Pick<Journal, 'waiting' | 'read' | 'forwards' | 'attempts' | 'record' | 'finish'>
  readonly routes: readonly Route[]
  /** Entries in flight at once per target; 1 keeps their order. */
  readonly concurrency: number
  /** The environment of commands; relay's own secrets are removed. */
  readonly env: Environment
  readonly log: Log
  /** Default: no other process can have the queues. */
  readonly owner?: Owner | undefined
  /** Called for each attempt once it is recorded. Must not throw. */
  readonly onAttempt?: ((event: AttemptEvent) => void) | undefined
  /** Called when a target goes down, comes up, is no longer configured, or is again. Must not throw. */
  readonly onTarget?: ((status: TargetStatus) => void) | undefined
  readonly time?: Partial<Time> | undefined
  readonly limits?: Partial<DispatchLimits> | undefined
}

/**
 * Forwards deliveries to their targets, each target independently. Which forwards wait is in the journal; this has only the
 * numbers of their entries, so that a start, also after a crash, continues where the last one ended.
 */
export interface Dispatcher extends AsyncDisposable {
  /**
   * Starts forwarding, with every forward that waits in the journal. Nothing is sent before all of them are read, so that the
   * entries taken meanwhile keep their order. To be called once.
   * @throws RelayError `storage`
   */
  start(): Promise<void>
  /** Finds what waits in the journal although it was not taken. @throws RelayError `storage` */
  refresh(): Promise<void>
  /** Forwards an entry that was just recorded. Does nothing before the start, which finds the entry in the journal. */
  take(n: number, targets: readonly string[]): void
  /** Replaces the routes. Entries for a removed target wait until it is configured again. */
  replaceRoutes(routes: readonly Route[]): void
  /** Every configured target, and those not configured any more for which entries wait. */
  status(): readonly TargetStatus[]
  /** Attempts what waits for configured targets now, instead of after its delay. */
  retryNow(): void
  /** Resolves once nothing waits for a configured target, or relay stops. */
  idle(): Promise<void>
  /** Stops: attempts in flight are interrupted, and made again after the next start. */
  [Symbol.asyncDispose](): Promise<void>
}

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new TargetDispatcher(options)
}

/** A configured target, open. */
interface Opened {
  readonly route: Route
  readonly target: OpenTarget
}

class TargetDispatcher implements Dispatcher {
  readonly #options: DispatcherOptions
  readonly #queues = new Map<string, TargetQueue>()
  /** The configured targets. */
  readonly #opened = new Map<string, Opened>()
  /** Removed targets, while they close. */
  readonly #closing = new Set<Promise<void>>()
  readonly #time: Time
  /** Aborts at the end. */
  readonly #stop = new AbortController()
  #routes: readonly Route[]
  /** Entries are taken. */
  #isStarted = false
  /** All waiting forwards are read. */
  #isRunning = false
  #idle: (() => void)[] = []

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#routes = options.routes
    // Closing fails for no reason of its own; it is called again, and awaited, when the relay ends.
    options.owner?.lost.addEventListener('abort', () => void this[Symbol.asyncDispose]().catch(() => {}))
    const { clock = systemClock } = options.time ?? {}
    const { retries, probe } = { ...LIMITS, ...options.limits }
    const time = { clock, ages: clock, timer: systemTimer, random: Math.random, ...options.time }
    this.#time = { retries, probe, ...time }
  }

  async start(): Promise<void> {
    const { signal } = this.#stop
    if (signal.aborted) return
    this.#isStarted = true
    await this.#readWaiting()
    if (signal.aborted) return
    this.#isRunning = true
    this.#openAll()
    this.#detachUnconfigured()
  }

  async refresh(): Promise<void> {
    if (!this.#isRunning) return
    await this.#readWaiting()
    if (this.#isRunning) this.#detachUnconfigured()
  }

  take(n: number, targets: readonly string[]): void {
    if (!this.#isStarted) return
    for (const target of targets) this.#queueOf(target).add(n, this.#time.clock())
    if (this.#isRunning) this.#detachUnconfigured()
  }

  replaceRoutes(routes: readonly Route[]): void {
    this.#routes = routes
    if (!this.#isRunning) return
    const ids = new Set(routes.map(({ id }) => id))
    for (const id of this.#opened.keys()) if (!ids.has(id)) this.#closeTarget(id)
    this.#openAll()
    this.#onProgress()
    this.#detachUnconfigured()
  }

  status(): readonly TargetStatus[] {
    const ids = new Set([...this.#routes.map(({ id }) => id), ...this.#queues.keys()])
    return [...ids].map((id) => this.#statusOf(id))
  }

  retryNow(): void {
    for (const queue of this.#queues.values()) queue.retryNow()
  }

  async idle(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#idle.push(resolve)
      this.#onProgress()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStarted = false
    this.#isRunning = false
    this.#stop.abort()
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()))
    for (const id of this.#opened.keys()) this.#closeTarget(id)
    await Promise.all(this.#closing)
    this.#queues.clear()
    this.#onProgress()
  }

  async #readWaiting(): Promise<void> {
    for await (const { n, target, forward } of this.#options.journal.waiting()) {
      if (this.#stop.signal.aborted) return
      this.#queueOf(target).add(n, forward.since)
    }
  }

  #openAll(): void {
    for (const route of this.#routes) {
      if (this.#opened.has(route.id)) continue
      const target = openTarget(route, this.#options, this.#time)
      this.#opened.set(route.id, { route, target })
      const attempt = createAttempt({ ...this.#options, time: this.#time, route, target })
      this.#queueOf(route.id).attach(attempt, { nearby: isNearby(route) })
    }
  }

  #detachUnconfigured(): void {
    for (const [id, queue] of this.#queues) if (!this.#opened.has(id)) queue.detach()
  }

  #closeTarget(id: string): void {
    const opened = this.#opened.get(id)
    this.#opened.delete(id)
    if (!opened) return
    const closed = Promise.resolve(opened.target[Symbol.asyncDispose]()).finally(() =>
      this.#closing.delete(closed),
    )
    this.#closing.add(closed)
  }

  #queueOf(id: string): TargetQueue {
    const known = this.#queues.get(id)
    if (known) return known
    const { journal, concurrency, log, onTarget, owner } = this.#options
    const queue = new TargetQueue({
      concurrency,
      time: this.#time,
      expire: createExpiry(journal, { id, label: labelOf(id), fence: owner?.fence }, log),
      onState: () => onTarget?.(this.#statusOf(id)),
      onProgress: () => this.#onProgress(),
    })
    this.#queues.set(id, queue)
    return queue
  }

  #statusOf(id: string): TargetStatus {
    const status = this.#queues.get(id)?.status ?? { state: 'up', queued: 0 }
    return { id, label: labelOf(id), ...status }
  }

  /** Drops the queues of removed targets that are empty, and resolves those who wait for idle. */
  #onProgress(): void {
    for (const [id, queue] of this.#queues) {
      if (this.#opened.has(id) || !queue.isEmpty) continue
      this.#queues.delete(id)
      void queue.close()
    }
    if ([...this.#queues.values()].some((queue) => !queue.isIdle)) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}

/** Whether its target is an address on this machine. */
function isNearby({ target }: Route): boolean {
  return target.kind === 'http' && isLoopback(new URL(target.url).hostname)
}

function openTarget({ target }: Route, { env, limits }: DispatcherOptions, { clock }: Time): OpenTarget {
  const { http, command, grace } = { ...LIMITS, ...limits }
  return target.kind === 'http'
    ? openHttpTarget(target.url, { clock, limit: http })
    : openCommandTarget(target.command, { env, limit: command, grace })
}
