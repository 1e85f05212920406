import type { Step } from '../store/sql.js'
import { MAX_START } from '../base/start-of.js'
import { type Attempt, type Forward, MAX_ERROR } from './forward.js'

/** Rows of attempts an entry may have: the power of two above what a target that is down for 24 h makes of one, probed once a minute. */
const MAX_ATTEMPTS = 4096

const LAST = '(SELECT max(seq) FROM attempt WHERE n = ? AND target = ?)'

/**
 * The steps that record an attempt and the forward's new status; nothing for an entry that is gone. To record the same attempt
 * again changes nothing, so that a caller who does not know whether a write succeeded may repeat it.
 */
export function recordSteps(n: number, attempt: Attempt, forward: Forward): readonly Step[] {
  const { target, at, outcome, status, ms, count } = attempt
  const answer = attempt.answer.subarray(0, MAX_START)
  const headers = attempt.headers ? JSON.stringify(attempt.headers) : null
  const error = attempt.error?.slice(0, MAX_ERROR) ?? null
  return [
    {
      sql: `UPDATE attempt SET count = count + ?, at = ?, ms = ?, answer = ?
        WHERE n = ? AND seq = ${LAST} AND at <> ? AND outcome = ? AND error IS NOT DISTINCT FROM ?
        AND outcome IN ('unreachable', 'timed out')`,
      values: [count, at, ms, answer, n, n, target, at, outcome, error],
    },
    {
      sql: `INSERT INTO attempt (n, seq, target, at, outcome, status, ms, answer, error, count, headers)
        SELECT n, (SELECT CASE WHEN max(seq) >= ${MAX_ATTEMPTS} THEN ${MAX_ATTEMPTS} ELSE coalesce(max(seq), 0) + 1 END
          FROM attempt WHERE n = delivery.n), ?, ?, ?, ?, ?, ?, ?, ?, ?
        FROM delivery WHERE n = ?
        AND NOT EXISTS (SELECT 1 FROM attempt WHERE n = ? AND seq = ${LAST} AND at = ? AND outcome = ?)
        ON CONFLICT (n, seq) DO UPDATE SET target = excluded.target, at = excluded.at, outcome = excluded.outcome,
          status = excluded.status, ms = excluded.ms, answer = excluded.answer, error = excluded.error, count = excluded.count, headers = excluded.headers`,
      values: [target, at, outcome, status, ms, answer, error, count, headers, n, n, n, target, at, outcome],
    },
    forwardStep(n, target, forward),
  ]
}

export function forwardStep(n: number, target: string, { status, tries, since, reason }: Forward): Step {
  return {
    sql: 'UPDATE forward SET status = ?, tries = ?, since = ?, reason = ? WHERE n = ? AND target = ?',
    values: [status, tries, since, reason ?? null, n, target],
  }
}
