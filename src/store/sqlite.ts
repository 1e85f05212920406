import { closeSync, fsyncSync, openSync, renameSync, rmSync, statfsSync, statSync } from 'node:fs'
import path from 'node:path'
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite'
import { sleep } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { closeOwnFile, makeOwnFile } from '../base/own-files.js'
import { copiesOf, copyName } from './copies.js'
import { loadSqlite } from './sqlite-library.js'
import {
  codeOf,
  DAMAGED,
  completed,
  EARLIER,
  FULL,
  isBusy,
  LATER,
  LITTLE_ROOM,
  NEWER_NOW,
  notMade,
  DATABASE_FAILURES,
  storageError,
  unusable,
} from './sqlite-error.js'
import {
  complete,
  currentVersion,
  migrate,
  type MigrationOptions,
  NO_MIGRATION,
  NotMigrated,
  SCHEMA,
  suits,
} from './schema.js'
import {
  Commits,
  STORAGE_LIMIT_MS,
  type Sql,
  type SqlRow,
  type SqlValue,
  type Tx,
  type PendingTransaction,
  type WriteOptions,
} from './sql.js'

export const MEMORY = ':memory:'

/** Milliseconds to wait while another process writes. Shorter than {@link STORAGE_LIMIT_MS}, so that the reason is known. */
const PATIENCE_MS = STORAGE_LIMIT_MS - 500
/** Longest delay between attempts. Random, so that two processes do not collide again. */
const RETRY_MS = 4
/**
 * Page size in bytes. A usual delivery's body fits into one page. With 4 KiB, a delivery takes twice as many writes
 * (measured).
 */
const PAGE_BYTES = 8192
/**
 * Pages after which the log is copied into the database, within a commit of this thread: 16 MiB. With 8, every
 * hundredth commit takes 5 ms.
 */
const CHECKPOINT_PAGES = 2000
/** 32 MiB. A log that grew larger during a long read is truncated to it. */
const LOG_LIMIT = 33_554_432
/** Pages returned to the file system in one step, which takes some milliseconds. */
const SHRINK_PAGES = 128
/** Most prepared statements, since filters produce ever new ones. */
const MAX_STATEMENTS = 200
/** `rely` in ASCII: marks the file as relay's (SQLite file format, section 1.3.14). */
const APPLICATION_ID = 0x72656c79

/**
 * Makes every commit durable, which the library's default in WAL mode does not. `EXTRA` also flushes the folder, from
 * which turning on WAL removes a rollback journal: one that a power cut brought back would undo a part of what was
 * written since.
 */
const SETTINGS = `
PRAGMA synchronous = EXTRA;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA temp_store = MEMORY;
PRAGMA foreign_keys = ON;
PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
PRAGMA journal_size_limit = ${LOG_LIMIT};
`

export interface SqliteOptions {
  /** Milliseconds to wait while another process writes. Default: 3,500. */
  readonly patience?: number | undefined
  /** Default: {@link NO_MIGRATION}. */
  readonly migration?: MigrationOptions
}

export interface LocalSql extends Sql {
  /** Deletes the copy of migrated data that an earlier start kept. Called once a start has succeeded. */
  removeCopies(): void
  /** True if another process has written since the database was opened, or if that is unknown. */
  isShared(): boolean
}

/**
 * Opens an SQLite database in this thread, and creates it with mode 0600 if it is missing. Several processes may have
 * the same file open.
 * @param file a path in an existing folder, or {@link MEMORY}
 * @throws RelayError `storage` that names the file, why it cannot be used, and what to do; `settings` for data of
 * another version that cannot be migrated, or that the caller may not migrate
 */
export async function openSqlite(
  file: string,
  { patience = PATIENCE_MS, migration = NO_MIGRATION }: SqliteOptions = {},
): Promise<LocalSql> {
  try {
    if (file !== MEMORY) makeFile(file)
    const sql = new Sqlite(file, patience)
    await sql.prepare(migration)
    return sql
  } catch (error) {
    throw storageError(error, file)
  }
}

/**
 * Locks a small file until the lock is disposed of or this process ends, in any way. Undefined while another process
 * has the lock.
 * @throws RelayError `storage`
 */
export function lockFile(file: string): Disposable | undefined {
  let database: DatabaseSyncInstance | undefined
  try {
    makeFile(file)
    const inode = statSync(file).ino
    database = new (loadSqlite().DatabaseSync)(file, { timeout: 0 })
    // An in-memory journal needs no room on a disk that may be full.
    database.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    const locked = database
    // A start that failed may have removed the file, and another process may have created it again.
    if (statSync(file, { throwIfNoEntry: false })?.ino !== inode) {
      locked.close()
      return undefined
    }
    return { [Symbol.dispose]: () => locked.close() }
  } catch (error) {
    database?.close()
    if (isBusy(error)) return undefined
    throw storageError(error, file)
  }
}

class Sqlite implements LocalSql {
  readonly #file: string
  readonly #patience: number
  /** Referenced for the whole lifetime: its statements fail once it is collected. */
  readonly #database: DatabaseSyncInstance
  readonly #statements = new Map<string, StatementSyncInstance>()
  #isMigrated = false
  /** SQLite's counter of other connections' writes, at the time of opening. */
  #opened = 0
  readonly #room: (bytes: number) => boolean
  readonly #commits = new Commits(
    (batch) => this.#commit(batch),
    (error) => !DATABASE_FAILURES.has(codeOf(error)),
  )

  constructor(file: string, patience: number) {
    this.#file = file
    this.#patience = patience
    // No time-out in the library, because waiting there blocks the thread and with it Ctrl-C.
    this.#database = new (loadSqlite().DatabaseSync)(file, { timeout: 0 })
    this.#room = file === MEMORY ? () => true : createRoomCheck(path.dirname(file), () => this.#freeBytes())
  }

  /**
   * Creates the tables, or checks that they are relay's. Only reads if they are current, since another process may be
   * writing.
   */
  async prepare(migration: MigrationOptions): Promise<void> {
    try {
      await this.#patiently(() => {
        const isEmpty = this.#isEmpty()
        // Checked before any setting, which would write into a file that may belong to another program.
        if (!isEmpty) this.#checkSchema(migration)
        else this.#database.exec(`PRAGMA page_size = ${PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL`)
        this.#database.exec(SETTINGS)
        if (isEmpty) this.#transaction(() => this.#makeSchema(migration))
      })
      if (suits(this.#version()) === 'migrates') await this.#migrate(migration)
      this.#opened = this.#number('data_version')
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  async query<Row extends object>(sql: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    const rows = await this.#named(() => this.#patiently(() => this.#rows(sql, values)))
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller knows the columns that it names
    return rows as readonly object[] as readonly Row[]
  }

  write<Result>(work: () => Tx<Result>, { grows = 0, isLazy = false }: WriteOptions = {}): Promise<Result> {
    return this.#named(() => {
      if (grows > 0 && !this.#room(grows)) throw unusable(this.#file, LITTLE_ROOM)
      // In memory there is no flush to share, and a test waits for each attempt.
      return this.#commits.add(work, { isLazy: isLazy && this.#file !== MEMORY })
    })
  }

  usedBytes(): Promise<number> {
    return this.#named(() => this.#patiently(() => this.#usedBytes()))
  }

  shrink(): Promise<boolean> {
    return this.#named(() =>
      this.#patiently(() => {
        this.#database.exec(`PRAGMA incremental_vacuum(${SHRINK_PAGES})`)
        return this.#number('freelist_count') > 0
      }),
    )
  }

  removeCopies(): void {
    // This process has migrated the data itself, so the user may still need the copy.
    if (this.#isMigrated) return
    try {
      for (const file of copiesOf(this.#file)) rmSync(file, { force: true })
    } catch {
      // The disk is read-only. A later start removes the copy.
    }
  }

  isShared(): boolean {
    try {
      return this.#number('data_version') !== this.#opened
    } catch {
      return true
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#commits.end()
    this.#statements.clear()
    if (this.#database.isOpen) this.#database.close()
  }

  async #commit(batch: readonly PendingTransaction[]): Promise<readonly unknown[]> {
    const all = (): unknown[] => {
      this.#requireVersion(currentVersion())
      return batch.map(({ work }) => this.#run(work()))
    }
    try {
      return await this.#patiently(() => this.#transaction(all), batch[0]?.since)
    } catch (error) {
      if (codeOf(error) === FULL) this.#reuseLog()
      throw error
    }
  }

  #run<Result>(transaction: Tx<Result>): Result {
    let step = transaction.next()
    while (step.done !== true) {
      const statements = 'sql' in step.value ? [step.value] : step.value
      const rows = statements.flatMap(({ sql, values }) => this.#rows(sql, values))
      step = transaction.next(rows)
    }
    return step.value
  }

  #transaction<Result>(work: () => Result): Result {
    this.#rows('BEGIN IMMEDIATE')
    try {
      const result = work()
      this.#rows('COMMIT')
      return result
    } catch (error) {
      // A full disk and some other failures have already ended the transaction.
      if (this.#database.isTransaction) this.#rows('ROLLBACK')
      throw error
    }
  }

  #rows(sql: string, values: readonly SqlValue[] = []): SqlRow[] {
    let statement = this.#statements.get(sql)
    if (!statement) {
      if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear()
      statement = this.#database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what SQLite holds
    return statement.all(...values.map(withoutNul)) as SqlRow[]
  }

  /** Retries without blocking the thread while another process writes. @throws the last error of `work` */
  async #patiently<Result>(work: () => Result, since = performance.now()): Promise<Result> {
    for (;;) {
      try {
        return work()
      } catch (error) {
        if (!isBusy(error) || performance.now() > since + this.#patience) throw error
        await sleep(Math.random() * RETRY_MS)
      }
    }
  }

  async #named<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw storageError(error, this.#file)
    }
  }

  /**
   * Copies the log into the database after the log could not grow, so that the next commit starts at the log's
   * beginning.
   */
  #reuseLog(): void {
    try {
      this.#database.exec('PRAGMA wal_checkpoint')
    } catch {
      // The database may need room to grow, too.
    }
  }

  #isEmpty(): boolean {
    return this.#rows('SELECT 1 FROM sqlite_schema LIMIT 1').length === 0
  }

  /** Checks that the data is relay's and of a usable version. Otherwise the data stays unchanged. */
  #checkSchema({ migrate: may, startCommand }: MigrationOptions): void {
    if (this.#number('application_id') !== APPLICATION_ID)
      throw unusable(this.#file, 'it belongs to another program. Choose another folder with RELAY_HOME')
    const found = suits(this.#version())
    if (found === 'migrates' && !may) throw new NotMigrated(this.#file, startCommand)
    if (found === 'earlier' || found === 'newer')
      throw new RelayError(
        'settings',
        `${this.#file} was written by ${completed(found === 'earlier' ? EARLIER : LATER, this.#file)}`,
      )
  }

  #makeSchema(migration: MigrationOptions): void {
    // Another process may have created it meanwhile.
    if (!this.#isEmpty()) return this.#checkSchema(migration)
    this.#database.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    this.#database.exec(SCHEMA)
    this.#run(complete())
  }

  /** Migrates the data to this version, one transaction for each step, and keeps a copy of the old data. */
  async #migrate({ onSlow }: MigrationOptions): Promise<void> {
    const first = this.#version()
    const copy = copyName(this.#file, first)
    this.#requireRoom()
    onSlow(
      `Bringing ${this.#file} from version ${first} to ${currentVersion()}. ${path.basename(copy)} keeps what it was until relay has started once more`,
    )
    this.#keepCopy(copy)
    // Replacing a table must not delete the rows that refer to it (sqlite.org/lang_altertable.html, section 7).
    this.#database.exec('PRAGMA foreign_keys = OFF')
    try {
      for (let version = first; version < currentVersion(); version++)
        await this.#patiently(() => this.#transaction(() => this.#step(version)))
    } catch (error) {
      if (this.#version() === first) rmSync(copy, { force: true })
      throw error
    }
    this.#isMigrated = true
    this.#statements.clear()
    this.#database.exec('PRAGMA foreign_keys = ON')
  }

  #step(version: number): void {
    this.#requireVersion(version)
    this.#run(migrate(version))
    if (this.#rows('PRAGMA foreign_key_check').length > 0) throw unusable(this.#file, DAMAGED)
  }

  #requireRoom(): void {
    const needed = this.#usedBytes() + RESERVE
    if (freeBytes(path.dirname(this.#file)) < needed)
      throw unusable(
        this.#file,
        `it has to be brought to this version, and a copy of what it was needs ${Math.ceil(needed / MIB)} MiB. Free some space; nothing was changed`,
      )
  }

  /** Copies the database under a draft's name, and renames the complete copy. */
  #keepCopy(copy: string): void {
    const draft = `${copy}.draft`
    // A journal of an unfinished draft would be played back into the new one.
    for (const file of copiesOf(this.#file)) if (file === copy || file.startsWith(draft)) rmSync(file)
    try {
      makeFile(draft)
      this.#rows('VACUUM INTO ?', [draft])
      flush(draft)
      renameSync(draft, copy)
      flush(path.dirname(copy))
    } catch (error) {
      rmSync(draft, { force: true })
      throw error
    }
  }

  #version(): number {
    return Number(this.#rows('SELECT version FROM relay_schema')[0]?.['version'])
  }

  /** Prevents a process that began with an earlier version from writing into migrated data. */
  #requireVersion(version: number): void {
    if (this.#version() !== version) throw unusable(this.#file, NEWER_NOW)
  }

  #usedBytes(): number {
    return this.#number('page_size') * this.#number('page_count') - this.#freeBytes()
  }

  #freeBytes(): number {
    return this.#number('page_size') * this.#number('freelist_count')
  }

  #number(pragma: string): number {
    return Number(this.#rows(`PRAGMA ${pragma}`)[0]?.[pragma])
  }
}

/** Replaces NUL, at which the library cuts text and which PostgreSQL rejects. */
function withoutNul(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\u{fffd}') : value
}

/**
 * Creates a file with mode 0600, since SQLite would make it readable for others; SQLite's other files get the same
 * mode. An existing file is not opened: closing it would end the locks of this process's other connections.
 */
function makeFile(file: string): void {
  try {
    makeOwnFile(file)
    for (const end of ['-wal', '-shm', '-journal']) closeOwnFile(file + end)
  } catch (cause) {
    if (cause instanceof RelayError) throw cause
    throw notMade(file, cause)
  }
}

/** Flushes a file, or the names in a folder, to the disk. */
function flush(file: string): void {
  const descriptor = openSync(file, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

const MIB = 1_048_576

/**
 * 16 MiB that stay free. Deleting needs room too, so without a reserve retention could not empty a full disk (measured:
 * 40 of 40 failed).
 */
export const RESERVE = 16_777_216

/** Free space is checked again after a second, or after a quarter of the reserve was written. */
const LOOK_AGAIN_MS = 1000
const LOOK_AGAIN_BYTES = RESERVE / 4

/** Bytes that are free for this user in a folder's file system. Infinity if unknown. */
export function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    // The write itself reports the problem.
    return Infinity
  }
}

/**
 * Creates a check whether `bytes` more leave the reserve free, in the file system or within the file. Cheap enough for
 * each write.
 */
function createRoomCheck(folder: string, freeWithin: () => number): (bytes: number) => boolean {
  let [written, looked, hasRoom] = [Infinity, -Infinity, true]
  return (bytes) => {
    written += bytes
    const now = performance.now()
    if (written < LOOK_AGAIN_BYTES && now - looked < LOOK_AGAIN_MS) return hasRoom
    ;[written, looked] = [0, now]
    const free = freeBytes(folder)
    // Free pages within the file count while the log has some room.
    hasRoom = free >= RESERVE + bytes || (free >= RESERVE / 4 && freeWithin() >= RESERVE + bytes)
    return hasRoom
  }
}
