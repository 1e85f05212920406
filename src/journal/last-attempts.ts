import type { Sql } from '../store/sql.js'
import type { LastAttempt } from './journal.js'
import { inMarks } from './marks.js'

/** The last attempt of each entry at each of its targets, without the answers, which take most of the room. */
export async function lastAttempts(sql: Sql, numbers: readonly number[]): Promise<readonly LastAttempt[]> {
  const last = new Map<string, LastAttempt>()
  for (const { marks, values } of inMarks(numbers)) {
    const rows = await sql.query<LastAttempt>(
      `SELECT n, target, status, ms FROM attempt WHERE n IN ${marks} ORDER BY n, seq`,
      values,
    )
    for (const row of rows) last.set(`${row.n} ${row.target}`, row)
  }
  return [...last.values()]
}
