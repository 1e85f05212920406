import type { Log } from '../base/log.js'
import type { Entry } from '../journal/delivery.js'
import type { Attempt, HandOn } from '../journal/hand-on.js'
import type { Journal } from '../journal/journal.js'
import { probeDelay } from '../base/backoff.js'
import { retryDelay } from './backoff.js'
import { standAfter } from './policy.js'
import type { Step, Try } from './queue.js'
import { rest, type Time } from './rests.js'
import type { Route } from './route.js'
import type { OpenTarget, Result } from './target.js'

/** One attempt, for those who watch. */
export interface AttemptEvent {
  readonly n: number
  readonly entry: Omit<Entry, 'body'>
  readonly route: Route
  readonly attempt: Attempt
  /** Where the hand-on stands now. */
  readonly handOn: HandOn
  /** When it is tried again, if the target asked for that. Milliseconds. */
  readonly retryAt?: number
}

export interface HandOverParts {
  readonly journal: Pick<Journal, 'read' | 'handOns' | 'attempts' | 'record'>
  readonly route: Route
  readonly target: OpenTarget
  readonly time: Time
  readonly log: Log
  readonly onAttempt?: ((event: AttemptEvent) => void) | undefined
}

/** Nothing was sent, and there is nothing to send. */
const NOTHING: Step = { reached: undefined, ended: true }

/**
 * Hands one entry to one target and records what came of it. Where an attempt cannot be made or told of at all, the entry is
 * left as the journal has it, waiting, until the next start: one that cannot be read must not hold up all behind it.
 */
export function createHandOver(parts: HandOverParts): Try {
  const { route, log } = parts
  return async (n, signal) => {
    try {
      return await handOver(n, parts, signal)
    } catch (error) {
      if (!signal.aborted) log.error(`#${n} → ${route.label}: put off until the next start`, error)
      return NOTHING
    }
  }
}

async function handOver(n: number, parts: HandOverParts, signal: AbortSignal): Promise<Step> {
  const { journal, route, target, time, onAttempt } = parts
  const entry = journal.read(n)
  const before = journal.handOns(n)[route.id]
  if (!entry || before?.state !== 'waiting') return NOTHING
  const at = time.clock()
  const result = await target.deliver(entry, 1 + timesTried(parts, n), { signal })
  const now = time.clock()
  const attempt = { at, target: route.id, ms: Math.max(0, now - at), count: 1, ...kept(result) }
  const handOn = standAfter(before, result, now)
  const ended = handOn.state !== 'waiting'
  const again = !ended && result.outcome === 'retry'
  const delay = again ? retryDelay(handOn.tries, result.retryAfter, time.random) : undefined
  // Not the body, which need not wait for the disk.
  const { body: _, ...summary } = entry
  const tell = (): void =>
    onAttempt?.({
      n,
      entry: summary,
      route,
      attempt,
      handOn,
      ...(delay !== undefined && { retryAt: now + delay }),
    })
  const recorded = record(n, attempt, handOn, parts, signal)
  const reached = isReached(result)
  // The target need not wait for our disk.
  if (ended) return { reached, ended, recorded: recorded.then((isRecorded) => void (isRecorded && tell())) }
  if (!(await recorded)) return NOTHING
  tell()
  return { reached, ended, ...(delay !== undefined && { rest: delay }) }
}

function timesTried({ journal, route }: HandOverParts, n: number): number {
  const earlier = journal.attempts(n).filter(({ target }) => target === route.id)
  return earlier.reduce((sum, { count }) => sum + count, 0)
}

function kept({ outcome, status, answer, error }: Result): Omit<Result, 'retryAfter'> {
  return { outcome, status, answer, error }
}

function isReached({ outcome }: Result): boolean | undefined {
  if (outcome === 'killed') return undefined
  return outcome !== 'unreachable' && outcome !== 'timed out'
}

/**
 * An attempt that cannot be written down (the disk is full) is not made again but tried to be written down again: the target
 * has had the delivery. False when relay stops before that.
 */
async function record(
  n: number,
  attempt: Attempt,
  handOn: HandOn,
  { journal, route, log, time }: HandOverParts,
  signal: AbortSignal,
): Promise<boolean> {
  for (let failures = 1; ; failures++) {
    try {
      await journal.record(n, attempt, handOn)
      return true
    } catch (error) {
      if (signal.aborted) return false
      if (failures === 1) log.error(`#${n} → ${route.label}: the attempt could not be recorded yet`, error)
      await rest(probeDelay(failures, time.random), time.timer, signal)
    }
  }
}
