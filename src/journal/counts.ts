import type { Sql } from '../store/sql.js'
import type { ForwardCounts, ForwardStatus } from './forward.js'

const NONE: ForwardCounts = { waiting: 0, succeeded: 0, failed: 0 }

/** The forwards of each target, by status. */
export async function countForwards(sql: Sql): Promise<ReadonlyMap<string, ForwardCounts>> {
  const rows = await sql.query<{ target: string; status: ForwardStatus; count: number }>(
    'SELECT target, status, count(*) AS count FROM forward GROUP BY target, status',
  )
  const counts = new Map<string, ForwardCounts>()
  for (const { target, status, count } of rows)
    counts.set(target, { ...(counts.get(target) ?? NONE), [status]: count })
  return counts
}
