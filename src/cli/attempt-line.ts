import type { AttemptEvent } from '../dispatch/hand-over.js'
import type { Attempt, HandOn } from '../journal/hand-on.js'
import { lineStart } from './delivery-line.js'
import { printable, type Paint } from './output.js'

/** `12:04:11  #7  push  octo/demo  → http://localhost:3000 202 38ms`, and what comes next if it did not succeed. */
export function attemptLine(
  { n, entry, route, attempt, handOn, retryAt }: AttemptEvent,
  paint: Paint,
): string {
  const start = lineStart(attempt.at, n, entry, paint)
  const next = nextWords(attempt, handOn, retryAt)
  const line = `${start}  → ${shortLabel(route.label)} ${attemptWords(attempt)}`
  return next === '' ? line : `${line}  ${handOn.state === 'failed' ? paint.red(next) : paint.yellow(next)}`
}

/** The same for a program. */
export function attemptObject(event: AttemptEvent): Record<string, unknown> {
  const { n, entry, route, attempt, handOn, retryAt } = event
  const { event: name, action, repo, number } = entry
  return {
    type: 'attempt',
    n,
    ...attemptFields(attempt, route.label),
    event: name,
    action,
    repo,
    number,
    state: handOn.state,
    reason: handOn.reason ?? null,
    retryAt: retryAt === undefined ? null : new Date(retryAt).toISOString(),
  }
}

/** What every object about an attempt tells. */
export function attemptFields(attempt: Attempt, label: string): Record<string, unknown> {
  const { at, outcome, status, ms, error } = attempt
  return { time: new Date(at).toISOString(), target: label, outcome, status, ms, error }
}

/** A target's label on a line: a command can be long. */
export function shortLabel(label: string): string {
  const shown = printable(label)
  return shown.length > LONGEST_LABEL ? `${shown.slice(0, LONGEST_LABEL - 1)}…` : shown
}

const LONGEST_LABEL = 40

/** `202 38ms`, `exit 1 20ms`, `unreachable 3ms`. */
export function attemptWords({ target, outcome, status, ms }: Attempt): string {
  const isCommand = /^[^=]*=exec:/.test(target)
  const result = status === null ? outcome : isCommand ? `exit ${status}` : String(status)
  return `${result} ${ms < 10_000 ? `${ms}ms` : `${(ms / 1000).toFixed(1)}s`}`
}

function nextWords({ at, ms, error }: Attempt, { state, reason }: HandOn, retryAt?: number): string {
  if (state === 'succeeded') return ''
  if (state === 'failed') return `failed: ${printable(reason ?? error ?? 'no reason is known')}`
  if (retryAt === undefined) return printable(error ?? 'waiting')
  return `again in ${Math.max(1, Math.round((retryAt - at - ms) / 1000))}s`
}
