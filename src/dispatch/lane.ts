import { setImmediate } from 'node:timers/promises'
import { isLoopback } from '../base/address.js'
import type { Environment } from './command-target.js'
import type { Log } from '../base/log.js'
import type { Limits } from '../base/seams.js'
import type { Clock } from '../base/time.js'
import { nearbyProbeDelay, onAbort, probeDelay, type Random } from '../base/wait.js'
import type { Journal } from '../journal/journal.js'
import type { Attempt, DueForward, Entry, Forward } from '../journal/types.js'
import { BrokenConnections, Comeback, type Down, type TargetFailure } from './availability.js'
import type { RequestBuilder } from './http-target.js'
import { openTarget, type TargetParts } from './open-target.js'
import { TargetQueue } from './queue.js'
import { ANSWERED, defect, expiredText, hasFailed, nextForward } from './result.js'
import { isCommand, labelOf, type Route, sendsAlike } from './routes.js'
import {
  type DeliveryResult,
  type OpenTarget,
  othersBehind,
  type Reply,
  type TargetStatus,
} from './target.js'

/** One attempt, for observers. */
export interface AttemptEvent {
  readonly n: number
  readonly entry: Omit<Entry, 'body'>
  readonly route: Route
  readonly attempt: Attempt
  /** Status of the forward after the attempt. */
  readonly forward: Forward
  /** Time of the next attempt in milliseconds, if this one failed and there will be another. */
  readonly retryAt?: number
}

/** Calls `run` once after `ms` milliseconds, unless the returned function is called first. */
export type Timer = (ms: number, run: () => void) => () => void

export interface DispatcherOptions extends Pick<TargetParts, 'background'> {
  readonly journal: Pick<
    Journal,
    | 'nameTargets'
    | 'targetNames'
    | 'next'
    | 'waiting'
    | 'readToSend'
    | 'record'
    | 'expire'
    | 'counts'
    | 'hasten'
  >
  /** Attempts at once per target, unless its route says otherwise. */
  readonly concurrency: number
  /** Environment of commands, from which relay's own secrets are removed. */
  readonly env: Environment
  readonly log: Log
  /** True while this relay may send. Another one may have taken over. */
  readonly mayRun: () => boolean
  /** Called for each attempt once it is recorded. Must not throw. */
  readonly onAttempt: (event: AttemptEvent) => void
  /**
   * Called when a target goes down, comes up, is no longer configured, or is again, and once for each delivery that
   * others wait for, or that is not answered for long. Must not throw.
   */
  readonly onTarget: (status: TargetStatus) => void
  readonly clock: Clock
  /** Clock for waits, in milliseconds from any start, which is never set back. Default: `clock`. */
  readonly monotonic?: Clock | undefined
  readonly limits: Limits
  readonly random?: Random | undefined
  readonly timer?: Timer
  /** Converts an entry to the request for a route's address. Default: the entry as received. */
  readonly sendable?: ((entry: Entry, route: Route) => ReturnType<RequestBuilder>) | undefined
  /** Opens a target. Default: HTTP and commands. */
  readonly open?: (route: Route) => OpenTarget
}

/** Dependencies of all lanes. */
export interface LaneDependencies extends DispatcherOptions {
  readonly monotonic: Clock
  readonly random: Random
  readonly timer: Timer
  readonly signal: AbortSignal
}

/** Longest wait of a delivery for a target that is unreachable or no longer configured: 24 hours. */
export const MAX_AGE_MS = 86_400_000
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
/** Longest delay between attempts of storage, since a whole queue waits. Milliseconds. */
const MAX_STORAGE_DELAY_MS = 5000
/**
 * Most attempts beyond the concurrency that an address has not answered after `slow` milliseconds: as many as begin
 * within the time limit of 30 s, so that the next attempt never waits for it.
 */
export const MAX_SLOW = 6
/**
 * Different deliveries that a target leaves unanswered, one after the other, before it counts as hanging: one or two may
 * be the fault of these deliveries.
 */
const HANGING_AFTER = 3
/** Most deliveries that a person has sent, in flight at once to an address in addition to all others. */
const MAX_URGENT = 4
/**
 * Most answered attempts of an address whose records are not yet durable while the next attempt begins. A crash repeats
 * these. Commands and targets with strict order wait for each record.
 */
export const MAX_UNRECORDED = 16

/** A delivery that is being sent, or whose attempt is being recorded. */
interface Flight {
  /** Start, of the monotonic clock. */
  readonly began: number
  readonly isUrgent: boolean
  isSending: boolean
  /** True once it was reported that it is not answered for long, or that others wait for it. */
  isTold: boolean
}

/** A configured route with its target. */
interface Open {
  readonly route: Route
  readonly target: OpenTarget
  readonly queue: TargetQueue
  /** Attempts at once. */
  readonly concurrency: number
  /** True if the next attempt waits until the last one is recorded, and for slow ones. */
  readonly isStrict: boolean
  /** Interrupts its attempts. */
  readonly signal: AbortSignal
}

/**
 * Lane of one target: what is sent to it, and when. First attempts begin in the order of arrival; a delivery that is to be tried
 * again does not hold up those behind it, unless the route has strict order. A target without connection gets one
 * delivery at a time, at growing intervals. `#fill` and `#room` decide what is sent in turn; a person's act goes past them.
 */
export class Lane {
  readonly #id: string
  readonly #parts: LaneDependencies
  readonly #flights = new Map<number, Flight>()
  readonly #attempts = new Set<Promise<void>>()
  /** Called with the answer for the sender, after the first attempt. */
  readonly #replies = new Map<number, (reply: Reply | undefined) => void>()
  /** Deliveries that a person has sent, until they are under way; true for those that are sent even if they were tried. */
  readonly #urgent = new Map<number, boolean>()
  /** Undefined: nothing is sent. */
  #open: Open | undefined
  /** Also once it is no longer configured. */
  #name: string | undefined
  #goneSince: number
  #down: Down | undefined
  /** Deliveries left unanswered by attempts that began after the last one that was answered. */
  #unanswered = new Set<number>()
  /** Start of the last attempt that was answered. */
  #answered = -Infinity
  /** Connections in a row that broke before an answer, and the delivery that they were for. */
  readonly #broken = new BrokenConnections()
  /** The delivery with strict order that is to be tried again, and when. */
  #heldBy: TargetStatus['heldBy']
  /** Deliveries that wait by the journal, and those of them that have ended, whose record is not there yet. */
  #queued = 0
  #over = 0
  readonly #comeback = new Comeback()
  /** The delivery that others wait for, as last reported. */
  #reportedHeldBy: number | undefined
  /** Interrupts the attempts in flight, with `signal` or alone. */
  #interrupt = new AbortController()
  #filling: Promise<void> | undefined
  #isAgain = false
  #cancel = (): void => {}

  /** @param name the user's name for it when it was last configured */
  constructor(id: string, parts: LaneDependencies, name: string | undefined) {
    this.#id = id
    this.#parts = parts
    this.#name = name
    this.#goneSince = parts.clock()
  }

  get id(): string {
    return this.#id
  }

  /** The user's name for the target. Undefined without one, and for a target that is not configured. */
  get name(): string | undefined {
    return this.#open && this.#name
  }

  /** Resolves once no attempt is in flight. One that takes longer than usually allowed is interrupted. Does not reject. */
  async settled(): Promise<void> {
    const { limits, timer } = this.#parts
    const limit = isCommand(this.#id) ? limits.command : limits.http
    const cancel = timer(limit, () => this.#interrupt.abort('the target was changed'))
    while (this.#attempts.size > 0) await Promise.all(this.#attempts)
    cancel()
  }

  get isConfigured(): boolean {
    return this.#open !== undefined
  }

  /** True if the target is no longer configured, and nothing waits for it. */
  get isOver(): boolean {
    return !this.#open && this.#queued === 0 && this.#flights.size === 0
  }

  status(): TargetStatus {
    const common = { id: this.#id, label: labelOf(this.#id), queued: Math.max(0, this.#queued - this.#over) }
    if (!this.#open) {
      const named = this.#name === undefined ? {} : { name: this.#name }
      return { ...common, ...named, state: 'gone', since: this.#goneSince }
    }
    const { clock, monotonic } = this.#parts
    const sending = [...this.#flights].flatMap(([n, { isSending }]) => (isSending ? [n] : []))
    const isTried = this.#heldBy && this.#flights.has(this.#heldBy.n)
    const busy = { ...common, ...(sending.length > 0 && { sending }) }
    if (this.#down) {
      const { since, nextProbeAt, why } = this.#down
      const delay = Math.max(0, nextProbeAt - monotonic())
      return { ...busy, state: 'down', why, since, nextProbeAt: clock() + delay }
    }
    const heldBy = (isTried ? undefined : this.#heldBy) ?? this.#slowest(this.#open, monotonic())
    return { ...busy, ...(heldBy && { heldBy }), state: 'up' }
  }

  /** The first delivery that is not answered for long, if the others wait for it. */
  #slowest(open: Open, now: number): { readonly n: number } | undefined {
    if (this.#room(open, now) > 0) return undefined
    const { slow } = this.#parts.limits
    for (const [n, { began, isSending }] of this.#flights) if (isSending && now >= began + slow) return { n }
    return undefined
  }

  /** Sends by this route from now on. Attempts in flight end as they began. */
  attach(route: Route): void {
    this.#name = route.name
    if (this.#open && sendsAlike(this.#open.route, route)) return
    const before = this.#open?.target
    const { open = (it: Route) => openTarget(it, this.#parts), journal, clock, signal } = this.#parts
    const { ordered = false, concurrency = this.#parts.concurrency, target } = route
    if (this.#interrupt.signal.aborted) this.#interrupt = new AbortController()
    this.#open = {
      route,
      target: open(route),
      queue: new TargetQueue(this.#id, { journal, clock, ordered }),
      concurrency: ordered ? 1 : concurrency,
      isStrict: ordered || target.kind === 'command',
      signal: AbortSignal.any([signal, this.#interrupt.signal]),
    }
    if (before) void this.#end(before)
    this.#report()
    this.wake()
  }

  /**
   * Removes the target. Attempts in flight end, waiting entries stay in the journal. `isMoving` if another target takes
   * them over, so that its removal is no news.
   */
  detach({ isMoving = false } = {}): void {
    if (this.#open) {
      void this.#end(this.#open.target)
      this.#goneSince = this.#parts.clock()
    }
    this.#open = undefined
    this.#down = undefined
    this.#unanswered.clear()
    this.#urgent.clear()
    this.#cancel()
    if (!isMoving) this.#report()
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

  /**
   * Sends a delivery that waits before all others, and although the target is down.
   * @param isAgain false for a new delivery, which is left as it is once it was tried
   */
  sendNow(n: number, isAgain: boolean): void {
    if (!isAgain && this.#flights.has(n)) return
    this.#urgent.set(n, isAgain)
    this.wake()
  }

  /**
   * Sends a new delivery as {@link sendNow} does, and resolves with the target's answer after its first attempt, or with
   * undefined if there is none before `signal` aborts. Does not reject.
   */
  async reply(n: number, signal: AbortSignal): Promise<Reply | undefined> {
    const answered = new Promise<Reply | undefined>((resolve) => {
      this.#replies.set(n, resolve)
      onAbort(signal, () => resolve(undefined))
    })
    this.sendNow(n, false)
    return answered.finally(() => this.#replies.delete(n))
  }

  count(waiting: number): void {
    this.#queued = waiting
  }

  wake(): void {
    this.#isAgain = true
    this.#filling ??= this.#fillAll()
  }

  /** Probes a target that is down now. */
  retryNow(): void {
    if (this.#down) this.#down = { ...this.#down, nextProbeAt: -Infinity }
    this.wake()
  }

  /** Reports a changed state, except the removal of an empty target, a delivery that holds up others, and a slow one. */
  #report(): void {
    const now = this.#parts.monotonic()
    const { reported } = this.#comeback
    const isUp = !this.#down && this.#comeback.isBack(now, this.#queued <= this.#over)
    const is = !this.#open ? 'gone' : isUp ? 'up' : 'down'
    const late = is === 'up' ? this.#late(now) : []
    // Most calls, of each attempt, end here.
    if (is === reported && (this.#heldBy === undefined || is !== 'up') && late.length === 0) return
    const status = this.status()
    const { heldBy } = status
    const isHeld = heldBy !== undefined && othersBehind(status) > 0 && heldBy.n !== this.#reportedHeldBy
    if (isHeld) this.#reportedHeldBy = heldBy.n
    const slow = late.flatMap(([n, { isTold }]) => (isTold || n === this.#reportedHeldBy ? [] : [n]))
    for (const [, flight] of late) flight.isTold = true
    if ((is === reported && !isHeld && slow.length === 0) || this.isOver) return
    this.#comeback.report(is, now)
    this.#parts.onTarget({ ...status, ...(slow.length > 0 && { slow }) })
  }

  /** Fills until nothing has changed meanwhile. Does not reject. */
  async #fillAll(): Promise<void> {
    while (this.#isAgain) {
      this.#isAgain = false
      // With several attempts at once, all answers of one turn share one read of the queue.
      if ((this.#open?.concurrency ?? 1) > 1) await setImmediate()
      await this.#fill()
    }
    this.#filling = undefined
  }

  async #fill(): Promise<void> {
    const { monotonic, mayRun, signal } = this.#parts
    const [open, down] = [this.#open, this.#down]
    if (!open || signal.aborted || !mayRun()) return
    await this.#sendUrgent(open)
    // Read once: between two readings, the time for which nothing was due could pass without a timer.
    const now = monotonic()
    const room = this.#room(open, now)
    const isEarly = down !== undefined && now < down.nextProbeAt
    // While it leaves some unanswered, the target may still answer what it was never sent.
    const isSlow = down?.isHanging === true || this.#slow(now).length > 0
    const repeats = isEarly ? 'not now' : isSlow ? 'last' : 'by turns'
    const read = () => open.queue.next(room, this.#flights.keys(), repeats)
    const problem = `${open.route.label}: what waits cannot be read yet`
    const found = room > 0 ? await this.#stored(problem, read) : undefined
    for (const due of found?.ready ?? []) {
      // All of this may have changed during the read.
      if (this.#down !== down || this.#open !== open || signal.aborted) {
        this.#isAgain = true
        return
      }
      this.#start(due, open, down !== undefined)
    }
    if (found) this.#heldBy = found.heldBy
    const isEmpty = found?.ready.length === 0 && found.delay === Infinity && !isEarly
    // Again: something has come since it was read.
    if (isEmpty && this.#flights.size === 0 && !this.#isAgain) this.#queued = 0
    this.#report()
    this.#wakeIn(Math.min(this.#nextChange(now), found?.delay ?? Infinity))
  }

  /** Sends what a person has sent: to an address in parallel with all others; to a command or a strict order, as the next one. */
  async #sendUrgent(open: Open): Promise<void> {
    const { journal, signal } = this.#parts
    for (const [n, isAgain] of this.#urgent) {
      const urgent = [...this.#flights.values()].filter(({ isUrgent }) => isUrgent)
      const room = open.isStrict ? open.concurrency - this.#flights.size : MAX_URGENT - urgent.length
      if (room <= 0) return
      // An attempt that began before may fail. This one follows it.
      if (this.#flights.has(n)) continue
      const problem = `#${n} → ${open.route.label}: cannot be read yet`
      const due = await this.#stored(problem, () => journal.waiting(this.#id, n))
      if (this.#open !== open || signal.aborted) return
      this.#urgent.delete(n)
      const isDue = due && (isAgain || due.forward.due === undefined)
      if (isDue && !this.#flights.has(n)) this.#start(due, open, false, true)
    }
  }

  #start(due: DueForward, open: Open, isProbe: boolean, isUrgent = false): void {
    const began = this.#parts.monotonic()
    const flight: Flight = { began, isUrgent, isSending: true, isTold: false }
    this.#flights.set(due.n, flight)
    const attempt = this.#attempt(due, open, flight, isProbe).finally(() => this.#attempts.delete(attempt))
    this.#attempts.add(attempt)
  }

  /** Number of attempts that may begin now. */
  #room({ concurrency, isStrict }: Open, now: number): number {
    const sending = this.#sending()
    if (this.#down) {
      // A first attempt at a hanging target does not wait.
      const mayProbe = (this.#down.isHanging && !isStrict) || now >= this.#down.nextProbeAt
      return sending.length === 0 && mayProbe ? 1 : 0
    }
    if (isStrict) return concurrency - this.#flights.size
    return Math.min(
      concurrency - (sending.length - this.#slow(now).length),
      concurrency + MAX_SLOW - sending.length,
      MAX_UNRECORDED - (this.#flights.size - sending.length),
    )
  }

  /** Attempts under way, without those that a person has made. */
  #sending(): readonly Flight[] {
    return [...this.#flights.values()].filter(({ isSending, isUrgent }) => isSending && !isUrgent)
  }

  /** Attempts that the target leaves unanswered for some time. */
  #slow(now: number): readonly Flight[] {
    return this.#sending().filter(({ began }) => now >= began + this.#parts.limits.slow)
  }

  /** Attempts, also a person's, that the target leaves unanswered for some time. */
  #late(now: number): readonly (readonly [n: number, flight: Flight])[] {
    const { slow } = this.#parts.limits
    return [...this.#flights].filter(([, { isSending, began }]) => isSending && now >= began + slow)
  }

  /** Milliseconds until there may be more room, or an attempt is slow, although none has ended. */
  #nextChange(now: number): number {
    const { limits } = this.#parts
    if (this.#down) return now < this.#down.nextProbeAt ? this.#down.nextProbeAt - now : Infinity
    const fresh = [...this.#flights.values()].filter(
      (each) => each.isSending && now < each.began + limits.slow,
    )
    return Math.min(Infinity, ...fresh.map(({ began }) => began + limits.slow - now))
  }

  #wakeIn(ms: number): void {
    const { signal, timer } = this.#parts
    this.#cancel()
    if (ms < Infinity && !signal.aborted) this.#cancel = timer(Math.max(0, ms), () => this.wake())
  }

  /** Sends one entry and records the result. Does not reject. */
  async #attempt({ n, forward: before }: DueForward, open: Open, flight: Flight, isProbe: boolean) {
    const { journal, clock, monotonic, signal, mayRun, onAttempt } = this.#parts
    const { route, target } = open
    const read = () => journal.readToSend(this.#id, n)
    const found = await this.#stored(`#${n} → ${route.label}: cannot be read yet`, read)
    if (!found || this.#open !== open || signal.aborted || !mayRun()) {
      this.#flights.delete(n)
      // Woken also if the target was opened again meanwhile, because this entry counted as being sent.
      return this.wake()
    }
    const { entry, earlier } = found
    const [at, began] = [clock(), monotonic()]
    const result = await target.deliver(entry, earlier + 1, { signal: open.signal }).catch(defect)
    const { retryAfter: _, reply, isBroken = false, isStale = false, ...shown } = result
    if (!isStale) this.#replies.get(n)?.(reply)
    const ms = Math.max(0, Math.round(monotonic() - began))
    const hasReached = result.outcome === 'timed out' || this.#broken.isOften(n, isBroken)
    const forward = nextForward(before, result, hasReached, this.#parts)
    const over = forward.status === 'waiting' ? 0 : 1
    this.#over += over
    if (ANSWERED.has(result.outcome)) this.#markAnswered(flight, result)
    const attempt = { at, target: this.#id, ms, count: 1, ...shown }
    // A failure of the target is recorded before anything else is sent, so that what is printed has its reason.
    if (!open.isStrict && ANSWERED.has(result.outcome)) {
      flight.isSending = false
      this.wake()
    }
    // Without the body, which need not stay in memory until the disk has answered.
    const { body: __, ...rest } = entry
    const problem = `#${n} → ${route.label}: the attempt could not be recorded yet`
    await this.#stored(problem, async () => {
      // While others wait, their records can share a flush. A single one is recorded at once, before another delivery
      // arrives, whose answer would wait for both. It counts as waiting itself if it is to be tried again.
      const othersWait = this.#queued > this.#over + 1 - over
      const status = await journal.record(n, attempt, forward, { isLazy: !flight.isSending && othersWait })
      // A person may have ended what waited.
      const isAgain = status === 'waiting' && hasFailed(result, hasReached)
      const retryAt = forward.due !== undefined && isAgain ? { retryAt: forward.due } : {}
      onAttempt({ n, entry: rest, route, attempt, forward: { ...forward, status }, ...retryAt })
      this.#queued = Math.max(0, this.#queued - over)
      this.#over -= over
    })
    this.#flights.delete(n)
    if (isStale && flight.isUrgent) this.#urgent.set(n, true)
    if (this.#open === open) {
      const failure = { isProbe, isHanging: result.outcome === 'timed out', why: result.error ?? '' }
      if (result.outcome === 'unreachable' && !isStale) await this.#markDown(route, failure)
      if (result.outcome === 'timed out') await this.#markUnanswered(n, flight, route, failure)
    }
    this.wake()
  }

  #markAnswered({ began }: Flight, result: DeliveryResult): void {
    this.#answered = Math.max(this.#answered, began)
    this.#unanswered.clear()
    this.#down = undefined
    this.#comeback.answered(result, this.#parts.monotonic())
    this.#report()
  }

  /** Counts a delivery that was not answered in time. What began before an attempt that was answered says nothing. */
  async #markUnanswered(n: number, { began }: Flight, route: Route, failure: TargetFailure): Promise<void> {
    if (began > this.#answered) this.#unanswered.add(n)
    if (this.#down || this.#unanswered.size >= HANGING_AFTER) await this.#markDown(route, failure)
  }

  async #markDown({ target }: Route, { isProbe, isHanging, why }: TargetFailure): Promise<void> {
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
    // A refused connection costs nothing, an attempt that is not answered does.
    const isNearby = !isHanging && target.kind === 'http' && isLoopback(new URL(target.url).hostname)
    const delay = isNearby
      ? nearbyProbeDelay(now - began, random, limits.probe)
      : probeDelay(failures, random, limits.probe)
    this.#down = { isHanging, since, began, at: now, awake, failures, nextProbeAt: now + delay, why }
    this.#comeback.failed()
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
