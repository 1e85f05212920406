import { RelayError } from '../base/errors.js'
import { type NamedTarget, shortNames } from '../dispatch/routes.js'
import { SENT_AGAIN } from '../dispatch/target.js'
import type { Journal } from '../journal/journal.js'
import type { Attempt } from '../journal/types.js'
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
}

/** Time to wait for a target, as in `relay wait`. Milliseconds. */
const LIMIT_MS = 300_000

/**
 * Forwards an entry of the journal again at once, as the inspector does, and yields what becomes of it at each target:
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
  for (const progress of await awaitResults(shell, profile, n, again, isFinal)) {
    const { id } = progress
    const name = names.get(id) ?? shortNames([{ id }]).get(id) ?? id
    yield { target: { id, name }, ...resultOf(progress, again.since) }
  }
}

/** Result without a target: nothing is left to be sent again, or no route takes the delivery. */
function nowhere(which: AgainOptions['which']): AgainResult {
  const hasArrived = which === 'failed'
  const error = hasArrived ? null : 'no route takes it'
  return { answer: { status: null, error, ms: 0, body: new Uint8Array() }, hasArrived }
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
  return last && last.at >= since && last.error?.endsWith(SENT_AGAIN) !== true ? last : undefined
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
