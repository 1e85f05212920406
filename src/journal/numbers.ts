import type { Sql } from '../store/sql.js'
import { isDamaged } from '../store/storage-error.js'
import { damagedRow } from './rows.js'

/** The largest number: 0 when there is none. */
export async function newestNumber(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ n: number | null }>('SELECT max(n) AS n FROM delivery')
  return row?.n ?? 0
}

/** Where the numbers of a damaged database can be found: tables and an index, in different places of the file. */
const PLACES = ['delivery', 'body', 'forward', 'attempt'] as const
const OLDEST = 'SELECT n FROM delivery ORDER BY received_at LIMIT 1'
const LATEST = 'SELECT n FROM delivery ORDER BY received_at DESC LIMIT 1'

/**
 * The first and the last number that an entry of a damaged database may have. Of the numbers that can be read the least is the
 * first; the last is a middle one, as damage may make a number very large.
 * @throws RelayError `storage` when none can be read.
 */
export async function edgesOf(sql: Sql): Promise<{ readonly first: number; readonly last: number }> {
  const firsts = await readable(sql, [...PLACES.map((place) => `SELECT min(n) AS n FROM ${place}`), OLDEST])
  const lasts = await readable(sql, [...PLACES.map((place) => `SELECT max(n) AS n FROM ${place}`), LATEST])
  const last = lasts.toSorted((one, other) => one - other)[lasts.length >> 1]
  // No number at all: the journal is empty, or this says why it cannot be read.
  if (last === undefined) return { first: 1, last: await newestNumber(sql) }
  return { first: Math.max(1, Math.min(last, ...firsts)), last }
}

/** The numbers that these queries give, without those that meet damaged data or find nothing. */
async function readable(sql: Sql, queries: readonly string[]): Promise<number[]> {
  const found: number[] = []
  for (const query of queries) {
    try {
      const [row] = await sql.query<{ n: number | null }>(query)
      if (row && row.n !== null) found.push(row.n)
    } catch (error) {
      if (!isDamaged(error)) throw error
    }
  }
  return found
}

/** Every number from `first` to `last`; none when `last` is smaller. */
export function range(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i)
}

/**
 * Numbers that fall strictly, between `above` and `before`. SQLite does not notice when pages of a table have changed places:
 * reading on from what it finds there might never end.
 * @throws RelayError `storage` for numbers that do not.
 */
export function falling(numbers: readonly number[], above: number, before: number): readonly number[] {
  if (numbers.every((n, i) => n > above && n < (numbers[i - 1] ?? before))) return numbers
  throw damagedRow()
}
