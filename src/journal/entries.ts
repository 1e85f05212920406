import type { Sql } from '../store/sql.js'
import type { Entry, Summary } from './delivery.js'
import { marksFor } from './marks.js'
import { type ForwardRow, toBody, toDelivery, toForwardRow } from './rows.js'

/** The deliveries of these entries, at most a chunk of them. @throws RelayError `storage` for one that is damaged. */
export async function readDeliveries(
  sql: Sql,
  numbers: readonly number[],
): Promise<readonly Omit<Summary, 'forwards'>[]> {
  const { marks, values } = marksFor(numbers)
  const rows = await sql.query(`SELECT * FROM delivery WHERE n IN ${marks}`, values)
  return rows.map(toDelivery)
}

/** The forwards of these entries, at most a chunk of them. @throws RelayError `storage` for one that is damaged. */
export async function readForwards(sql: Sql, numbers: readonly number[]): Promise<readonly ForwardRow[]> {
  const { marks, values } = marksFor(numbers)
  const sorted = `SELECT * FROM forward WHERE n IN ${marks} ORDER BY n, position, target`
  return (await sql.query(sorted, values)).map(toForwardRow)
}

/** @throws RelayError `storage` for one that is damaged. */
export async function readEntry(sql: Sql, n: number): Promise<Entry | undefined> {
  const [found] = await readDeliveries(sql, [n])
  if (!found) return undefined
  const [row] = await sql.query('SELECT bytes FROM body WHERE n = ?', [n])
  if (!row) return undefined
  const { size: _, ...delivery } = found
  return { ...delivery, body: toBody(row['bytes'], found) }
}
