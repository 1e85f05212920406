import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { TIME_LIMITS } from './seams.js'
import { type Clock, systemClock } from './time.js'

/** Last parameter of every function that waits. */
export interface Cancellable {
  readonly signal?: AbortSignal | undefined
}

/**
 * Keeps time-outs alive: Node 20's `AbortSignal.any` holds its sources weakly, and a collected one never fires
 * (measured).
 */
const timeouts = new WeakMap<AbortSignal, AbortSignal>()

/**
 * Returns a signal that aborts with a `TimeoutError` after `ms` milliseconds, or earlier with the reason of `signal`.
 */
export function deadline(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms)
  if (!signal) return limit
  const either = AbortSignal.any([signal, limit])
  timeouts.set(either, limit)
  return either
}

export interface SleepOptions extends Cancellable {
  /** False: the wait does not keep the process alive. Default: true. */
  readonly ref?: boolean
}

/**
 * Resolves after `ms` milliseconds.
 * @throws AbortError, its `cause` the signal's reason, when `signal` aborts first.
 */
export async function sleep(ms: number, { signal, ref = true }: SleepOptions = {}): Promise<void> {
  await wait(ms, undefined, { ref, ...(signal && { signal }) })
}

/** Resolves when the signal aborts, at once if it already has. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** Functions to call when a signal aborts. */
const callbacks = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls `run` when `signal` aborts, or at once if it has. Calling the returned function cancels that. Each signal gets one
 * listener in total: adding and removing one per request takes longer than writing the request.
 */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  if (signal.aborted) {
    run()
    return () => {}
  }
  const runs = callbacks.get(signal) ?? listen(signal)
  runs.add(run)
  return () => void runs.delete(run)
}

function listen(signal: AbortSignal): Set<() => void> {
  const runs = new Set<() => void>()
  callbacks.set(signal, runs)
  signal.addEventListener(
    'abort',
    () => {
      for (const run of runs) run()
      runs.clear()
    },
    { once: true },
  )
  return runs
}

/** True for the reason of a signal that aborted at its time limit. */
export function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError'
}

/** Delay of a timer that shows that the machine, or this process, has slept. Milliseconds. */
const HELD_UP_MS = 1000
/** Time after a sleep in which connections are found again, and what they brought meanwhile is read. Milliseconds. */
const AWAKE_MS = 5000
/** Longest delay of a timer: Node runs one with a longer delay at once. */
export const MAX_TIMER_MS = 2_147_483_647

/**
 * Runs `work` with a signal that aborts with a `TimeoutError` after `ms` milliseconds, or earlier with the reason of
 * `signal`. What has arrived by then is read first, and a machine that slept meanwhile gets some more seconds. Leaves no
 * timer and no listener behind, unlike `AbortSignal.timeout`, and like it does not keep the process alive: what it waits for
 * does.
 * @param ms from 25 days on there is no limit
 */
export async function withTimeLimit<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limited = new AbortController()
  const abort = (): void => limited.abort(new DOMException('Timed out', 'TimeoutError'))
  const due = performance.now() + ms
  let last: NodeJS.Immediate | undefined
  const expire = (): void => {
    if (performance.now() > due + HELD_UP_MS) timer = setTimeout(abort, AWAKE_MS).unref()
    // Timers run before what has arrived is read.
    else last = setImmediate(abort)
  }
  let timer = ms > MAX_TIMER_MS ? undefined : setTimeout(expire, ms).unref()
  const ignore = onAbort(signal, () => limited.abort(signal.reason))
  try {
    return await work(limited.signal)
  } finally {
    clearTimeout(timer)
    clearImmediate(last)
    ignore()
  }
}

/**
 * Awaits `work`, which cannot be cancelled, for at most `ms` milliseconds; its result is ignored after that.
 * @throws TimeoutError after `ms` milliseconds
 */
export async function awaitWithin<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DOMException('Timed out', 'TimeoutError')), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

interface WatchOptions {
  readonly clock?: Clock
  /** Milliseconds between two readings of the clock. Default: 1 s. */
  readonly every?: number
  /** Milliseconds that count as sleep. Default: 10 s, since the timers of a busy process come seconds late. */
  readonly gap?: number
}

/**
 * Calls `listener` when the machine, or this process, has slept, which stops all timers: the clock has jumped by more
 * than `gap` between two readings. Returns a function that ends the watch. Its timer does not keep the process alive.
 */
export function onSleep(listener: () => void, options: WatchOptions = {}): () => void {
  const { clock = systemClock, every = 1000, gap = 10_000 } = options
  let before = clock()
  const timer = setInterval(() => {
    const passed = clock() - before
    before += passed
    if (passed > every + gap) listener()
  }, every).unref()
  return () => clearInterval(timer)
}

/** Returns a number from 0 (inclusive) to 1 (exclusive), like `Math.random`. */
export type Random = () => number

const MAX_DELAY_MS = 60_000

/** Milliseconds until the next attempt after `failures` failures in a row: 1, 2, 4 … 60 s, or `longest`, ±20 %. */
export function probeDelay(
  failures: number,
  random: Random,
  first = TIME_LIMITS.probe,
  longest = MAX_DELAY_MS,
): number {
  return jittered(Math.min(first * 2 ** (failures - 1), longest), random)
}

/** Delay after the first minute. Each attempt is a row of the journal, for up to 24 hours. */
const NEARBY_LATER_MS = 5000
const NEARBY_SOON_MS = 60_000

/**
 * Delay for a target on this machine that has been unreachable for `downFor` milliseconds: 1 s in the first minute,
 * then 5 s, ±20 %. Such a program restarts many times a minute while it is written, and a refused connection costs
 * nothing.
 */
export function nearbyProbeDelay(downFor: number, random: Random, first = TIME_LIMITS.probe): number {
  return jittered(downFor < NEARBY_SOON_MS ? first : NEARBY_LATER_MS, random)
}

/** Varies `ms` by ±20 %, so that many waiting callers do not retry at the same moment. */
export function jittered(ms: number, random: Random): number {
  return Math.round(ms * (0.8 + 0.4 * random()))
}

/**
 * Returns a function that reads a value when it is first called, and again once the last one is `maxAge` milliseconds
 * old. Calls during a read share it. A failure is not cached: the next call reads again.
 */
export function createCached<Value>(maxAge: number, read: () => Promise<Value>): () => Promise<Value> {
  let value: Promise<Value> | undefined
  let until = Infinity
  return () => {
    if (value && performance.now() < until) return value
    until = Infinity
    const reading = read()
    value = reading
    reading.then(
      () => (until = performance.now() + maxAge),
      () => (until = -Infinity),
    )
    return reading
  }
}
