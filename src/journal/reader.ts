import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Sql } from '../store/sql.js'
import { createChunks, orElse, type ReadChunks } from './damage.js'
import type { Entry, Summary } from './delivery.js'
import { readDeliveries, readEntry, readForwards } from './entries.js'
import type { Forwards } from './forward.js'
import type { WaitingFilter, WaitingForward } from './journal.js'
import { edgesOf, falling, newestNumber, range } from './numbers.js'
import { type ForwardRow, toForwards } from './rows.js'
import { waitingForwards } from './waiting.js'

/** Reads entries. What of a damaged database cannot be read is left out and logged once; everything else is read. */
export interface Reader {
  /** Rejects for an entry that is damaged. */
  read(n: number): Promise<Entry | undefined>
  newest(): Promise<number>
  after(n: number, limit: number): Promise<readonly Summary[]>
  summaries(numbers: readonly number[]): Promise<readonly Summary[]>
  /**
   * What `query` gives: up to `limit` numbers below `before`, newest first. Where that cannot be read, the next `limit` numbers
   * below `before`, some of which may not exist.
   */
  numbers(before: number, limit: number, query: () => Promise<readonly number[]>): Promise<readonly number[]>
  forwards(n: number): Promise<Forwards>
  waiting(filter?: WaitingFilter): AsyncIterable<WaitingForward>
}

export function createReader(sql: Sql, log: Log): Reader {
  const inChunks = createChunks(sql, log)
  const summaries = (numbers: readonly number[]) => readSummaries(numbers, inChunks)
  return {
    newest: () =>
      orElse(
        () => newestNumber(sql),
        async () => (await edgesOf(sql)).last,
      ),
    summaries,
    numbers: (before, limit, query) =>
      orElse(
        async () => falling(await query(), 0, before),
        async () => {
          const { first, last } = await edgesOf(sql)
          const end = Math.min(before - 1, last)
          return range(Math.max(first, end - limit + 1), end).toReversed()
        },
      ),
    async after(n, limit) {
      const found: Summary[] = []
      for (let last = n; found.length < limit;) {
        const numbers = await numbersAfter(sql, last, limit)
        found.push(...(await summaries(numbers)))
        if (numbers.length < limit) break
        last = numbers.at(-1) ?? last
      }
      return found.slice(0, limit)
    },
    read: (n) =>
      orElse(
        () => readEntry(sql, n),
        async ({ cause }) => {
          throw new RelayError('storage', `Entry ${n} of the journal is damaged. Run relay doctor`, { cause })
        },
      ),
    forwards: async (n) => toForwards(await readForwards(sql, [n])),
    waiting: (filter) => waitingForwards(sql, inChunks, filter),
  }
}

async function readSummaries(numbers: readonly number[], inChunks: ReadChunks): Promise<readonly Summary[]> {
  const deliveries = new Map((await inChunks(numbers, readDeliveries)).map((row) => [row.n, row]))
  const forwards = new Map<number, ForwardRow[]>()
  for (const row of await inChunks(numbers, readForwards))
    forwards.set(row.n, [...(forwards.get(row.n) ?? []), row])
  return numbers.flatMap((n) => {
    const delivery = deliveries.get(n)
    return delivery ? [{ ...delivery, forwards: toForwards(forwards.get(n) ?? []) }] : []
  })
}

/** At most `limit` numbers above `n`, in order; some of them may not exist where the table is damaged. */
function numbersAfter(sql: Sql, n: number, limit: number): Promise<readonly number[]> {
  return orElse(
    async () => {
      const rows = await sql.query<{ n: number }>('SELECT n FROM delivery WHERE n > ? ORDER BY n LIMIT ?', [
        n,
        limit,
      ])
      return falling(rows.map((row) => row.n).toReversed(), n, Infinity).toReversed()
    },
    async () => range(n + 1, Math.min(n + limit, (await edgesOf(sql)).last)),
  )
}
