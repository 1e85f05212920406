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
  OF_ALL,
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
  LIMIT_MS,
  type Sql,
  type SqlRow,
  type SqlValue,
  type Tx,
  type Waiting,
  type WriteOptions,
} from './sql.js'

export const MEMORY = ':memory:'

/** Milliseconds to wait while another process writes; shorter than {@link LIMIT_MS}, so that the reason is known. */
const PATIENCE_MS = LIMIT_MS - 500
/** Between tries meanwhile; at random, so that two processes do not keep in step. */
const RETRY_MS = 4
/** Bytes of a page: a usual delivery's body fits in one. With 4 KiB, a delivery takes twice as many writes (measured). */
const PAGE_BYTES = 8192
/** Pages of the log after which it is copied into the database, within a commit of this thread: 16 MiB. With 8, every hundredth commit takes 5 ms. */
const CHECKPOINT_PAGES = 2000
/** A log that grew larger while something was being read is cut back to 32 MiB. */
const LOG_LIMIT = 33_554_432
/** Pages given back to the file system in one step: some milliseconds. */
const SHRINK_PAGES = 128
/** Prepared statements that are kept. Filters make ever new ones. */
const MAX_STATEMENTS = 200
/** `rely` in ASCII: marks the file as relay's (SQLite file format, section 1.3.14). */
const APPLICATION_ID = 0x72656c79

/**
 * Durable at every commit: the library's own default in WAL is not. `EXTRA` flushes the folder too, from which turning on WAL removes a rollback
 * journal: one that a power cut brought back would undo a part of what was written since.
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
  /** To be called once a start has succeeded: removes the copy that a start before it kept of data that it migrated. */
  settle(): void
  /** Whether another process has written since it was opened. True where that cannot be found out. */
  isShared(): boolean
}

/**
 * Opens an SQLite database in this thread; makes it, for its owner alone (0600), when it is missing. Several processes may have the
 * same file open. `file`: a path in a folder that exists, or {@link MEMORY}.
 * @throws RelayError `storage` that names the file, why it cannot be used, and what to do; `settings` for data of another version that cannot
 * be migrated, or that the caller may not migrate.
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
 * Locks a small file of its own, for as long as this process lives or until it is disposed of; undefined while another process has it.
 * The operating system ends the lock with the process, however that ends.
 * @throws RelayError `storage`
 */
export function lockFile(file: string): Disposable | undefined {
  let database: DatabaseSyncInstance | undefined
  try {
    makeFile(file)
    const inode = statSync(file).ino
    database = new (loadSqlite().DatabaseSync)(file, { timeout: 0 })
    // In memory, or it would need room on the disk, which may be full.
    database.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    const locked = database
    // A start that failed may have removed the file, which another process has made again meanwhile.
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
  /** Stays referenced: its statements fail once it is collected. */
  readonly #database: DatabaseSyncInstance
  readonly #statements = new Map<string, StatementSyncInstance>()
  #isMigrated = false
  /** SQLite's number of what other connections have written. */
  #opened = 0
  readonly #room: (bytes: number) => boolean
  readonly #commits = new Commits(
    (batch) => this.#commit(batch),
    (error) => !OF_ALL.has(codeOf(error)),
  )

  constructor(file: string, patience: number) {
    this.#file = file
    this.#patience = patience
    // Waiting in the library would block the thread, and Ctrl-C would not be heard.
    this.#database = new (loadSqlite().DatabaseSync)(file, { timeout: 0 })
    this.#room = file === MEMORY ? () => true : createRoomCheck(path.dirname(file), () => this.#freeBytes())
  }

  /** Makes the tables, or looks whether they are ours. It only reads where they are there and current: another process may be writing. */
  async prepare(migration: MigrationOptions): Promise<void> {
    try {
      await this.#patiently(() => {
        const isEmpty = this.#isEmpty()
        // Before any setting, since that writes into the file, which may be another program's.
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

  write<Result>(work: () => Tx<Result>, { grows = 0 }: WriteOptions = {}): Promise<Result> {
    return this.#named(() => {
      if (grows > 0 && !this.#room(grows)) throw unusable(this.#file, LITTLE_ROOM)
      return this.#commits.add(work)
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

  settle(): void {
    // That start may have been the one which migrated: whoever finds something missing still has the copy.
    if (this.#isMigrated) return
    try {
      for (const file of copiesOf(this.#file)) rmSync(file, { force: true })
    } catch {
      // A read-only disk. A later start removes it.
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

  async #commit(batch: readonly Waiting[]): Promise<readonly unknown[]> {
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
      // A full disk and other failures have ended the transaction already.
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

  /** Waits without blocking the thread while another process writes. @throws what `work` throws last. */
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

  /** After the log could not grow: the next commit finds room at its beginning if what it holds is in the database. */
  #reuseLog(): void {
    try {
      this.#database.exec('PRAGMA wal_checkpoint')
    } catch {
      // The database needs room to grow, too.
    }
  }

  #isEmpty(): boolean {
    return this.#rows('SELECT 1 FROM sqlite_schema LIMIT 1').length === 0
  }

  /** Data that this program cannot use, or its caller may not migrate, stays as it is. */
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
    // Another process may have made it meanwhile.
    if (!this.#isEmpty()) return this.#checkSchema(migration)
    this.#database.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    this.#database.exec(SCHEMA)
    this.#run(complete())
  }

  /** Brings the data to this version, one transaction for each step, and keeps a copy of what it was. */
  async #migrate({ onSlow }: MigrationOptions): Promise<void> {
    const first = this.#version()
    const copy = copyName(this.#file, first)
    this.#requireRoom()
    onSlow(
      `Bringing ${this.#file} from version ${first} to ${currentVersion()}. ${path.basename(copy)} keeps what it was until relay has started once more`,
    )
    this.#keepCopy(copy)
    // A table that is replaced must not take with it what refers to it (sqlite.org/lang_altertable.html, section 7).
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

  /** A copy that is complete has its name; a process that is killed leaves a draft. */
  #keepCopy(copy: string): void {
    const draft = `${copy}.draft`
    // A journal of a draft that was not finished would be played back into the new one.
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

  /** A process that began with an earlier version writes nothing into data that was migrated meanwhile. */
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

/** The library cuts text at a NUL, which PostgreSQL does not take at all. */
function withoutNul(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\u{fffd}') : value
}

/**
 * SQLite would make the file readable for others, and gives its other files the same mode. One that is there is not opened: closing it
 * would end the locks that other connections of this process have on it.
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

/** Puts a file, or the names in a folder, on the disk. */
function flush(file: string): void {
  const descriptor = openSync(file, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

const MIB = 1_048_576

/** 16 MiB stay free: deleting needs room too, so without a reserve retention could not empty a full disk (measured: 40 of 40 failed). */
export const RESERVE = 16_777_216

/** The free space is looked up again after a second, or after a quarter of the reserve was written. */
const LOOK_AGAIN_MS = 1000
const LOOK_AGAIN_BYTES = RESERVE / 4

/** The bytes of a folder's file system that are free for this user; Infinity where that is not known. */
export function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    // The write itself says what is wrong.
    return Infinity
  }
}

/** Finds out whether `bytes` more leave the reserve free, in the file system or within the file. Cheap enough for each write. */
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
