import { type Cancellable, sleep } from '../base/abort.js'
import type { Sql, SqlRow, Step } from '../store/sql.js'
import { forget, REMOVABLE, rememberStep } from './removed.js'

export interface Retention extends Cancellable {
  /** How long entries are kept, in milliseconds since they were received. */
  readonly keep: number
  /** What the database may take in storage, in bytes. */
  readonly keepMax: number
  /** The current instant by the clock that ages go by, in milliseconds. */
  readonly now: number
  /** The current instant by the wall clock, in milliseconds. Default: `now`. */
  readonly wall?: number
}

/** Entries looked at, and at most removed, in one step: some milliseconds, which a delivery may have to wait for. */
const STEP = 500
/**
 * Between steps, in milliseconds, so that most of the time is left to intake: 20,000 entries a second are still removed. With
 * 2 ms, a step usually removed only the few entries that had arrived since the last one (a fifth more processor time).
 */
const PAUSE_MS = 20

/** The last of the entries that a step goes through: enough to remove so many bytes, or all that it looks at. */
const LAST_OF_STEP = `SELECT max(n) AS last FROM (
  SELECT n, sum(bytes) OVER (ORDER BY n) - bytes AS before FROM (
    SELECT n, CASE WHEN ${REMOVABLE} THEN size ELSE 0 END AS bytes FROM delivery
    WHERE n > ? AND n < ? ORDER BY n LIMIT ${STEP}
  ) AS candidate
) AS step WHERE before < ?`

/**
 * Removes the oldest entries, with all that belongs to them, while they are older than `keep` or the database is larger than
 * `keepMax`. When `signal` aborts, it ends after the step under way. `write` writes a transaction.
 * @throws RelayError `storage`; what was removed stays removed.
 */
export async function sweep(
  sql: Sql,
  { keep, keepMax, now, wall = now, signal }: Retention,
  write: (steps: readonly Step[]) => Promise<readonly (readonly SqlRow[])[]>,
): Promise<number> {
  const isStopped = (): boolean => signal?.aborted === true
  let removed = 0
  /** Removes entries with numbers above `after` and below `end`, oldest first, until `excess` gives 0 or less. */
  const remove = async (end: number, excess: () => Promise<number>): Promise<void> => {
    for (let after = 0; !isStopped();) {
      const bytes = await excess()
      if (bytes <= 0) return
      const [step] = await sql.query<{ last: number | null }>(LAST_OF_STEP, [after, end, bytes])
      const last = step?.last
      if (!last) return
      const rows = await write([
        rememberStep(after, last, wall),
        {
          sql: `DELETE FROM delivery WHERE n > ? AND n <= ? AND ${REMOVABLE} RETURNING n`,
          values: [after, last],
        },
      ])
      removed += rows.at(-1)?.length ?? 0
      after = last
      await sleep(PAUSE_MS, { signal }).catch(() => {})
    }
  }
  if (isStopped()) return 0
  await remove(await firstYoung(sql, Math.max(0, now - keep), wall), () => Promise.resolve(Infinity))
  await remove(Number.MAX_SAFE_INTEGER, async () => (await sql.usedBytes()) - keepMax)
  while (!isStopped() && (await forget(sql, wall, write))) await sleep(PAUSE_MS, { signal }).catch(() => {})
  return removed
}

/**
 * The number of the first entry that is young; those before it are old. One from the future, received when the clock was wrong,
 * says nothing about those around it.
 */
async function firstYoung(sql: Sql, oldest: number, wall: number): Promise<number> {
  // First, because an entry that comes after the next query is not old.
  const [newest] = await sql.query<{ n: number | null }>('SELECT max(n) AS n FROM delivery')
  // In the order of the numbers: usually the first one is young. The sign keeps SQLite from using the index on the time.
  const [row] = await sql.query<{ n: number }>(
    'SELECT n FROM delivery WHERE +received_at BETWEEN ? AND ? ORDER BY n LIMIT 1',
    [oldest, wall],
  )
  return row?.n ?? newest?.n ?? 0
}
