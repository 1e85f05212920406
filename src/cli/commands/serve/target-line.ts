import type { TargetStatus } from '../../../dispatch/dispatcher.js'
import { shortLabel } from '../../output/attempt-line.js'
import { dim, green, type Line, red, yellow } from '../../output/line.js'
import { timeOfDay } from '../../output/output.js'

/** `12:04:11  http://localhost:3000 is down: 3 waiting, next try in 2s`, for a change of a target's state at `now`. */
export function targetLine({ label, state, queued, nextProbeAt }: TargetStatus, now: number): Line {
  const start = [dim(timeOfDay(now)), `  ${shortLabel(label)} `]
  if (state === 'up') return [...start, green('is back'), `: ${queued} waiting`]
  if (state === 'gone')
    return [...start, yellow('is no longer configured'), `: ${queued} waiting, 24 h at most`]
  const seconds = nextProbeAt === undefined ? undefined : Math.max(1, Math.round((nextProbeAt - now) / 1000))
  const next = seconds === undefined ? '' : `, next try in ${seconds}s`
  return [...start, red('is down'), `: ${queued} waiting${next}`]
}

/** The same for a program. */
export function targetObject(status: TargetStatus): Record<string, unknown> {
  const { label, state, queued, since, nextProbeAt } = status
  const time = (at: number | undefined): string | null =>
    at === undefined ? null : new Date(at).toISOString()
  return { type: 'target', target: label, state, queued, since: time(since), nextTryAt: time(nextProbeAt) }
}
