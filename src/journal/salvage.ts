import type { Sql } from '../store/sql.js'
import { orElse } from './damage.js'
import type { Entry } from './delivery.js'
import { readEntry } from './entries.js'
import { edgesOf } from './numbers.js'

/** An entry that a damaged database has, or had; `entry` is undefined when it can no longer be read. */
export interface Salvaged {
  readonly n: number
  readonly entry: Entry | undefined
}

/** Every entry of a damaged database, oldest first. An entry without any readable row looks like one that was removed. */
export async function* salvage(sql: Sql): AsyncGenerator<Salvaged> {
  const { first, last } = await edgesOf(sql)
  for (let n = first; n <= last; n++) {
    const entry = await orElse(
      () => readEntry(sql, n),
      async () => undefined,
    )
    if (entry || (await hasTrace(sql, n))) yield { n, entry }
  }
}

/** Whether something belongs to that number, or may: what cannot be read is taken for it. */
async function hasTrace(sql: Sql, n: number): Promise<boolean> {
  for (const table of ['delivery', 'body', 'forward', 'attempt']) {
    const found = await orElse(
      async () => (await sql.query(`SELECT 1 FROM ${table} WHERE n = ? LIMIT 1`, [n])).length > 0,
      async () => true,
    )
    if (found) return true
  }
  return false
}
