import { setImmediate } from 'node:timers/promises'

export type SqlValue = string | number | Uint8Array | null
export type SqlRow = Readonly<Record<string, SqlValue>>

/** One statement with its values, in the SQL that SQLite and PostgreSQL have in common; each `?` is a value. */
export interface Statement {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

/**
 * A transaction: it yields statements, gets their rows, and decides what comes next. SQLite runs it to its end without a pause,
 * PostgreSQL awaits each statement; nothing else writes to the profile meanwhile. It may be run again after a failure, so it changes
 * nothing but the database. To refuse, it returns before it has written anything.
 */
export type Tx<Result> = Generator<Statement | readonly Statement[], Result, readonly SqlRow[]>

/** Within a {@link Tx}: `const rows = yield* ask<Row>('SELECT …', value)`. */
export function* ask<Row extends object = SqlRow>(sql: string, ...values: SqlValue[]): Tx<readonly Row[]> {
  const rows: readonly object[] = yield { sql, values }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller knows the columns that it names
  return rows as readonly Row[]
}

/**
 * Runs statements within a {@link Tx} and ignores their rows. No two may change the same row, since they can run at the same time. The
 * transaction continues without waiting, and fails later if one of them fails.
 */
export function* execute(...statements: readonly Statement[]): Tx<void> {
  if (statements.length > 0) yield statements
}

export interface WriteOptions {
  /** Bytes that it adds: it is refused while the disk has too little room for them. Default: it adds nothing to speak of. */
  readonly grows?: number
  /** Other relays of the profile are notified once it is committed, if it changed something, with the numbers of earlier entries. */
  readonly announces?: readonly number[] | undefined
}

/** How long storage may take, in milliseconds: code hosts wait 10 s for an answer, and this leaves most of it. */
export const LIMIT_MS = 4000

/** A relational database. Every method rejects with RelayError `storage` when it fails or does not answer within {@link LIMIT_MS}. */
export interface Sql extends AsyncDisposable {
  /** The rows of a statement that only reads. */
  query<Row extends object = SqlRow>(sql: string, values?: readonly SqlValue[]): Promise<readonly Row[]>
  /** Runs a transaction; resolved means durable. Those that arrive together share a flush, and one that fails fails alone. */
  write<Result>(work: () => Tx<Result>, options?: WriteOptions): Promise<Result>
  /** What the stored data takes, in bytes; free space within the file is not counted. */
  usedBytes(): Promise<number>
  /** Gives some of the free space within the file back to the file system. True when there is more. */
  shrink(): Promise<boolean>
}

/** `?, ?, ?` for that many values. */
export function marks(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ')
}

/** Transactions in one commit: enough that a burst shares a flush, few enough that the loop turns in between. */
const MAX_BATCH = 64

/** A transaction that waits for its commit. */
export interface Waiting extends Pick<WriteOptions, 'announces'> {
  readonly work: () => Tx<unknown>
  /** When it began to wait, by `performance.now()`. */
  readonly since: number
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Has what arrives within a turn of the event loop, or during the last commit, share a commit, and so a flush. */
export class Commits {
  readonly #commit: (batch: readonly Waiting[]) => Promise<readonly unknown[]>
  readonly #isOfOne: (error: unknown) => boolean
  #waiting: Waiting[] = []
  #running: Promise<void> | undefined

  /** `commit` gives the results in order; `isOfOne`: whether it failed because of one transaction, not of the database. */
  constructor(
    commit: (batch: readonly Waiting[]) => Promise<readonly unknown[]>,
    isOfOne: (error: unknown) => boolean,
  ) {
    this.#commit = commit
    this.#isOfOne = isOfOne
  }

  add<Result>(work: () => Tx<Result>, announces?: readonly number[]): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `work` returns
      const settle = (result: unknown): void => resolve(result as Result)
      this.#waiting.push({ work, announces, since: performance.now(), resolve: settle, reject })
      this.#running ??= this.#run()
    })
  }

  /** Resolves once nothing is under way. */
  async end(): Promise<void> {
    // What was asked for just before may arrive some steps later.
    await setImmediate()
    await this.#running
  }

  async #run(): Promise<void> {
    for (await setImmediate(); this.#waiting.length > 0; await setImmediate())
      await this.#write(this.#waiting.splice(0, MAX_BATCH))
    this.#running = undefined
  }

  /** Does not reject. After a failure of one transaction, each is tried alone. */
  async #write(batch: readonly Waiting[]): Promise<void> {
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
