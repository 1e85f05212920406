import type { Sql, SqlRow, Step } from '../store/sql.js'

/** A forward that waits keeps its entry, and the newest entry stays because the next gets its number from it. */
export const REMOVABLE = `n < (SELECT max(n) FROM delivery)
  AND NOT EXISTS (SELECT 1 FROM forward WHERE forward.n = delivery.n AND forward.status = 'waiting')`

/**
 * How long the id of a removed delivery is remembered, in milliseconds: 7 days, the longest period of a code host's delivery log
 * (GitHub Enterprise Server's; github.com has 3 days). Until then catching up does not ask for the delivery again.
 */
export const REMEMBER_MS = 7 * 86_400_000

/** Ids remembered at most: about 10 MB, so that they never fill the space of the journal itself. The oldest go first. */
const MAX_REMEMBERED = 100_000

/** Ids forgotten in one step. */
const STEP = 500

/** Remembers the removable deliveries with numbers above `after` and up to `last`; in the transaction that removes them. */
export function rememberStep(after: number, last: number, now: number): Step {
  return {
    sql: `INSERT INTO removed (n, delivery_id, expires_at)
      SELECT n, delivery_id, ? FROM delivery WHERE n > ? AND n <= ? AND ${REMOVABLE}
      ON CONFLICT (n) DO NOTHING`,
    values: [now + REMEMBER_MS, after, last],
  }
}

/** Forgets some of what has expired or is too much. False when there is nothing left to forget. */
export async function forget(
  sql: Sql,
  now: number,
  write: (steps: readonly Step[]) => Promise<readonly (readonly SqlRow[])[]>,
): Promise<boolean> {
  const numbers = await sql.query<{ n: number }>(
    `SELECT n FROM removed WHERE expires_at <= ? OR n <= (SELECT max(n) FROM removed) - ${MAX_REMEMBERED} LIMIT ${STEP}`,
    [now],
  )
  if (numbers.length === 0) return false
  await write(numbers.map(({ n }) => ({ sql: 'DELETE FROM removed WHERE n = ?', values: [n] })))
  return numbers.length === STEP
}

/** SQLite takes at least 999 values in one query. */
const MAX_VALUES = 400

/** Those of the ids whose delivery the journal has, or had and removed in the last 7 days. */
export async function knownIds(
  sql: Pick<Sql, 'query'>,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const known = new Set<string>()
  for (let from = 0; from < ids.length; from += MAX_VALUES) {
    const some = ids.slice(from, from + MAX_VALUES)
    const places = some.map(() => '?').join(', ')
    const rows = await sql.query<{ id: string }>(
      `SELECT delivery_id AS id FROM delivery WHERE delivery_id IN (${places})
        UNION SELECT delivery_id AS id FROM removed WHERE delivery_id IN (${places})`,
      [...some, ...some],
    )
    for (const { id } of rows) known.add(id)
  }
  return known
}
