import { isUtf8 } from 'node:buffer'
import type { Entry, Summary } from '../../journal/delivery.js'
import { toFixture } from '../../journal/fixture.js'
import type { Attempt } from '../../journal/hand-on.js'
import { attemptFields } from '../attempt-line.js'
import { deliveryFields } from '../delivery-line.js'
import { readPayload } from './payload.js'
import type { TargetProgress } from './progress.js'

/** An entry for a program, on a line of its own. */
export function summaryObject(
  summary: Omit<Summary, 'handOns'>,
  progress: readonly TargetProgress[],
): Record<string, unknown> {
  const { n, duplicates, size } = summary
  return {
    type: 'delivery',
    n,
    ...deliveryFields(summary),
    duplicates,
    size,
    targets: progress.map(targetFields),
  }
}

/** All that is known of an entry, for a program. */
export function entryObject(entry: Entry, progress: readonly TargetProgress[]): Record<string, unknown> {
  const { hookId, headers, body } = entry
  const { body: text, bodyBase64 } = toFixture(entry)
  return {
    ...summaryObject({ ...entry, size: body.byteLength }, progress),
    hook: hookId === '' ? null : hookId,
    headers: headers.map(([name, value]) => ({ name, value })),
    ...(text === undefined ? { bodyBase64 } : { body: text }),
    payload: readPayload(entry)?.value ?? null,
    attempts: progress
      .flatMap(({ label, attempts }) => attempts.map((attempt) => ({ label, attempt })))
      .toSorted((one, other) => one.attempt.at - other.attempt.at)
      .map(({ label, attempt }) => attemptObject(attempt, label)),
  }
}

function targetFields({ label, handOn, attempts }: TargetProgress): Record<string, unknown> {
  const { state, since, reason = null } = handOn
  const { outcome = null, status = null, ms = null } = attempts.at(-1) ?? {}
  const tried = attempts.reduce((sum, { count }) => sum + count, 0)
  return {
    target: label,
    state,
    reason,
    since: new Date(since).toISOString(),
    attempts: tried,
    outcome,
    status,
    ms,
  }
}

function attemptObject(attempt: Attempt, label: string): Record<string, unknown> {
  const { count, answer } = attempt
  const bytes = Buffer.from(answer)
  const told = isUtf8(bytes) ? { answer: bytes.toString() } : { answerBase64: bytes.toString('base64') }
  return { ...attemptFields(attempt, label), count, ...told }
}
