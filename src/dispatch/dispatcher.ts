import { onAbort, jittered, nearbyProbeDelay, probeDelay, type Random } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { isLoopback } from '../base/address.js'
import type { Limits } from '../base/seams.js'
import type { Clock } from '../base/time.js'
import type { Journal } from '../journal/journal.js'
import type { Attempt, DueForward, Entry, Forward, AttemptOutcome } from '../journal/types.js'
import { type Environment, openCommandTarget } from './command-target.js'
import { openHttpTarget, type RequestBuilder } from './http-target.js'
import { labelOf, type Route } from './routes.js'
import type { DeliveryResult, OpenTarget, TargetStatus } from './target.js'

/** One attempt, for observers. */
export interface AttemptEvent {
  readonly n: number
  readonly entry: Omit<Entry, 'body'>
  readonly route: Route
  readonly attempt: Attempt
  /** Status of the forward after the attempt. */
  readonly forward: Forward
  /** Time of the next attempt in milliseconds, if the target asked for one. */
  readonly retryAt?: number
}

/** Calls `run` once after `ms` milliseconds, unless the returned function is called first. */
export type Timer = (ms: number, run: () => void) => () => void

export interface DispatcherOptions {
  readonly journal: Pick<Journal, 'next' | 'read' | 'record' | 'expire' | 'counts'>
  /** Entries in flight at once per target. 1 keeps their order. */
  readonly concurrency: number
  /** Environment of commands, from which relay's own secrets are removed. */
  readonly env: Environment
  readonly log: Log
  /** True while this relay may send. Another one may have taken over. */
  readonly mayRun: () => boolean
  /** Called for each attempt once it is recorded. Must not throw. */
  readonly onAttempt: (event: AttemptEvent) => void
  /** Called when a target goes down, comes up, is no longer configured, or is again. Must not throw. */
  readonly onTarget: (status: TargetStatus) => void
  readonly clock: Clock
  /** Clock for waits, in milliseconds from any start, which is never set back. Default: `clock`. */
  readonly monotonic?: Clock | undefined
  readonly limits: Pick<Limits, 'http' | 'command' | 'grace' | 'retries' | 'probe'>
  readonly random?: Random | undefined
  readonly timer?: Timer
  /** Converts an entry to the request for a route's address. Default: the entry as received. */
  readonly sendable?: ((entry: Entry, route: Route) => ReturnType<RequestBuilder>) | undefined
  /** Opens a target. Default: HTTP and commands. */
  readonly open?: (route: Route) => OpenTarget
}

/** Longest wait of a delivery for a target that is unreachable or no longer configured: 24 hours. */
const MAX_AGE_MS = 86_400_000
/**
 * Shortest time that a target must have been down during this run before deliveries fail by their age, so that a laptop
 * that was closed over the weekend loses nothing.
 */
const MIN_DOWN_MS = 600_000
/**
 * Longest time between two failures of a target that is down: a minute and an attempt. During any excess the machine
 * slept.
 */
const MAX_PROBE_GAP_MS = 120_000
/** Longest delay that a response may ask for, since the deliveries behind it wait too. Milliseconds. */
const MAX_RETRY_AFTER_MS = 60_000
/** Longest delay between attempts of storage, since a whole queue waits. Milliseconds. */
const MAX_STORAGE_DELAY_MS = 5000
const MINUTE_MS = 60_000

/** Dependencies of all lanes. */
interface LaneDependencies extends DispatcherOptions {
  readonly monotonic: Clock
  readonly random: Random
  readonly timer: Timer
  readonly signal: AbortSignal
}

/**
 * Forwards deliveries to their targets, each target independently. The queue is the waiting forwards in the journal.
 * Only entries in flight are in memory, so that a start, also after a crash, continues where the last one ended.
 * Disposing of it interrupts attempts in flight; they are made again after the next start.
 */
export class Dispatcher implements AsyncDisposable {
  /** Lanes of every configured target, and of removed ones for which entries wait. */
  readonly #lanes = new Map<string, Lane>()
  readonly #parts: LaneDependencies
  readonly #stop = new AbortController()
  #cancelMinute = (): void => {}

  constructor({ random = Math.random, timer = systemTimer, ...options }: DispatcherOptions) {
    const { monotonic = options.clock } = options
    this.#parts = { ...options, monotonic, random, timer, signal: this.#stop.signal }
  }

  /**
   * Starts with the entries that wait for these targets, or for those that have replaced them. Called once, first.
   * @throws RelayError `storage`
   */
  async start(routes: () => readonly Route[]): Promise<void> {
    // Lanes are created here to determine the order of their status.
    for (const { id } of routes()) this.#laneOf(id)
    await this.#count()
    this.replaceRoutes(routes())
    void this.#everyMinute()
  }

  /** Announces that an entry waits for these targets, because it was stored or is to be forwarded again. */
  enqueue(targets: readonly string[]): void {
    for (const id of targets) this.#laneOf(id).enqueue()
  }

  /** Reads the journal again, since another relay may have written to it. Does not reject. */
  async refresh(): Promise<void> {
    await this.#count().catch(() => {})
    for (const lane of this.#lanes.values()) lane.wake()
  }

  /** Replaces the targets. A removed target finishes its attempts in flight and gets nothing more. */
  replaceRoutes(routes: readonly Route[]): void {
    const configured = new Map(routes.map((route) => [route.id, route]))
    for (const [id, route] of configured) this.#laneOf(id).attach(route)
    for (const [id, lane] of this.#lanes) if (!configured.has(id)) lane.detach()
    this.#forgetEmpty()
  }

  status(): readonly TargetStatus[] {
    return [...this.#lanes.values()].map((lane) => lane.status())
  }

  /** Attempts the entries that wait for configured targets now, instead of after their delay. */
  retryNow(): void {
    for (const lane of this.#lanes.values()) lane.retryNow()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#cancelMinute()
    await Promise.all([...this.#lanes.values()].map((lane) => lane.close()))
  }

  /** Reads the number of waiting entries for each target. */
  async #count(): Promise<void> {
    for (const [id, { waiting }] of await this.#parts.journal.counts())
      if (waiting > 0 || this.#lanes.has(id)) this.#laneOf(id).count(waiting)
  }

  #laneOf(id: string): Lane {
    let lane = this.#lanes.get(id)
    if (!lane) this.#lanes.set(id, (lane = new Lane(id, this.#parts)))
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

/** Unavailability of a target. Milliseconds; instants except `since` are of the monotonic clock. */
interface Down {
  readonly since: number
  readonly began: number
  /** Last failure. */
  readonly at: number
  /** Milliseconds of this run during which it was down. A sleeping machine does not count. */
  readonly awake: number
  readonly failures: number
  readonly nextProbeAt: number
}

/**
 * Queue of one target. An entry to send again keeps its place. A target that is down gets one entry at a time, at
 * growing intervals. All decisions are in `#fill`.
 */
class Lane {
  readonly #id: string
  readonly #parts: LaneDependencies
  /**
   * Entries in flight or delayed. The value is Infinity while an entry is sent and recorded, else the instant of the
   * monotonic clock before which it is not sent again.
   */
  readonly #busy = new Map<number, number>()
  readonly #attempts = new Set<Promise<void>>()
  /** Configured route and target. Undefined: nothing is sent. */
  #open: { readonly route: Route; readonly target: OpenTarget } | undefined
  #goneSince: number
  #down: Down | undefined
  #queued = 0
  #reported: TargetStatus['state'] = 'up'
  #filling: Promise<void> | undefined
  #isAgain = false
  #cancel = (): void => {}

  constructor(id: string, parts: LaneDependencies) {
    this.#id = id
    this.#parts = parts
    this.#goneSince = parts.clock()
  }

  get isConfigured(): boolean {
    return this.#open !== undefined
  }

  /** True if the target is no longer configured, and nothing waits for it. */
  get isOver(): boolean {
    return !this.#open && this.#queued === 0 && this.#busy.size === 0
  }

  status(): TargetStatus {
    const common = { id: this.#id, label: labelOf(this.#id), queued: this.#queued }
    if (!this.#open) return { ...common, state: 'gone', since: this.#goneSince }
    if (!this.#down) return { ...common, state: 'up' }
    const { since, nextProbeAt } = this.#down
    const { clock, monotonic } = this.#parts
    return { ...common, state: 'down', since, nextProbeAt: clock() + nextProbeAt - monotonic() }
  }

  attach(route: Route): void {
    if (this.#open) return
    const { open = (it: Route) => openTarget(it, this.#parts) } = this.#parts
    this.#open = { route, target: open(route) }
    this.#report()
    this.wake()
  }

  /** Removes the target. Attempts in flight end, waiting entries stay in the journal. */
  detach(): void {
    if (this.#open) {
      void this.#end(this.#open.target)
      this.#goneSince = this.#parts.clock()
    }
    this.#open = undefined
    this.#down = undefined
    this.#cancel()
    for (const [n, due] of this.#busy) if (due < Infinity) this.#busy.delete(n)
    this.#report()
  }

  /** Resolves once the attempts in flight, which `signal` interrupts, have ended. Does not reject. */
  async close(): Promise<void> {
    this.#cancel()
    await this.#filling
    await this.#end(this.#open?.target)
  }

  async #end(target: OpenTarget | undefined): Promise<void> {
    await Promise.all(this.#attempts)
    await target?.[Symbol.asyncDispose]().then(undefined, (error: unknown) => {
      this.#parts.log.error(`${labelOf(this.#id)}: its connections could not be closed`, error)
    })
  }

  enqueue(): void {
    this.#queued++
    this.#report()
    this.wake()
  }

  count(waiting: number): void {
    this.#queued = waiting
  }

  wake(): void {
    this.#isAgain = true
    this.#filling ??= this.#fillAll()
  }

  retryNow(): void {
    for (const [n, due] of this.#busy) if (due < Infinity) this.#busy.delete(n)
    if (this.#down) this.#down = { ...this.#down, nextProbeAt: -Infinity }
    this.wake()
  }

  /** Reports a changed state, except the removal of a target for which nothing waits. */
  #report(): void {
    const status = this.status()
    if (status.state === this.#reported || this.isOver) return
    this.#reported = status.state
    this.#parts.onTarget(status)
  }

  /** Fills until nothing has changed meanwhile. Does not reject. */
  async #fillAll(): Promise<void> {
    while (this.#isAgain) {
      this.#isAgain = false
      await this.#fill()
    }
    this.#filling = undefined
  }

  async #fill(): Promise<void> {
    const { journal, concurrency, monotonic, mayRun, signal, timer } = this.#parts
    const [open, down] = [this.#open, this.#down]
    if (!open || signal.aborted || !mayRun()) return
    const now = monotonic()
    for (const [n, due] of this.#busy) if (due <= now) this.#busy.delete(n)
    const isSending = [...this.#busy.values()].includes(Infinity)
    const isDue = !isSending && down !== undefined && now >= down.nextProbeAt
    const room = down ? Number(isDue) : concurrency - this.#busy.size
    const read = () => journal.next(this.#id, room, down ? [] : this.#busy.keys())
    const problem = `${labelOf(this.#id)}: what waits cannot be read yet`
    const found = (room > 0 && (await this.#stored(problem, read))) || []
    for (const due of found) {
      // All of this may have changed during the read.
      if (this.#down !== down || this.#open !== open || signal.aborted) {
        this.#isAgain = true
        return
      }
      this.#busy.set(due.n, Infinity)
      const attempt = this.#attempt(due, open, down !== undefined).finally(() =>
        this.#attempts.delete(attempt),
      )
      this.#attempts.add(attempt)
    }
    if (room > 0 && found.length === 0 && this.#busy.size === 0) this.#queued = 0
    const probe = down && now < down.nextProbeAt ? down.nextProbeAt : Infinity
    const next = Math.min(probe, ...this.#busy.values())
    this.#cancel()
    if (next < Infinity && !signal.aborted) this.#cancel = timer(Math.max(0, next - now), () => this.wake())
  }

  /** Sends one entry and records the result. Does not reject. */
  async #attempt(
    { n, forward: before, earlier }: DueForward,
    open: { readonly route: Route; readonly target: OpenTarget },
    isProbe: boolean,
  ): Promise<void> {
    const { journal, clock, monotonic, random, signal, mayRun, limits, onAttempt } = this.#parts
    const { route, target } = open
    const entry = await this.#stored(`#${n} → ${route.label}: cannot be read yet`, () => journal.read(n))
    if (!entry || this.#open !== open || signal.aborted || !mayRun()) {
      this.#busy.delete(n)
      // Woken also if the target was opened again meanwhile, because this entry counted as being sent.
      return this.wake()
    }
    const [at, began] = [clock(), monotonic()]
    const { retryAfter = 0, ...result } = await target.deliver(entry, earlier + 1, { signal }).catch(defect)
    const ms = Math.max(0, Math.round(monotonic() - began))
    const forward = nextForward(before, result, limits)
    const hasEnded = forward.status !== 'waiting'
    if (hasEnded) {
      this.#queued = Math.max(0, this.#queued - 1)
      this.#markUp()
    }
    const own = jittered(limits.retries[forward.tries - 1] ?? 0, random)
    const wait = Math.max(own, Math.min(retryAfter, MAX_RETRY_AFTER_MS))
    const backsOff = !hasEnded && result.outcome === 'retry'
    const attempt = { at, target: this.#id, ms, count: 1, ...result }
    // Without the body, which need not stay in memory until the disk has answered.
    const { body: _, ...rest } = entry
    const problem = `#${n} → ${route.label}: the attempt could not be recorded yet`
    await this.#stored(problem, async () => {
      await journal.record(n, attempt, forward)
      onAttempt({ n, entry: rest, route, attempt, forward, ...(backsOff && { retryAt: clock() + wait }) })
    })
    if (backsOff) {
      this.#busy.set(n, monotonic() + wait)
      this.#markUp()
    } else this.#busy.delete(n)
    if (this.#open === open && DOWN.has(result.outcome)) await this.#markDown(route, isProbe)
    this.wake()
  }

  #markUp(): void {
    this.#down = undefined
    this.#report()
  }

  async #markDown({ target }: Route, isProbe: boolean): Promise<void> {
    // An attempt that was in flight when the target went down is not a further failure.
    if (this.#down && !isProbe) return
    const { clock, monotonic, random, limits, journal, log } = this.#parts
    const now = monotonic()
    const {
      since = clock(),
      at = now,
      began = now,
      awake: before = 0,
      failures: earlier = 0,
    } = this.#down ?? {}
    const awake = before + Math.min(now - at, MAX_PROBE_GAP_MS)
    const failures = earlier + 1
    const isNearby = target.kind === 'http' && isLoopback(new URL(target.url).hostname)
    const delay = isNearby
      ? nearbyProbeDelay(now - began, random, limits.probe)
      : probeDelay(failures, random, limits.probe)
    this.#down = { since, began, at: now, awake, failures, nextProbeAt: now + delay }
    this.#report()
    if (awake < MIN_DOWN_MS) return
    const expired = await journal.expire(clock() - MAX_AGE_MS, { target: this.#id }).catch(() => 0)
    this.#queued = Math.max(0, this.#queued - expired)
    if (expired > 0) log.warn(`${labelOf(this.#id)}: ${expiredText(expired)}`)
  }

  /**
   * Repeats a failed storage call, but never the attempt, since the target has the delivery. Undefined once relay
   * stops. Does not reject.
   */
  async #stored<Result>(problem: string, work: () => Promise<Result>): Promise<Result | undefined> {
    const { log, random, limits, signal, timer } = this.#parts
    for (let failures = 1; ; failures++) {
      try {
        return await work()
      } catch (error) {
        if (failures === 1 && !signal.aborted) log.error(problem, error)
        const delay = Math.min(probeDelay(failures, random, limits.probe), MAX_STORAGE_DELAY_MS)
        await new Promise<void>((resolve) => {
          const cancel = timer(delay, resolve)
          onAbort(signal, () => {
            cancel()
            resolve()
          })
        })
        if (signal.aborted) return undefined
      }
    }
  }
}

function expiredText(count: number): string {
  return `${count} ${count === 1 ? 'delivery' : 'deliveries'} older than 24 h failed`
}

const DOWN: ReadonlySet<AttemptOutcome> = new Set(['unreachable', 'timed out'])

/** Status of a forward after an attempt. After an interrupted one it waits, whatever its age. */
function nextForward(
  { tries, since }: Forward,
  { outcome, status, error }: DeliveryResult,
  { retries }: { readonly retries: readonly number[] },
): Forward {
  const reason = error ?? `answered ${status}`
  if (outcome === 'succeeded') return { status: 'succeeded', tries, since }
  if (outcome === 'refused') return { status: 'failed', tries, since, reason }
  if (outcome !== 'retry') return { status: 'waiting', tries, since }
  if (tries < retries.length) return { status: 'waiting', tries: tries + 1, since }
  return { status: 'failed', tries: tries + 1, since, reason: `${reason}, ${tries + 1} times` }
}

/** Result for a target that rejected. That is a defect, and must not stay first in the queue for ever. */
function defect(error: unknown): DeliveryResult {
  const why = error instanceof RelayError ? error.message : 'relay failed to send it'
  return { outcome: 'refused', status: null, answer: new Uint8Array(), error: why }
}

function openTarget(route: Route, { env, limits, clock, sendable: ofRoute }: LaneDependencies): OpenTarget {
  const { target } = route
  const sendable = ofRoute && ((entry: Entry) => ofRoute(entry, route))
  return target.kind === 'http'
    ? openHttpTarget(target.url, { clock, limit: limits.http, sendable })
    : openCommandTarget(target.command, { env, limit: limits.command, grace: limits.grace })
}

const systemTimer: Timer = (ms, run) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}
