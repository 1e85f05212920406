import type { Sql } from '../store/sql.js'
import type { ForwardCounts, ForwardStatus } from './forward.js'

const NO_FORWARDS: ForwardCounts = { waiting: 0, succeeded: 0, failed: 0 }

export async function countEntries(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ count: number }>('SELECT count(*) AS count FROM delivery')
  return row?.count ?? 0
}

/** The forwards of each target, by status. */
export async function countForwards(sql: Sql): Promise<ReadonlyMap<string, ForwardCounts>> {
  const rows = await sql.query<{ target: string; status: ForwardStatus; count: number }>(
    'SELECT target, status, count(*) AS count FROM forward GROUP BY target, status',
  )
  const counts = new Map<string, ForwardCounts>()
  for (const { target, status, count } of rows)
    counts.set(target, { ...(counts.get(target) ?? NO_FORWARDS), [status]: count })
  return counts
}
