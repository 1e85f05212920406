import { type Cancellable, sleep } from '../base/abort.js'
import type { Sql, SqlRow, Step } from '../store/sql.js'

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
/** Between steps, in milliseconds, so that most of the time is left to intake. */
const PAUSE_MS = 2

/** A forward that waits keeps its entry, and the newest entry stays because the next gets its number from it. */
const REMOVABLE = `n < (SELECT max(n) FROM delivery)
  AND NOT EXISTS (SELECT 1 FROM forward WHERE forward.n = delivery.n AND forward.status = 'waiting')`

/** An entry that a step looks at. `removable`: 0 or 1. */
type Candidate = { readonly n: number; readonly size: number; readonly removable: number }

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
      const candidates = await sql.query<Candidate>(
        `SELECT n, size, ${REMOVABLE} AS removable FROM delivery WHERE n > ? AND n < ? ORDER BY n LIMIT ${STEP}`,
        [after, end],
      )
      const last = candidates[enough(candidates, bytes) - 1]
      if (!last) return
      const [rows = []] = await write([
        {
          sql: `DELETE FROM delivery WHERE n > ? AND n <= ? AND ${REMOVABLE} RETURNING n`,
          values: [after, last.n],
        },
      ])
      removed += rows.length
      after = last.n
      await sleep(PAUSE_MS, { signal }).catch(() => {})
    }
  }
  if (isStopped()) return 0
  await remove(await firstYoung(sql, now - keep, wall), () => Promise.resolve(Infinity))
  await remove(Number.MAX_SAFE_INTEGER, async () => (await sql.usedBytes()) - keepMax)
  return removed
}

/** How many of the entries to go through to remove so many bytes; all, when they have less. */
function enough(candidates: readonly Candidate[], bytes: number): number {
  let sum = 0
  const last = candidates.findIndex(({ size, removable }) => (sum += removable * size) >= bytes)
  return last === -1 ? candidates.length : last + 1
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
