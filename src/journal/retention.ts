import { type Cancellable, sleep } from '../base/abort.js'
import type { Database, TableWrite } from '../store/database.js'
import type { Decision } from '../store/engine.js'
import { dedupeKey } from './dedupe.js'
import type { Meta } from './meta.js'
import { attemptsOf } from './progress.js'
import { newestNumber, openTables, type Tables } from './tables.js'

export interface Retention {
  /** How long entries are kept, in milliseconds since they were received. */
  readonly keep: number
  /** What the journal's tables may take in storage, in bytes. */
  readonly keepMax: number
  /** The current instant, in milliseconds. */
  readonly now: number
}

/** Rows removed in one transaction: one or two milliseconds of the event loop. */
const STEP = 200
/** Between steps, in milliseconds: measured, the larger part of the time is then left to intake. */
const PAUSE = 5
/** Entries looked at in one transaction; each that is removed has four rows or more. */
const LOOK = STEP / 4

/**
 * Removes the oldest entries, with all that belongs to them, while they are older than `keep` or the journal is larger
 * than `keepMax`. Never one that waits for a target, and never the newest, from which the next gets its number. Between
 * steps others write; when `signal` aborts, it ends after the step under way. To be called by the instance alone.
 *
 * Size is what the database says its tables take, whole pages and all, so that no total has to be kept that could be
 * wrong; within a step the sizes of what is removed are subtracted.
 * @throws RelayError `storage`; what was removed stays so.
 */
export async function sweep(
  database: Database,
  { keep, keepMax, now, signal }: Retention & Cancellable,
): Promise<{ removed: number }> {
  const tables = openTables(database)
  let removed = 0
  const step = (from: number): Promise<Step> =>
    database.transact(() => sweepStep(tables, from, { keep, keepMax, now }))
  let next: number | undefined = 0
  while (next !== undefined) {
    if (signal?.aborted) break
    const done: Step = await step(next)
    removed += done.removed
    next = done.next
    if (next !== undefined) await sleep(PAUSE, { signal }).catch(() => {})
  }
  return { removed }
}

interface Step {
  readonly removed: number
  /** Where to go on; nowhere when there is no more to remove. */
  readonly next: number | undefined
}

function sweepStep(tables: Tables, from: number, { keep, keepMax, now }: Retention): Decision<Step> {
  const oldest = now - keep
  const writes: TableWrite[] = []
  let excess = bytesOf(tables) - keepMax
  let removed = 0
  const end = (next?: number): Decision<Step> => ({ result: { removed, next }, writes })
  const to = Math.max(0, newestNumber(tables) - 1)
  const rows = [...tables.metas.range({ from, to, limit: LOOK })]
  for (const { key: n, value: meta } of rows) {
    // The sizes subtracted are near the truth only, so what was enough by them is looked at again.
    const isYoung = meta.receivedAt >= oldest
    // One from the future, received when the clock was wrong, hides nothing behind it.
    if (isYoung && meta.receivedAt > now && excess <= 0) continue
    if (isYoung && excess <= 0) return end(removed > 0 ? n : undefined)
    if (tables.open.get(n)) continue
    const removal = remove(tables, n, meta, STEP - writes.length)
    if (!removal.whole && writes.length > 0) return end(n)
    writes.push(...removal.writes)
    if (!removal.whole) return end(n)
    excess -= removal.bytes
    removed++
  }
  const last = rows.at(-1)
  return end(rows.length === LOOK && last ? last.key + 1 : undefined)
}

interface Removal {
  readonly writes: readonly TableWrite[]
  readonly bytes: number
  /** False when only attempts are removed, as many as there is room for. */
  readonly whole: boolean
}

function remove(tables: Tables, n: number, meta: Meta, room: number): Removal {
  const { metas, bodies, numbers, repeats, handOns, attempts } = tables
  const tried = [...attempts.range({ ...attemptsOf(n), limit: room })]
  const key = dedupeKey(meta)
  const own = [
    metas.remove(n),
    bodies.remove(n),
    repeats.remove(n),
    handOns.remove(n),
    ...(numbers.get(key) === n ? [numbers.remove(key)] : []),
  ]
  const whole = tried.length + own.length <= room
  const writes = [...tried.map((row) => attempts.remove(row.key)), ...(whole ? own : [])]
  const answers = tried.reduce((sum, { value }) => sum + value.length, 0)
  return { writes, whole, bytes: meta.size + JSON.stringify(meta).length + answers }
}

function bytesOf(tables: Tables): number {
  return Object.values(tables).reduce((sum, table) => sum + table.bytes(), 0)
}
