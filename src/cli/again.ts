import { RelayError } from '../base/errors.js'
import { TIME_LIMITS } from '../base/seams.js'
import { formatDuration, systemClock } from '../base/time.js'
import { type NamedTarget, shortNames } from '../dispatch/routes.js'
import { isSentAgain } from '../dispatch/target.js'
import { waitText } from '../dispatch/waiting.js'
import type { Journal } from '../journal/journal.js'
import type { Attempt, Forward } from '../journal/types.js'
import type { SendResult } from '../replay/send.js'
import type { Again, AgainOptions } from '../events/status.js'
import type { Shell } from './command.js'
import { wakeups } from './follow.js'
import { callInstance } from './instance-client.js'
import { namedTargets } from './journal.js'
import { progressOf, type TargetProgress } from './output/deliveries.js'
import type { Profile } from './profile.js'

/** Outcome of an entry at one target. */
export interface AgainResult {
  /** The target, with its short name. Undefined if no route takes the entry. */
  readonly target?: NamedTarget & { readonly name: string }
  readonly answer: SendResult
  /** True if the target has it, or if nothing is left to be sent. */
  readonly hasArrived: boolean
  /** The forward after the attempt. Undefined without a target. */
  readonly forward?: Forward
  /** Next step for the entry at a target that does not have it, for a person. */
  readonly follows?: string | undefined
}

/** Time to wait for a target, as in `relay wait`. Milliseconds. */
const LIMIT_MS = 300_000

/**
 * Forwards an entry of the journal again at once, as the inspector does, and yields the result at each target:
 * the first attempt, or, with `isFinal`, the last one. Yields nothing if the instance has no route at all.
 * @throws RelayError `timed_out` if a target takes over five minutes; as `callInstance`
 */
export async function* forwardEntry(
  shell: Shell,
  profile: Profile,
  n: number,
  { which, isFinal }: { readonly which: AgainOptions['which']; readonly isFinal: boolean },
): AsyncGenerator<AgainResult> {
  const { instance } = profile
  if (!instance) return
  const again = await callInstance(instance, 'forward again', { id: n, which }, shell)
  if (again.targets.length === 0) {
    if (again.hasRoutes) yield nowhere(which)
    return
  }
  const names = shortNames(namedTargets(profile))
  using _ = sayLate(shell, n, again)
  for (const progress of await awaitResults(shell, profile, n, again, isFinal)) {
    const { id } = progress
    const name = names.get(id) ?? shortNames([{ id }]).get(id) ?? id
    const { forward } = progress
    const follows = isFinal ? undefined : whatFollows(shell, profile, { n, name }, forward)
    yield { target: { id, name }, forward, follows, ...resultOf(progress, again.since) }
  }
}

/**
 * Formats the next step for an entry at a target that does not have it: `#7 → app is tried again in 4s, at most 3 times; relay skip 7 ends
 * that`. Undefined if the target has it.
 */
function whatFollows(
  { seams }: Shell,
  { command }: Profile,
  what: { readonly n: number; readonly name: string },
  { status, due, tries }: Forward,
): string | undefined {
  if (status === 'succeeded') return undefined
  const subject = `#${what.n} → ${what.name}`
  if (status === 'failed') return `${subject} has failed, and is not tried again by itself`
  const end = `${command(`skip ${what.n}`)} ends that`
  if (due === undefined) return `${subject} waits until there is a connection; ${end}`
  const { retries } = { ...TIME_LIMITS, ...seams?.limits }
  const left = Math.max(1, retries.length + 1 - tries)
  const times = left === 1 ? 'for the last time' : `at most ${left} times`
  const when = waitText({ text: 'tried again', nextTryAt: due }, (seams?.clock ?? systemClock)())
  return `${subject} is ${when}, ${times}; ${end}`
}

/** Result without a target: nothing is left to be sent again, or no route takes the delivery. */
function nowhere(which: AgainOptions['which']): AgainResult {
  const hasArrived = which === 'failed'
  const error = hasArrived ? null : 'no route takes it'
  return { answer: { status: null, error, ms: 0, body: new Uint8Array() }, hasArrived }
}

/** Says on a terminal, after some seconds without a result, how long an attempt takes at most. */
function sayLate({ out, seams }: Shell, n: number, { timeLimit }: Again): Disposable {
  const atMost = timeLimit === null ? 'has no time limit' : `takes up to ${formatDuration(timeLimit)}`
  const say = (): void => out.count(`#${n} is not answered yet; an attempt ${atMost}`)
  const timer = setTimeout(say, seams?.limits?.slow ?? TIME_LIMITS.slow)
  return {
    [Symbol.dispose]() {
      clearTimeout(timer)
      out.count()
    },
  }
}

async function awaitResults(
  shell: Shell,
  profile: Profile,
  n: number,
  { targets, since }: Again,
  isFinal: boolean,
): Promise<readonly TargetProgress[]> {
  const journal: Journal = await profile.journal()
  const isEnded = ({ forward, attempts }: TargetProgress): boolean =>
    forward.status !== 'waiting' || (!isFinal && lastSince(attempts, since) !== undefined)
  for await (const _ of wakeups(shell, profile, { limit: LIMIT_MS })) {
    const [summary] = await journal.summaries([n])
    if (!summary) throw new RelayError('no_match', `#${n} was removed meanwhile`)
    const all = await progressOf(journal, summary)
    const wanted = all.filter(({ id }) => targets.includes(id))
    if (wanted.every(isEnded)) return wanted
  }
  throw new RelayError('timed_out', `#${n} was received, but not forwarded within 5m`)
}

/** The last attempt since an instant, unless another one follows at once. */
function lastSince(attempts: readonly Attempt[], since: number): Attempt | undefined {
  const last = attempts.at(-1)
  return last && last.at >= since && !isSentAgain(last) ? last : undefined
}

function resultOf(
  { forward, attempts }: TargetProgress,
  since: number,
): Pick<AgainResult, 'answer' | 'hasArrived'> {
  // An attempt that was under way may have succeeded.
  const last = lastSince(attempts, since) ?? (forward.status === 'succeeded' ? attempts.at(-1) : undefined)
  const reason = forward.status === 'succeeded' ? null : (forward.reason ?? null)
  return {
    answer: {
      status: last?.status ?? null,
      error: last ? last.error : reason,
      ms: last?.ms ?? 0,
      body: last?.answer ?? new Uint8Array(),
    },
    hasArrived: last ? last.outcome === 'succeeded' : forward.status === 'succeeded',
  }
}
