import type { AttemptEvent } from '../../dispatch/dispatcher.js'
import { formatStatus } from '../../dispatch/routes.js'
import type { Attempt } from '../../journal/types.js'

/** An attempt for a program. */
export function attemptObject(event: AttemptEvent): Record<string, unknown> {
  const { n, entry, route, attempt, forward, retryAt } = event
  const { event: name, action, repo, number, ref = null } = entry
  return {
    type: 'attempt',
    n,
    ...attemptFields(attempt, route.label),
    event: name,
    action,
    repo,
    number,
    ref,
    state: forward.status,
    reason: forward.reason ?? null,
    retryAt: retryAt === undefined ? null : new Date(retryAt).toISOString(),
  }
}

/** The fields of every object about an attempt. */
export function attemptFields(attempt: Attempt, label: string): Record<string, unknown> {
  const { at, outcome, status, ms, error } = attempt
  return { time: new Date(at).toISOString(), target: label, outcome, status, ms, error }
}

/** `202 38ms`, `exit 1 20ms`, `unreachable 3ms`. */
export function describeAttempt(attempt: Attempt): string {
  return `${describeResult(attempt)} ${shortTime(attempt.ms)}`
}

/** `202`, `exit 1`, `unreachable` */
export function describeResult({ target, outcome, status }: Attempt): string {
  return status === null ? outcome : formatStatus(target, status)
}

/** `38ms`, `1.2s` */
export function shortTime(ms: number): string {
  return ms < 1000 ? `${ms}ms` : `${(ms / 1000).toFixed(1)}s`
}
