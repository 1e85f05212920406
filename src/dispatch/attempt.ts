import { probeDelay } from '../base/backoff.js'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Entry } from '../journal/delivery.js'
import type { Attempt, Forward } from '../journal/forward.js'
import type { Journal } from '../journal/journal.js'
import { isDamaged } from '../store/storage-error.js'
import { retryDelay } from './backoff.js'
import type { Owner } from './owner.js'
import { nextStatus } from './policy.js'
import type { AttemptContext, AttemptFn, AttemptResult } from './queue.js'
import { delay, type Time } from './retry-timers.js'
import type { Route } from './route.js'
import type { DeliveryResult, OpenTarget } from './target.js'

/** One attempt, for observers. */
export interface AttemptEvent {
  readonly n: number
  readonly entry: Omit<Entry, 'body'>
  readonly route: Route
  readonly attempt: Attempt
  /** The status of the forward now. */
  readonly forward: Forward
  /** When it is attempted again, if the target asked for that. Milliseconds. */
  readonly retryAt?: number
}

export interface AttemptParts {
  readonly journal: Pick<Journal, 'read' | 'forwards' | 'attempts' | 'record'>
  readonly route: Route
  readonly target: OpenTarget
  readonly time: Time
  readonly log: Log
  readonly owner?: Pick<Owner, 'assert' | 'isCurrent' | 'fence'> | undefined
  readonly onAttempt?: ((event: AttemptEvent) => void) | undefined
}

/** There is nothing to send. */
const SKIPPED: AttemptResult = { reached: undefined, ended: true }
/** Nothing was sent: the entry waits. */
const NOT_SENT: AttemptResult = { reached: undefined, ended: false }

/**
 * Makes the function that attempts one entry at one target and records the outcome. If an attempt fails by a defect or damaged data, the
 * entry waits until the next start, so that it does not block those behind it.
 */
export function createAttempt(parts: AttemptParts): AttemptFn {
  return async (n, context) => {
    try {
      return await attemptOnce(n, parts, context)
    } catch (error) {
      logPostponed(n, error, parts, context.signal)
      return SKIPPED
    }
  }
}

function logPostponed(n: number, error: unknown, { route, log }: AttemptParts, signal: AbortSignal): void {
  if (!signal.aborted) log.error(`#${n} → ${route.label}: postponed until the next start`, error)
}

async function attemptOnce(n: number, parts: AttemptParts, context: AttemptContext): Promise<AttemptResult> {
  const { route, target, time, owner } = parts
  const { signal } = context
  const loaded = await retryStorage(
    `#${n} → ${route.label}: cannot be read yet`,
    () => load(n, parts),
    parts,
    signal,
  )
  if (!loaded) return SKIPPED
  if (!(await context.ready()) || owner?.isCurrent() === false) return NOT_SENT
  const at = time.clock()
  const result = await target.deliver(loaded.entry, loaded.earlier + 1, { signal })
  const now = time.clock()
  const attempt = { at, target: route.id, ms: Math.max(0, now - at), count: 1, ...stored(result) }
  const forward = nextStatus(loaded.before, result, time.ages())
  const ended = forward.status !== 'waiting'
  const asksForRetry = !ended && result.outcome === 'retry'
  const wait = asksForRetry
    ? retryDelay(forward.tries, result.retryAfter, time.random, time.retries)
    : undefined
  // Without the body, which need not stay in memory until the disk has answered.
  const { body: _, ...entry } = loaded.entry
  const event = { n, entry, route, attempt, forward, ...(wait !== undefined && { retryAt: now + wait }) }
  const recorded = record(event, parts, signal)
  const reached = isReached(result)
  // The target does not wait for our disk.
  if (ended)
    return { reached, ended, recorded: recorded.catch((error) => logPostponed(n, error, parts, signal)) }
  await recorded
  return { reached, ended, ...(wait !== undefined && { delay: wait }) }
}

/** An entry to send. */
interface Loaded {
  readonly entry: Entry
  /** Status of its forward to this target. */
  readonly before: Forward
  /** Number of attempts so far. */
  readonly earlier: number
}

/** Undefined when the entry no longer waits for the target, or is gone. @throws as {@link AttemptParts.owner} and the journal. */
async function load(n: number, { journal, route, owner }: AttemptParts): Promise<Loaded | undefined> {
  const [entry, forwards, attempts] = await Promise.all([
    journal.read(n),
    journal.forwards(n),
    journal.attempts(n),
    owner?.assert(),
  ])
  const before = forwards[route.id]
  if (!entry || before?.status !== 'waiting') return undefined
  const own = attempts.filter(({ target }) => target === route.id)
  return { entry, before, earlier: own.reduce((sum, { count }) => sum + count, 0) }
}

function stored({
  outcome,
  status,
  answer,
  headers,
  error,
}: DeliveryResult): Omit<DeliveryResult, 'retryAfter'> {
  return { outcome, status, answer, ...(headers && { headers }), error }
}

function isReached({ outcome }: DeliveryResult): boolean | undefined {
  if (outcome === 'killed') return undefined
  return outcome !== 'unreachable' && outcome !== 'timed out'
}

/**
 * Records an attempt, then notifies the observer. If recording fails (disk full), the recording is retried, not the attempt: the
 * target has the delivery. The journal recognizes the attempt if the failed recording was stored after all.
 * @throws when relay stops before that.
 */
async function record(event: AttemptEvent, parts: AttemptParts, signal: AbortSignal): Promise<void> {
  const { n, attempt, forward, route } = event
  const problem = `#${n} → ${route.label}: the attempt could not be recorded yet`
  await retryStorage(
    problem,
    () => parts.journal.record(n, attempt, forward, parts.owner?.fence),
    parts,
    signal,
  )
  parts.onAttempt?.(event)
}

/** Asking storage again costs little, and a whole queue waits for it. Milliseconds. */
const MAX_STORAGE_DELAY = 5000

/**
 * Repeats what storage fails to do, at growing intervals, so that forwarding resumes by itself.
 * @throws as `work` for any other failure, and once `signal` has aborted.
 */
async function retryStorage<T>(
  problem: string,
  work: () => Promise<T>,
  { log, time }: AttemptParts,
  signal: AbortSignal,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted || !isTemporary(error)) throw error
      if (failures === 1) log.error(problem, error)
      await delay(
        Math.min(probeDelay(failures, time.random, time.probe), MAX_STORAGE_DELAY),
        time.timer,
        signal,
      )
    }
  }
}

/** Whether storage failed in a way that may pass. */
function isTemporary(error: unknown): boolean {
  return error instanceof RelayError && error.kind === 'storage' && !isDamaged(error)
}
