import { isUtf8 } from 'node:buffer'
import type { Entry, Summary } from '../../journal/types.js'
import { toFixture } from '../../fixtures/fixture.js'
import type { Attempt } from '../../journal/types.js'
import { attemptFields } from '../output/attempt-line.js'
import { deliveryFields } from '../output/delivery-line.js'
import { readPayload } from '../../journal/payload.js'
import type { TargetProgress } from './progress.js'

/** An entry for a program, without headers and body. */
export function summaryObject(
  summary: Omit<Summary, 'forwards'>,
  progress: readonly TargetProgress[],
): Record<string, unknown> {
  const { n, duplicates, size, ignoredBy = null } = summary
  return {
    type: 'delivery',
    n,
    ...deliveryFields(summary),
    duplicates,
    size,
    ignoredBy,
    targets: progress.map(targetFields),
  }
}

/** An entry for a program, with headers, body and attempts. */
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

function targetFields({ label, forward, attempts }: TargetProgress): Record<string, unknown> {
  const { status: state, since, reason = null } = forward
  const { outcome = null, status = null, ms = null } = attempts.at(-1) ?? {}
  const count = attempts.reduce((sum, attempt) => sum + attempt.count, 0)
  return {
    target: label,
    state,
    reason,
    since: new Date(since).toISOString(),
    attempts: count,
    outcome,
    status,
    ms,
  }
}

function attemptObject(attempt: Attempt, label: string): Record<string, unknown> {
  const { count, answer } = attempt
  const bytes = Buffer.from(answer)
  const content = isUtf8(bytes) ? { answer: bytes.toString() } : { answerBase64: bytes.toString('base64') }
  return { ...attemptFields(attempt, label), count, ...content }
}
