import { printable } from '../../base/printable.js'
import type { AttemptEvent } from '../../dispatch/attempt.js'
import type { Attempt, Forward } from '../../journal/forward.js'
import { lineStart } from './delivery-line.js'
import { type Line, red, yellow } from './line.js'

/** `12:04:11  #7  push  octo/demo  → http://localhost:3000 202 38ms`, and what follows if the attempt did not succeed. */
export function attemptLine({ n, entry, route, attempt, forward, retryAt }: AttemptEvent): Line {
  const start = lineStart(attempt.at, n, entry)
  const line = [start, `  → ${shortLabel(route.label)} ${describeAttempt(attempt)}`]
  if (forward.status === 'succeeded') return line
  const next = describeNext(attempt, forward, retryAt)
  return [...line, '  ', forward.status === 'failed' ? red(next) : yellow(next)]
}

/** The same for a program. */
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

/** A target's label, shortened to fit a line: a command can be long. */
export function shortLabel(label: string): string {
  const escaped = printable(label)
  return escaped.length > MAX_LABEL ? `${escaped.slice(0, MAX_LABEL - 1)}…` : escaped
}

const MAX_LABEL = 40

/** `202 38ms`, `exit 1 20ms`, `unreachable 3ms`. */
export function describeAttempt({ target, outcome, status, ms }: Attempt): string {
  const isCommand = /^[^=]*=exec:/.test(target)
  const result = status === null ? outcome : isCommand ? `exit ${status}` : String(status)
  return `${result} ${ms < 10_000 ? `${ms}ms` : `${(ms / 1000).toFixed(1)}s`}`
}

function describeNext(
  { at, ms, error }: Attempt,
  { status: state, reason }: Forward,
  retryAt?: number,
): string {
  if (state === 'failed') return `failed: ${reason ?? error ?? 'no reason is known'}`
  if (retryAt === undefined) return error ?? 'waiting'
  return `again in ${Math.max(1, Math.round((retryAt - at - ms) / 1000))}s`
}
