import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite'
import type { SqlRow, SqlValue, Step } from './sql.js'
import { type Failure, toFailure } from './storage-error.js'

/** What became of one transaction of a commit. */
export type Outcome =
  | { readonly rows: readonly (readonly SqlRow[])[] }
  /** A required step returned no row. */
  | { readonly refused: true }
  | { readonly failure: Failure }

/** Bytes: a usual delivery's body fits in one page, which takes half as many writes as the default of 4 KiB. */
export const PAGE_BYTES = 8192
/** Pages of the write-ahead log after which they are copied into the database (16 MiB): fewer, larger copies. */
const CHECKPOINT_PAGES = 2000
/** A log that grew larger while something was being read is cut back to this: 32 MiB. */
const LOG_LIMIT = 33_554_432
/** Pages given back to the file system in one step: some milliseconds. */
const SHRINK_PAGES = 128

/** `temp_store`: what a savepoint would restore is written to a temporary file otherwise. */
const SETTINGS = `
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA temp_store = MEMORY;
PRAGMA foreign_keys = ON;
PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
PRAGMA journal_size_limit = ${LOG_LIMIT};
`

/**
 * A connection to an SQLite database. Every method is synchronous and throws the library's errors; `SQLITE_BUSY` at once, so
 * that the caller decides how long to wait. It must stay referenced: its statements fail once it is collected.
 */
export class SqliteConnection {
  readonly #database: DatabaseSyncInstance
  readonly #statements = new Map<string, StatementSyncInstance>()

  /** `file`: a path, or `:memory:`. */
  constructor(file: string) {
    this.#database = new DatabaseSync(file, { timeout: 0 })
  }

  /** Durable at every commit. To be called outside a transaction, before anything is written. */
  configure({ isEmpty }: { readonly isEmpty: boolean }): void {
    // Else this would write, and wait for a process that holds the lock on writing.
    if (isEmpty) this.exec(`PRAGMA page_size = ${PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL`)
    this.exec(SETTINGS)
  }

  exec(sql: string): void {
    this.#database.exec(sql)
  }

  rows<Row extends object = SqlRow>(sql: string, values: readonly SqlValue[] = []): Row[] {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller knows the columns that it names
    return this.#statement(sql).all(...values.map(withoutNul)) as Row[]
  }

  /** Does `work` in a transaction; when it throws, nothing of it is done. */
  inTransaction<Result>(work: () => Result): Result {
    this.rows('BEGIN IMMEDIATE')
    try {
      const result = work()
      this.rows('COMMIT')
      return result
    } catch (error) {
      // Some failures, such as a full disk, have ended the transaction already.
      if (this.#database.isTransaction) this.rows('ROLLBACK')
      throw error
    }
  }

  /** Commits the transactions with one flush. One that fails or is refused does not affect the others. */
  commit(transactions: readonly (readonly Step[])[]): readonly Outcome[] {
    return this.inTransaction(() => transactions.map((steps) => this.#runWithin(steps)))
  }

  /** Bytes in use; free pages within the file are not counted. */
  usedBytes(): number {
    return this.#pageSize() * this.#number('page_count') - this.freeBytes()
  }

  /** Bytes of the free pages within the file. */
  freeBytes(): number {
    return this.#pageSize() * this.#number('freelist_count')
  }

  /** Copies the log into the database as far as no reader needs it, so that the log's space can be reused. */
  checkpoint(): void {
    this.exec('PRAGMA wal_checkpoint')
  }

  /** Gives some free pages back to the file system. True when there are more. */
  shrink(): boolean {
    this.exec(`PRAGMA incremental_vacuum(${SHRINK_PAGES})`)
    return this.#number('freelist_count') > 0
  }

  /** Closing twice is no error. */
  close(): void {
    this.#statements.clear()
    if (this.#database.isOpen) this.#database.close()
  }

  #runWithin(steps: readonly Step[]): Outcome {
    this.rows('SAVEPOINT own')
    const outcome = this.#run(steps)
    if (!('rows' in outcome)) this.rows('ROLLBACK TO own')
    this.rows('RELEASE own')
    return outcome
  }

  #run(steps: readonly Step[]): Outcome {
    try {
      const all: SqlRow[][] = []
      for (const { sql, values, required } of steps) {
        const rows = this.rows(sql, values)
        if (required && rows.length === 0) return { refused: true }
        all.push(rows)
      }
      return { rows: all }
    } catch (error) {
      if (!this.#database.isTransaction) throw error
      return { failure: toFailure(error) }
    }
  }

  #statement(sql: string): StatementSyncInstance {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.#database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  #pageSize(): number {
    return this.#number('page_size')
  }

  #number(pragma: string): number {
    const [row] = this.rows<Record<string, number>>(`PRAGMA ${pragma}`)
    return Number(row?.[pragma])
  }
}

/** The library cuts text at a NUL, which PostgreSQL does not take at all. */
function withoutNul(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value
}
