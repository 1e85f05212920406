import { Disposal } from '../base/disposal.js'
import {
  createDispatcher,
  type Dispatcher,
  type DispatcherOptions,
  type TargetStatus,
} from '../dispatch/dispatcher.js'
import type { Owner } from '../dispatch/owner.js'
import { labelOf, type Route } from '../dispatch/route.js'
import type { Journal } from '../journal/journal.js'
import { Arrivals } from './arrivals.js'
import { type Doing, QUEUE_DUTY } from './duties.js'
import type { Membership } from './membership.js'

export interface SharedDispatcherParts extends Omit<DispatcherOptions, 'owner' | 'journal'> {
  readonly journal: Journal
  readonly membership: Pick<Membership, 'duties' | 'subscribe'>
}

/**
 * Forwards to those targets whose queues this relay has, each with a dispatcher of its own, while other relays of the same service
 * forward to the others.
 */
export function createSharedDispatcher(parts: SharedDispatcherParts): Dispatcher {
  return new SharedDispatcher(parts)
}

class SharedDispatcher implements Dispatcher {
  readonly #parts: SharedDispatcherParts
  readonly #arrivals: Arrivals
  readonly #closing = new Disposal()
  readonly #stop = new AbortController()
  /** Of the targets whose queues this relay has. */
  readonly #own = new Map<string, Dispatcher>()
  /** Of all targets, by their id. */
  readonly #duties = new Map<string, AsyncDisposable>()
  #routes: readonly Route[]

  constructor(parts: SharedDispatcherParts) {
    this.#parts = parts
    this.#routes = parts.routes
    const { journal } = parts
    this.#arrivals = new Arrivals({
      journal,
      take: (n, targets) => this.#take(n, targets),
      // Without a route, it may be the one to find what waits for targets that were removed.
      isTaking: () => this.#own.size > 0 || this.#routes.length === 0,
    })
  }

  async start(): Promise<void> {
    const { membership } = this.#parts
    await this.#arrivals.start()
    const listener = membership.subscribe({
      onNotice: (notice) => this.#arrivals.announced(notice),
      onListening: () => void this.#arrivals.search(),
    })
    this.#closing.defer(async () => listener[Symbol.dispose]())
    for (const { id } of this.#routes) await this.#want(id)
  }

  refresh(): Promise<void> {
    return this.#arrivals.search()
  }

  take(n: number, targets: readonly string[]): void {
    this.#arrivals.stored(n, targets)
  }

  /** A target that is removed stays until nothing waits for it. */
  replaceRoutes(routes: readonly Route[]): void {
    this.#routes = routes
    for (const [id, dispatcher] of this.#own) dispatcher.replaceRoutes(this.#routeOf(id))
    for (const { id } of routes) void this.#want(id)
  }

  status(): readonly TargetStatus[] {
    const ids = new Set([...this.#routes.map(({ id }) => id), ...this.#own.keys()])
    return [...ids].flatMap((id) => this.#own.get(id)?.status() ?? [elsewhere(id)])
  }

  retryNow(): void {
    for (const dispatcher of this.#own.values()) dispatcher.retryNow()
  }

  async idle(): Promise<void> {
    await Promise.all([...this.#own.values()].map((dispatcher) => dispatcher.idle()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#closing[Symbol.asyncDispose]()
    await Promise.all([...this.#duties.values()].map((duty) => duty[Symbol.asyncDispose]()))
    await this.#arrivals[Symbol.asyncDispose]()
  }

  #take(n: number, targets: readonly string[]): void {
    for (const target of targets) {
      this.#own.get(target)?.take(n, [target])
      // Some relay must let what waits for a target that is not configured any more fail in the end.
      void this.#want(target)
    }
  }

  #routeOf(id: string): readonly Route[] {
    return this.#routes.filter((route) => route.id === id)
  }

  async #want(id: string): Promise<void> {
    if (this.#duties.has(id) || this.#stop.signal.aborted) return
    const { membership, onTarget } = this.#parts
    const what = `forwarding to ${labelOf(id)}`
    const start = (owner: Owner): Promise<Doing> => this.#forward(id, owner)
    const onElsewhere = (): void => onTarget?.(elsewhere(id))
    const starting = membership.duties.run({ name: QUEUE_DUTY + id, what, start, onElsewhere })
    this.#duties.set(id, { [Symbol.asyncDispose]: async () => (await starting)[Symbol.asyncDispose]() })
    await starting
  }

  async #forward(id: string, owner: Owner): Promise<Doing> {
    const { journal, onTarget } = this.#parts
    const dispatcher = createDispatcher({
      ...this.#parts,
      journal: { ...journal, waiting: () => journal.waiting({ target: id }) },
      routes: this.#routeOf(id),
      owner,
    })
    // Before it reads what waits, so that what arrives meanwhile is not missed.
    this.#own.set(id, dispatcher)
    const end = async (): Promise<void> => {
      const ended = dispatcher[Symbol.asyncDispose]()
      if (this.#own.get(id) === dispatcher) this.#own.delete(id)
      await ended
    }
    try {
      await dispatcher.start()
    } catch (error) {
      await end()
      throw error
    }
    // It may have been lost while that was read.
    if (!owner.lost.aborted)
      for (const status of dispatcher.status()) if (status.state === 'up') onTarget?.(status)
    return {
      isIdle: () => dispatcher.status().every(({ queued }) => queued === 0),
      [Symbol.asyncDispose]: end,
    }
  }
}

function elsewhere(id: string): TargetStatus {
  return { id, label: labelOf(id), state: 'elsewhere', queued: 0 }
}
