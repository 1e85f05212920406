import type { Sql } from '../store/sql.js'

/** What waits for one target. */
export interface WaitingQueue {
  readonly waiting: number
  /** When the one that waits longest began to, in milliseconds. */
  readonly oldest: number
}

/** What waits for each target, by its id; nothing for a target for which nothing does. Reads the forwards that wait, and no others. */
export async function readQueues(sql: Sql): Promise<ReadonlyMap<string, WaitingQueue>> {
  const rows = await sql.query<WaitingQueue & { readonly target: string }>(
    `SELECT target, count(*) AS waiting, min(since) AS oldest FROM forward WHERE status = 'waiting' GROUP BY target`,
  )
  return new Map(rows.map(({ target, ...queue }) => [target, queue]))
}
