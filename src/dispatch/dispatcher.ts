import type { Log } from '../base/log.js'
import { systemClock } from '../base/time.js'
import type { Journal } from '../journal/journal.js'
import type { Environment } from './command-environment.js'
import { openCommandTarget } from './command-target.js'
import { createExpiry } from './expiry.js'
import { type AttemptEvent, createHandOver } from './hand-over.js'
import { openHttpTarget } from './http-target.js'
import { type QueueStatus, TargetQueue } from './queue.js'
import { systemTimer, type Time } from './rests.js'
import { labelOf, type Route } from './route.js'
import type { OpenTarget } from './target.js'

export interface TargetStatus extends QueueStatus {
  readonly id: string
  readonly label: string
}

export interface DispatcherOptions {
  readonly journal: Pick<Journal, 'unfinished' | 'read' | 'handOns' | 'attempts' | 'record' | 'finish'>
  readonly routes: readonly Route[]
  /** Entries under way at once per target; 1 keeps their order. */
  readonly concurrency: number
  /** For commands; relay's own secrets are taken out. */
  readonly env: Environment
  readonly log: Log
  /** Told of each attempt once it is recorded. Must not throw. */
  readonly onAttempt?: ((event: AttemptEvent) => void) | undefined
  /** Told when a target goes down, comes up, is no longer configured, or is again. Must not throw. */
  readonly onTarget?: ((status: TargetStatus) => void) | undefined
  readonly time?: Partial<Time> | undefined
  readonly limits?: Partial<Limits> | undefined
}

/** Milliseconds. */
export interface Limits {
  /** One attempt at an address. */
  readonly http: number
  /** One run of a command. */
  readonly command: number
  /** Between SIGTERM and SIGKILL. */
  readonly grace: number
}

const LIMITS: Limits = { http: 30_000, command: 600_000, grace: 5000 }

/**
 * Hands deliveries on to the targets they are meant for, each target on its own. What is to be handed on, and how it stands, is in
 * the journal; here are only the numbers of what waits, so that a start, also after a crash, goes on where it was.
 */
export interface Dispatcher extends AsyncDisposable {
  /** Begins, with all that the journal has waiting; again, it looks for what has been added there without its knowledge. */
  start(): void
  /** Hands on an entry that was just recorded. Before the start there is no need to: it is in the journal. */
  take(n: number, targets: readonly string[]): void
  /** Work for a target that is in neither waits, is shown, and goes on when the target is configured again. */
  replaceRoutes(routes: readonly Route[]): void
  /** Every target that is configured, and those not configured any more for which something waits. */
  status(): readonly TargetStatus[]
  /** Resolves once nothing waits for a configured target, or relay stops. */
  idle(): Promise<void>
  /** Stops: what is under way is cut off, and waits for the next start. */
  [Symbol.asyncDispose](): Promise<void>
}

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new TargetDispatcher(options)
}

/** A configured target, ready to be handed deliveries. */
interface Opened {
  readonly route: Route
  readonly target: OpenTarget
}

class TargetDispatcher implements Dispatcher {
  readonly #options: DispatcherOptions
  readonly #queues = new Map<string, TargetQueue>()
  /** Those of the targets that are configured. */
  readonly #opened = new Map<string, Opened>()
  /** Targets that were left, while what they have open is freed. */
  readonly #leaving = new Set<Promise<void>>()
  readonly #time: Time
  #routes: readonly Route[]
  #running = false
  #closed = false
  #idle: (() => void)[] = []

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#routes = options.routes
    this.#time = { clock: systemClock, timer: systemTimer, random: Math.random, ...options.time }
  }

  start(): void {
    if (this.#closed) return
    this.#running = true
    this.#openAll()
    for (const { n, target, handOn } of this.#options.journal.unfinished()) {
      this.#queueOf(target).add(n, handOn.since)
    }
    this.#leaveUnknown()
  }

  take(n: number, targets: readonly string[]): void {
    if (!this.#running) return
    for (const target of targets) this.#queueOf(target).add(n, this.#time.clock())
    this.#leaveUnknown()
  }

  replaceRoutes(routes: readonly Route[]): void {
    this.#routes = routes
    if (!this.#running) return
    const ids = new Set(routes.map(({ id }) => id))
    for (const id of this.#opened.keys()) if (!ids.has(id)) this.#free(id)
    this.#openAll()
    this.#progress()
    this.#leaveUnknown()
  }

  status(): readonly TargetStatus[] {
    const ids = new Set([...this.#routes.map(({ id }) => id), ...this.#queues.keys()])
    return [...ids].map((id) => this.#statusOf(id))
  }

  async idle(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#idle.push(resolve)
      this.#progress()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#running = false
    this.#closed = true
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()))
    for (const id of this.#opened.keys()) this.#free(id)
    await Promise.all(this.#leaving)
    this.#queues.clear()
    this.#progress()
  }

  #openAll(): void {
    for (const route of this.#routes) {
      if (this.#opened.has(route.id)) continue
      const target = openTarget(route, this.#options, this.#time)
      this.#opened.set(route.id, { route, target })
      this.#queueOf(route.id).open(createHandOver({ ...this.#options, time: this.#time, route, target }))
    }
  }

  #leaveUnknown(): void {
    for (const [id, queue] of this.#queues) if (!this.#opened.has(id)) queue.leave()
  }

  #free(id: string): void {
    const opened = this.#opened.get(id)
    this.#opened.delete(id)
    if (!opened) return
    const freed = Promise.resolve(opened.target[Symbol.asyncDispose]()).finally(() =>
      this.#leaving.delete(freed),
    )
    this.#leaving.add(freed)
  }

  #queueOf(id: string): TargetQueue {
    const known = this.#queues.get(id)
    if (known) return known
    const { journal, concurrency, log, onTarget } = this.#options
    const queue = new TargetQueue({
      concurrency,
      time: this.#time,
      expire: createExpiry(journal, { id, label: labelOf(id) }, log),
      onState: () => onTarget?.(this.#statusOf(id)),
      onProgress: () => this.#progress(),
    })
    this.#queues.set(id, queue)
    return queue
  }

  #statusOf(id: string): TargetStatus {
    const status = this.#queues.get(id)?.status ?? { state: 'up', queued: 0 }
    return { id, label: labelOf(id), ...status }
  }

  /** Drops queues that nobody needs any more, and tells those who wait for the end. */
  #progress(): void {
    for (const [id, queue] of this.#queues) {
      if (this.#opened.has(id) || !queue.isEmpty) continue
      this.#queues.delete(id)
      void queue.close()
    }
    if ([...this.#queues.values()].some((queue) => !queue.isIdle)) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}

function openTarget({ target }: Route, { env, limits }: DispatcherOptions, { clock }: Time): OpenTarget {
  const { http, command, grace } = { ...LIMITS, ...limits }
  return target.kind === 'http'
    ? openHttpTarget(target.url, { clock, limit: http })
    : openCommandTarget(target.command, { env, limit: command, grace })
}
