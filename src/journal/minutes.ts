import type { Sql } from '../store/sql.js'
import type { Minute } from './journal.js'

const MINUTE_MS = 60_000

/**
 * The deliveries of a span of time by minute. Each minute is counted by a query of its own, over the index of the times: the
 * busiest takes some milliseconds, and intake does not wait for the others.
 */
export async function minutesOf(sql: Sql, from: number, until: number): Promise<readonly Minute[]> {
  const failed = await failedOf(sql, from, until)
  const found: Minute[] = []
  for (let minute = Math.floor(from / MINUTE_MS); minute * MINUTE_MS < until; minute++) {
    const [row] = await sql.query<{ received: number }>(
      'SELECT count(*) AS received FROM delivery WHERE received_at >= ? AND received_at < ?',
      [minute * MINUTE_MS, (minute + 1) * MINUTE_MS],
    )
    const received = row?.received ?? 0
    if (received > 0) found.push({ minute, received, failed: failed.get(minute) ?? 0 })
  }
  return found
}

/** Entries looked up at once among those that failed. */
const MAX_FAILED = 10_000

/** Forwards that failed are few, and have an index: of more than {@link MAX_FAILED} entries the newest count. */
async function failedOf(sql: Sql, from: number, until: number): Promise<ReadonlyMap<number, number>> {
  const rows = await sql.query<{ minute: number; count: number }>(
    `SELECT received_at / ${MINUTE_MS} AS minute, count(*) AS count FROM delivery
      JOIN (SELECT DISTINCT n FROM forward WHERE status = 'failed' ORDER BY n DESC LIMIT ${MAX_FAILED}) AS broken
      ON broken.n = delivery.n WHERE received_at >= ? AND received_at < ? GROUP BY 1`,
    [from, until],
  )
  return new Map(rows.map(({ minute, count }) => [minute, count]))
}
