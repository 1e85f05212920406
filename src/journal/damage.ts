import type { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Sql } from '../store/sql.js'
import { isDamaged } from '../store/storage-error.js'
import { chunksOf } from './marks.js'

/** Damaged entries that are logged one by one. */
const MAX_LOGGED = 20

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

/** Reads rows by the numbers of their entries. */
export type ReadRows<Row> = (sql: Sql, numbers: readonly number[]) => Promise<readonly Row[]>

/** Reads the rows of any number of entries. Entries that are damaged are left out. */
export type ReadChunks = <Row>(numbers: readonly number[], read: ReadRows<Row>) => Promise<readonly Row[]>

/** Makes the function that reads many numbers: in chunks and, where something of a chunk is damaged, each number by itself. */
export function createChunks(sql: Sql, log: Log): ReadChunks {
  const unreadable = new Set<number>()
  const skip = (n: number, error: Error): void => {
    if (unreadable.has(n) || unreadable.size > MAX_LOGGED) return
    unreadable.add(n)
    const which =
      unreadable.size > MAX_LOGGED ? 'More entries of the journal are' : `Entry ${n} of the journal is`
    log.error(`${which} damaged and left out. Run relay doctor`, error)
  }
  const readOne = <Row>(n: number, read: ReadRows<Row>): Promise<readonly Row[]> =>
    orElse(
      () => read(sql, [n]),
      async (error) => {
        skip(n, error)
        return []
      },
    )
  return async <Row>(numbers: readonly number[], read: ReadRows<Row>): Promise<readonly Row[]> => {
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
