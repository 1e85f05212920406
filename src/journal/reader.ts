import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Sql } from '../store/sql.js'
import { isDamaged } from '../store/storage-error.js'
import type { Entry, Summary } from './delivery.js'
import type { Forwards } from './forward.js'
import type { WaitingForward } from './journal.js'
import { chunksOf, marksFor } from './marks.js'
import { edgesOf, falling, newestNumber, range } from './numbers.js'
import { type ForwardRow, toBody, toDelivery, toForward, toForwardRow, toForwards } from './rows.js'

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
  waiting(): AsyncIterable<WaitingForward>
}

/** Forwards that wait, read at once: some milliseconds, and bounded memory. */
const PAGE = 256

/** Damaged entries that are logged one by one. */
const MAX_LOGGED = 20

export function createReader(sql: Sql, log: Log): Reader {
  const inChunks = createChunks(sql, log)
  const summaries = async (numbers: readonly number[]): Promise<readonly Summary[]> => {
    const deliveries = new Map((await inChunks(numbers, readDeliveries)).map((row) => [row.n, row]))
    const forwards = new Map<number, ForwardRow[]>()
    for (const row of await inChunks(numbers, readForwards))
      forwards.set(row.n, [...(forwards.get(row.n) ?? []), row])
    return numbers.flatMap((n) => {
      const delivery = deliveries.get(n)
      return delivery ? [{ ...delivery, forwards: toForwards(forwards.get(n) ?? []) }] : []
    })
  }
  const numbersAfter = (n: number, limit: number): Promise<readonly number[]> =>
    orElse(
      async () => {
        const rows = await sql.query<{ n: number }>('SELECT n FROM delivery WHERE n > ? ORDER BY n LIMIT ?', [
          n,
          limit,
        ])
        return falling(rows.map((row) => row.n).toReversed(), n, Infinity).toReversed()
      },
      async () => range(n + 1, Math.min(n + limit, (await edgesOf(sql)).last)),
    )

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
        const numbers = await numbersAfter(last, limit)
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
    async *waiting() {
      let [n, position, target] = [0, 0, '']
      for (;;) {
        const rows = await orElse(
          () => waitingPage(sql, n, position, target),
          async () => undefined,
        )
        if (!rows) break
        for (const row of rows) yield { n: row.n, target: row.target, forward: toForward(row) }
        const last = rows.at(-1)
        if (!last || rows.length < PAGE) return
        ;({ n, position, target } = last)
      }
      const { first, last } = await edgesOf(sql)
      for (let from = Math.max(n, first); from <= last; from += PAGE) {
        for (const row of await inChunks(range(from, Math.min(from + PAGE - 1, last)), readForwards))
          if (row.status === 'waiting' && (row.n > n || row.position > position))
            yield { n: row.n, target: row.target, forward: toForward(row) }
      }
    },
  }
}

/** Reads rows by the numbers of their entries. */
type Read<Row> = (sql: Sql, numbers: readonly number[]) => Promise<readonly Row[]>

/** Makes the function that reads many numbers: in chunks and, where something of a chunk is damaged, each number by itself. */
function createChunks(sql: Sql, log: Log) {
  const unreadable = new Set<number>()
  const skip = (n: number, error: Error): void => {
    if (unreadable.has(n) || unreadable.size > MAX_LOGGED) return
    unreadable.add(n)
    const which =
      unreadable.size > MAX_LOGGED ? 'More entries of the journal are' : `Entry ${n} of the journal is`
    log.error(`${which} damaged and left out. Run relay doctor`, error)
  }
  const readOne = <Row>(n: number, read: Read<Row>): Promise<readonly Row[]> =>
    orElse(
      () => read(sql, [n]),
      async (error) => {
        skip(n, error)
        return []
      },
    )
  return async <Row>(numbers: readonly number[], read: Read<Row>): Promise<readonly Row[]> => {
    const found: Row[] = []
    for (const chunk of chunksOf(numbers)) {
      const rows = await orElse(
        () => read(sql, chunk),
        async () => (await Promise.all(chunk.map((n) => readOne(n, read)))).flat(),
      )
      found.push(...rows)
    }
    return found
  }
}

async function readDeliveries(
  sql: Sql,
  numbers: readonly number[],
): Promise<readonly Omit<Summary, 'forwards'>[]> {
  const { marks, values } = marksFor(numbers)
  const rows = await sql.query(`SELECT * FROM delivery WHERE n IN ${marks}`, values)
  return rows.map(toDelivery)
}

async function readForwards(sql: Sql, numbers: readonly number[]): Promise<readonly ForwardRow[]> {
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

/** Those that wait after this one, in order. */
async function waitingPage(
  sql: Sql,
  n: number,
  position: number,
  target: string,
): Promise<readonly ForwardRow[]> {
  const rows = await sql.query(
    `SELECT * FROM forward WHERE status = 'waiting' AND (n, position, target) > (?, ?, ?)
      ORDER BY n, position, target LIMIT ${PAGE}`,
    [n, position, target],
  )
  const checked = rows.map(toForwardRow)
  falling([...new Set(checked.map((row) => row.n))].toReversed(), n - 1, Infinity)
  return checked
}

/** What `otherwise` gives when `work` meets damaged data. */
export async function orElse<Result>(
  work: () => Promise<Result>,
  otherwise: (error: RelayError) => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!isDamaged(error)) throw error
    return otherwise(error)
  }
}
