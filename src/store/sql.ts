import { setImmediate } from 'node:timers/promises'

export type SqlValue = string | number | Uint8Array | null
export type SqlRow = Readonly<Record<string, SqlValue>>

/** One statement with its values, in the SQL that SQLite and PostgreSQL have in common. Each `?` is a value. */
export interface Statement {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

/**
 * A transaction: a generator that yields statements, receives their rows, and decides what comes next. SQLite runs it
 * without a pause, PostgreSQL awaits each statement, and nothing else writes to the profile meanwhile. It may run again
 * after a failure, so it changes nothing but the database. To refuse, it returns before its first write.
 */
export type Tx<Result> = Generator<Statement | readonly Statement[], Result, readonly SqlRow[]>

/** Runs a query within a {@link Tx}: `const rows = yield* ask<Row>('SELECT …', value)`. */
export function* fetchRows<Row extends object = SqlRow>(
  sql: string,
  ...values: SqlValue[]
): Tx<readonly Row[]> {
  const rows: readonly object[] = yield { sql, values }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller knows the columns that it names
  return rows as readonly Row[]
}

/**
 * Runs statements within a {@link Tx} and ignores their rows. No two may change the same row, since they can run at the
 * same time. The transaction continues without waiting, and fails later if one of them fails.
 */
export function* execute(...statements: readonly Statement[]): Tx<void> {
  if (statements.length > 0) yield statements
}

export interface WriteOptions {
  /**
   * Bytes that the transaction adds. It is refused while the disk has too little room for them. Default: a negligible
   * number.
   */
  readonly grows?: number
  /**
   * Notifies the profile's other relays after the commit, if it changed something. The numbers are those of earlier
   * entries.
   */
  readonly announces?: readonly number[] | undefined
  /** True for a transaction that may wait some milliseconds for others, to share their flush. */
  readonly isLazy?: boolean | undefined
}

/** Time limit of storage in milliseconds. Code hosts wait 10 s for a response, and this leaves most of it. */
export const STORAGE_LIMIT_MS = 4000

/** A relational database. Every method rejects with RelayError `storage` when it fails or does not answer within {@link STORAGE_LIMIT_MS}. */
export interface Sql extends AsyncDisposable {
  /** Runs a statement that only reads, and returns its rows. */
  query<Row extends object = SqlRow>(sql: string, values?: readonly SqlValue[]): Promise<readonly Row[]>
  /**
   * Runs a transaction. It is durable when the promise resolves. Concurrent transactions share a flush, but a failing
   * one fails alone.
   */
  write<Result>(work: () => Tx<Result>, options?: WriteOptions): Promise<Result>
  /** Size of the stored data in bytes, without free space in the file. */
  usedBytes(): Promise<number>
  /** Returns some of the file's free space to the file system. True if there is more. */
  shrink(): Promise<boolean>
}

/** Placeholders for a number of values: `?, ?, ?`. */
export function placeholders(count: number): string {
  return '?, '.repeat(count).slice(0, -2)
}

/**
 * Most transactions in one commit: enough that a burst shares a flush, few enough that the event loop turns in between.
 */
const MAX_BATCH = 64

/**
 * Longest wait of a lazy transaction for one that is not, in milliseconds: nothing that a person notices. With 200
 * deliveries a second, each flush serves several.
 */
const LAZY_MS = 20
/** Most lazy transactions that wait. */
const MAX_LAZY = 16

/** A transaction that waits for its commit. */
export interface PendingTransaction {
  readonly announces?: readonly number[] | undefined
  readonly work: () => Tx<unknown>
  /** Start of the wait, by `performance.now()`. */
  readonly since: number
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Groups transactions that arrive within a turn of the event loop, or during the last commit, so that they share a
 * commit and its flush.
 */
export class Commits {
  readonly #commit: (batch: readonly PendingTransaction[]) => Promise<readonly unknown[]>
  readonly #isOfOne: (error: unknown) => boolean
  #waiting: PendingTransaction[] = []
  #running: Promise<void> | undefined
  /** True if what waits is to be committed now, since not all of it is lazy, or has waited enough. */
  #isDue = false
  #lazy: NodeJS.Timeout | undefined

  /**
   * @param commit returns the results in order
   * @param isOfOne true for an error of one transaction, false for one of the database
   */
  constructor(
    commit: (batch: readonly PendingTransaction[]) => Promise<readonly unknown[]>,
    isOfOne: (error: unknown) => boolean,
  ) {
    this.#commit = commit
    this.#isOfOne = isOfOne
  }

  add<Result>(
    work: () => Tx<Result>,
    { announces, isLazy = false }: Pick<WriteOptions, 'announces' | 'isLazy'> = {},
  ): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `work` returns
      const settle = (result: unknown): void => resolve(result as Result)
      this.#waiting.push({ work, announces, since: performance.now(), resolve: settle, reject })
      if (isLazy && this.#waiting.length < MAX_LAZY) this.#lazy ??= setTimeout(() => this.#start(), LAZY_MS)
      else this.#start()
    })
  }

  #start(): void {
    this.#isDue = true
    this.#running ??= this.#run()
  }

  /** Resolves once no transaction is pending. */
  async end(): Promise<void> {
    // A transaction that was requested just before may be queued some steps later.
    await setImmediate()
    do {
      this.#start()
      await this.#running
    } while (this.#waiting.length > 0)
  }

  async #run(): Promise<void> {
    // Lazy transactions that arrived during a commit wait on: each alone, they would cost as many flushes as before.
    for (await setImmediate(); this.#isDue && this.#waiting.length > 0; await setImmediate())
      await this.#write(this.#take())
    this.#running = undefined
  }

  #take(): readonly PendingTransaction[] {
    clearTimeout(this.#lazy)
    this.#lazy = undefined
    const batch = this.#waiting.splice(0, MAX_BATCH)
    this.#isDue = this.#waiting.length > 0
    return batch
  }

  /** Commits a batch. Does not reject. After a failure of one transaction, each is tried alone. */
  async #write(batch: readonly PendingTransaction[]): Promise<void> {
    try {
      const results = await this.#commit(batch)
      for (const [i, { resolve }] of batch.entries()) resolve(results[i])
    } catch (error) {
      const isOfOne = batch.length > 1 && this.#isOfOne(error)
      for (const each of batch) {
        if (isOfOne) await this.#write([each])
        else each.reject(error)
      }
    }
  }
}
