import { setImmediate } from 'node:timers/promises'
import { sleep } from '../base/abort.js'
import { sizeOf } from './size-of.js'
import { LIMIT_MS, type Sql, type SqlRow, type Step, type TransactionOptions } from './sql.js'
import type { Outcome, SqliteConnection } from './sqlite.js'
import { type Failure, isBusy, isFull, LITTLE_ROOM, storageError, toFailure } from './storage-error.js'

export interface EngineOptions {
  /** The database's file, for messages. */
  readonly file: string
  /** Whether the disk has room for so many bytes more. Default: always. */
  readonly hasRoom?: (bytes: number) => boolean
  /** Milliseconds to wait while another process holds the database. Default: 3,500. */
  readonly patience?: number | undefined
}

/** A transaction that waits for its commit. */
interface Waiting {
  readonly steps: readonly Step[]
  /** When it began to wait, by `performance.now()`. */
  readonly since: number
  readonly settle: (outcome: Outcome) => void
}

/** Transactions in one commit: enough that a burst shares a flush, few enough that none waits long for the others. */
const MAX_BATCH = 256
/** Shorter than the limit by which a thread's calls fail, so that they fail with this reason. */
const BUSY_LIMIT_MS = LIMIT_MS - 500
/** Milliseconds between tries while another process holds the database; at random, so that two do not keep in step. */
const RETRY_MS = 4

/** The SQL contract over a connection in the same thread. */
export function createEngine(connection: SqliteConnection, options: EngineOptions): Sql {
  const { file, hasRoom, patience = BUSY_LIMIT_MS } = options
  let waiting: Waiting[] = []
  let committing: Promise<void> | undefined

  const patiently = async <Result>(work: () => Result): Promise<Result> => {
    try {
      return await retryWhileBusy(work, patience)
    } catch (error) {
      throw storageError(toFailure(error), file)
    }
  }
  const commitAll = async (): Promise<void> => {
    // All that arrive in this turn of the event loop share the commit.
    for (await setImmediate(); waiting.length > 0; await setImmediate()) {
      const batch = waiting.slice(0, MAX_BATCH)
      waiting = waiting.slice(MAX_BATCH)
      await commit(connection, batch, patience)
    }
    committing = undefined
  }

  return {
    query: (sql, values) => patiently(() => connection.rows(sql, values)),
    async transaction(steps, { grows = false }: TransactionOptions = {}) {
      if (grows && hasRoom?.(sizeOf(steps)) === false)
        throw storageError({ code: LITTLE_ROOM, message: 'little room' }, file)
      const outcome = await new Promise<Outcome>((settle) => {
        waiting.push({ steps, since: performance.now(), settle })
        committing ??= commitAll()
      })
      return rowsOf(outcome, file)
    },
    usedBytes: () => patiently(() => connection.usedBytes()),
    shrink: () => patiently(() => connection.shrink()),
    async [Symbol.asyncDispose]() {
      await committing
      connection.close()
    },
  }
}

/** Does not reject: a failure of the whole commit is the outcome of each transaction. */
async function commit(
  connection: SqliteConnection,
  batch: readonly Waiting[],
  patience: number,
): Promise<void> {
  let outcomes: readonly Outcome[]
  try {
    const run = () => connection.commit(batch.map(({ steps }) => steps))
    outcomes = await retryWhileBusy(run, patience, batch[0]?.since)
  } catch (error) {
    const failure: Failure = toFailure(error)
    outcomes = batch.map(() => ({ failure }))
    if (isFull(failure)) reuseLog(connection)
  }
  for (const [i, { settle }] of batch.entries()) settle(outcomes[i] ?? { refused: true })
}

/** When the log cannot grow, the next commit finds room at its beginning if what it holds is in the database. */
function reuseLog(connection: SqliteConnection): void {
  try {
    connection.checkpoint()
  } catch {
    // The database needs room to grow, too.
  }
}

/** @throws RelayError `storage` */
function rowsOf(outcome: Outcome, file: string): readonly (readonly SqlRow[])[] | undefined {
  if ('failure' in outcome) throw storageError(outcome.failure, file)
  return 'rows' in outcome ? outcome.rows : undefined
}

/** Waits without blocking the thread, so that Ctrl-C is heard. @throws what `work` throws last. */
export async function retryWhileBusy<Result>(
  work: () => Result,
  patience = BUSY_LIMIT_MS,
  since = performance.now(),
): Promise<Result> {
  const end = since + patience
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(toFailure(error)) || performance.now() > end) throw error
      await sleep(Math.random() * RETRY_MS)
    }
  }
}
