import { identified } from '../journal/targets.js'
import type { Route } from './routes.js'
import { type DispatcherOptions, Lane, type LaneDependencies, MAX_AGE_MS, type Timer } from './lane.js'
import { expiredText } from './result.js'
import type { Reply, TargetStatus } from './target.js'

const MINUTE_MS = 60_000

/**
 * Forwards deliveries to their targets, each target independently. The queue is the waiting forwards in the journal.
 * Only entries in flight are in memory, so that a start, also after a crash, continues where the last one ended.
 * Disposing of it interrupts attempts in flight; they are made again after the next start.
 */
export class Dispatcher implements AsyncDisposable {
  /** Names that targets had when they were last configured, at the start. */
  #formerNames: ReadonlyMap<string, string> = new Map()
  /** Lanes of every configured target, and of removed ones for which entries wait. */
  readonly #lanes = new Map<string, Lane>()
  readonly #parts: LaneDependencies
  readonly #stop = new AbortController()
  #routes: readonly Route[] = []
  /** Targets that wait until what is being sent to a former target of their name has ended. */
  readonly #held = new Set<string>()
  /** Former targets, whose queues are about to be another's. */
  readonly #moving = new Set<Lane>()
  /** The targets with their names, as {@link namesOf} has them. */
  #names = ''
  /** Number of changes of names that are not stored yet. */
  #renaming = 0
  #renamed: Promise<void> = Promise.resolve()
  #cancelMinute = (): void => {}

  constructor(options: DispatcherOptions) {
    const { random = Math.random, timer = timerOf(options), monotonic = options.clock } = options
    this.#parts = { ...options, monotonic, random, timer, signal: this.#stop.signal }
  }

  /**
   * Starts with the entries that wait for these targets, or for those that have replaced them. Called once, first. Where
   * nothing can be written, what waits is sent all the same, except what waits for a target whose address was changed.
   * @throws RelayError `storage`: nothing can be read
   */
  async start(routes: () => readonly Route[]): Promise<void> {
    // Lanes are created here to determine the order of their status.
    this.#routes = routes()
    for (const { id } of this.#routes) this.#laneOf(id)
    this.#names = namesOf(this.#routes)
    await this.#nameTargets()
    const names = await this.#parts.journal.targetNames()
    this.#formerNames = new Map(names.map(({ id, name }) => [id, name]))
    await this.#count()
    this.replaceRoutes(routes())
    void this.#everyMinute()
  }

  /** Announces that an entry waits for these targets, because it was stored or is to be forwarded again. */
  enqueue(targets: readonly string[]): void {
    for (const id of targets) this.#laneOf(id).enqueue()
  }

  /** Sends a new entry to a target now, and resolves with its answer for the sender. As of `Lane.reply`. */
  reply(n: number, id: string, signal: AbortSignal): Promise<Reply | undefined> {
    return this.#laneOf(id).reply(n, signal)
  }

  /** Reads the journal again, since another relay may have written to it. Does not reject. */
  async refresh(): Promise<void> {
    await this.#count().catch(() => {})
    for (const lane of this.#lanes.values()) lane.wake()
  }

  /** Sends an entry, which waits for these targets, as {@link Lane.sendNow}. Does not reject. */
  async sendNow(n: number, targets: readonly string[], isAgain: boolean): Promise<void> {
    for (const id of targets) this.#lanes.get(id)?.sendNow(n, isAgain)
    if (isAgain) await this.#count().catch(() => {})
  }

  /**
   * Replaces the targets. A removed target finishes its attempts in flight and gets nothing more. One that has the name
   * of another takes over what waits for that, and begins once the attempts of that have ended.
   */
  replaceRoutes(routes: readonly Route[]): void {
    this.#routes = routes
    const ids = new Map(identified(routes).map(({ id, name }) => [name, id]))
    const former = [...this.#lanes.values()].filter(({ id, name }) => (ids.get(name ?? '') ?? id) !== id)
    for (const { name } of former) this.#held.add(ids.get(name ?? '') ?? '')
    for (const lane of former) {
      lane.detach({ isMoving: true })
      this.#moving.add(lane)
    }
    this.#attach()
    const names = namesOf(routes)
    if (names === this.#names) return
    this.#names = names
    this.#renaming++
    this.#renamed = this.#renamed.then(() => this.#rename(former))
  }

  /** Opens the targets of the routes, except those that wait for a former target of their name, and closes the others. */
  #attach(): void {
    const configured = new Map(this.#routes.map((route) => [route.id, route]))
    for (const [id, route] of configured) if (!this.#held.has(id)) this.#laneOf(id).attach(route)
    for (const [id, lane] of this.#lanes) if (!configured.has(id) && !this.#moving.has(lane)) lane.detach()
    this.#forgetEmpty()
  }

  /**
   * Stores the names of the targets, and moves what waits for those with another address now, once their attempts have
   * ended. Does not reject: what cannot be moved is moved at the next change of the routes, or the next start.
   */
  async #rename(former: readonly Lane[]): Promise<void> {
    await Promise.all(former.map((lane) => lane.settled()))
    if (this.#parts.signal.aborted) return
    await this.#nameTargets()
    await this.#count().catch(() => {})
    if (--this.#renaming > 0) return
    this.#held.clear()
    this.#moving.clear()
    this.#attach()
    for (const lane of this.#lanes.values()) lane.wake()
  }

  /** Stores the names of the targets, and moves what waits for those whose address was changed. Does not reject. */
  async #nameTargets(): Promise<void> {
    try {
      await this.#parts.journal.nameTargets(this.#routes)
    } catch (error) {
      this.#parts.log.error('what waits for targets whose address was changed could not be moved', error)
    }
  }

  status(): readonly TargetStatus[] {
    return [...this.#lanes.values()].map((lane) => lane.status())
  }

  /** Attempts the entries that wait for configured targets now, instead of after their delay. Does not reject. */
  async retryNow(): Promise<void> {
    await this.#parts.journal.hasten([...this.#lanes.keys()]).catch(() => {})
    for (const lane of this.#lanes.values()) lane.retryNow()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#cancelMinute()
    await Promise.all([...this.#lanes.values()].map((lane) => lane.close()))
    await this.#renamed
  }

  /** Reads the number of waiting entries for each target. */
  async #count(): Promise<void> {
    for (const [id, { waiting }] of await this.#parts.journal.counts())
      if (waiting > 0 || this.#lanes.has(id)) this.#laneOf(id).count(waiting)
  }

  #laneOf(id: string): Lane {
    let lane = this.#lanes.get(id)
    if (!lane) this.#lanes.set(id, (lane = new Lane(id, this.#parts, this.#formerNames.get(id))))
    return lane
  }

  #forgetEmpty(): void {
    for (const [id, lane] of this.#lanes) if (lane.isOver) this.#lanes.delete(id)
  }

  /** Fails entries that have waited 24 h for a target without a route. Does not reject. */
  async #everyMinute(): Promise<void> {
    const { journal, clock, timer, signal, log } = this.#parts
    const except = [...this.#lanes].flatMap(([id, lane]) => (lane.isConfigured ? [id] : []))
    const expired = await journal.expire(clock() - MAX_AGE_MS, { except }).catch(() => 0)
    if (signal.aborted) return
    if (expired > 0) {
      log.warn(`${expiredText(expired)} for targets that are not configured any more`)
      await this.#count().catch(() => {})
    }
    this.#forgetEmpty()
    this.#cancelMinute = timer(MINUTE_MS, () => void this.#everyMinute())
  }
}

/** Text that differs if the targets or their names do. */
function namesOf(routes: readonly Route[]): string {
  return JSON.stringify(
    routes.map(({ id, name }) => [id, name]).toSorted(([one = ''], [other = '']) => (one < other ? -1 : 1)),
  )
}

function timerOf({ background = false }: DispatcherOptions): Timer {
  return (ms, run) => {
    const timer = setTimeout(run, ms)
    if (background) timer.unref()
    return () => clearTimeout(timer)
  }
}
