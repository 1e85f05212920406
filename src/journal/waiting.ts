import type { Sql } from '../store/sql.js'
import { orElse, type ReadChunks } from './damage.js'
import { readForwards } from './entries.js'
import type { WaitingFilter, WaitingForward } from './journal.js'
import { edgesOf, falling, range } from './numbers.js'
import { type ForwardRow, toForward, toForwardRow } from './rows.js'

/** Forwards read at once: some milliseconds, and bounded memory. */
const PAGE = 256

/** A forward's place in the order of all. */
type Place = Pick<ForwardRow, 'n' | 'position' | 'target'>

/** The forwards that wait, in order: from an index, and from where that is damaged on, entry by entry. */
export async function* waitingForwards(
  sql: Sql,
  inChunks: ReadChunks,
  { target, after = 0 }: WaitingFilter = {},
): AsyncGenerator<WaitingForward> {
  // Behind all of that entry.
  let last: Place = { n: after, position: Number.MAX_SAFE_INTEGER, target: '' }
  for (;;) {
    const rows = await orElse(
      () => pageAfter(sql, last, target),
      async () => undefined,
    )
    if (!rows) break
    yield* rows.map(toWaiting)
    if (rows.length < PAGE) return
    last = rows.at(-1) ?? last
  }
  for await (const row of forwardsAfter(last, sql, inChunks))
    if (row.status === 'waiting' && (target === undefined || row.target === target)) yield toWaiting(row)
}

async function pageAfter(
  sql: Sql,
  { n, position, target }: Place,
  only: string | undefined,
): Promise<readonly ForwardRow[]> {
  const rows = await sql.query(
    `SELECT * FROM forward WHERE status = 'waiting' AND (n, position, target) > (?, ?, ?)
      ${only === undefined ? '' : 'AND target = ?'} ORDER BY n, position, target LIMIT ${PAGE}`,
    [n, position, target, ...(only === undefined ? [] : [only])],
  )
  const checked = rows.map(toForwardRow)
  falling([...new Set(checked.map((row) => row.n))].toReversed(), n - 1, Infinity)
  return checked
}

/** All forwards after this one that can be read. */
async function* forwardsAfter(
  { n, position }: Place,
  sql: Sql,
  inChunks: ReadChunks,
): AsyncGenerator<ForwardRow> {
  const { first, last } = await edgesOf(sql)
  for (let from = Math.max(n, first); from <= last; from += PAGE) {
    for (const row of await inChunks(range(from, Math.min(from + PAGE - 1, last)), readForwards))
      if (row.n > n || row.position > position) yield row
  }
}

function toWaiting(row: ForwardRow): WaitingForward {
  return { n: row.n, target: row.target, forward: toForward(row) }
}
