import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import path from 'node:path'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { profileCommand } from '../base/command-line.js'
import { RelayError, systemErrno, isError } from '../base/errors.js'
import { makeOwnFile } from '../base/own-files.js'
import { loadSqlite } from './sqlite-library.js'
import { fieldsOf } from '../json/parse.js'

// Explanations of SQLite's failures, with advice.

/** SQLite's primary result codes (sqlite.org/rescode.html). */
const [
  PERMISSION,
  BUSY,
  LOCKED,
  READ_ONLY,
  IO_ERROR,
  CORRUPT,
  FULL,
  CANNOT_OPEN,
  CONSTRAINT,
  NOT_A_DATABASE,
] = [3, 5, 6, 8, 10, 11, 13, 14, 19, 26]

export { FULL }

/**
 * Extended codes of I/O errors of locks (RDLOCK, UNLOCK, CHECKRESERVEDLOCK, LOCK, SHMLOCK) and of shared memory
 * (SHMOPEN, SHMMAP).
 */
const NO_LOCK_CODES = new Set([2314, 2058, 3594, 3850, 5130])
const NO_SHM_CODES = new Set([4618, 5386])

/** Codes that are a failure of the database, not of one transaction. */
export const DATABASE_FAILURES = new Set([
  PERMISSION,
  BUSY,
  LOCKED,
  READ_ONLY,
  IO_ERROR,
  CORRUPT,
  FULL,
  CANNOT_OPEN,
  NOT_A_DATABASE,
])

const HELD =
  'another process writes to it and does not end. Try again, or end a program that is stopped or hangs'
export const DAMAGED = `it is damaged. Save what can be read with SQLite's own tool: sqlite3 FILE .recover`
const READ_ONLY_DISK =
  'its file system is read-only. Mount it for writing, or set RELAY_HOME to another folder'
const NO_ACCESS = 'it cannot be opened or written. Check the permissions of the file and its folder'
const DISK_FULL = 'the disk is full. Free some space; a running relay then continues by itself'
const QUOTA =
  'your disk quota is used up. Free some space, or have the quota raised; a running relay then continues by itself'
const LOCAL_DISK = 'Set RELAY_HOME to a folder on a local disk. DOCTOR names the file system'
const NO_LOCKS = `its file system has no POSIX locks, without which two processes would damage it. ${LOCAL_DISK}`
const NO_LOCK_SEEN = `it cannot be locked, and no process here has it. Either its file system has no POSIX locks, or another machine or container uses it. ${LOCAL_DISK}`
const NO_SHM = `its file system has no memory that processes share, which SQLite needs for its log. ${LOCAL_DISK}`
export const LITTLE_ROOM =
  'the disk is almost full. Free some space; a running relay then continues by itself'

const SQLITE_REASONS: Readonly<Record<number, string>> = {
  [BUSY]: HELD,
  [LOCKED]: HELD,
  [READ_ONLY]: NO_ACCESS,
  [IO_ERROR]:
    'the disk is full or reported an error. Check its free space and your quota, the disk and the system log',
  [CORRUPT]: DAMAGED,
  [FULL]: DISK_FULL,
  [CANNOT_OPEN]: NO_ACCESS,
  // relay's statements break no constraint while tables and indexes agree.
  [CONSTRAINT]: DAMAGED,
  [NOT_A_DATABASE]: DAMAGED,
}

/** Reasons by the number of the system's error. */
const SYSTEM_REASONS: Readonly<Record<number, string>> = {
  [constants.errno.ENOSPC]: DISK_FULL,
  [constants.errno.EDQUOT]: QUOTA,
  [constants.errno.EROFS]: READ_ONLY_DISK,
}

export const NEWER_NOW =
  'a newer version of relay has changed it meanwhile. Stop this process, and start it again with that version'
export const LATER = 'a newer version of relay. Update relay, or choose another profile with --profile'
export const EARLIER =
  'an earlier version of relay, which this one cannot read. It is unchanged. Choose another profile with --profile, or remove this one ' +
  'with RESET; then set the same webhook secret or repair the hooks, and sign in again'

/** Extended result code, or 0. `errcode` of a statement's error has only the primary code. */
function extendedCode(error: unknown): number {
  const { errcode = 0, sqliteExtendedCode = errcode } = fieldsOf(error)
  return Number(sqliteExtendedCode)
}

/** Number of the system's error behind SQLite's, if the library reports it. */
function errnoOf(error: unknown): number {
  const { systemErrno: errno = 0 } = fieldsOf(error)
  return Number(errno)
}

/** Primary result code, which is the lowest byte of the extended one. */
export function codeOf(error: unknown): number {
  return extendedCode(error) & 0xff
}

export function isBusy(error: unknown): boolean {
  return [BUSY, LOCKED].includes(codeOf(error))
}

/** Explains a failure further than its code does. Undefined for an error that is not of the database. */
function reasonFor(error: unknown, file: string): string | undefined {
  // The library refuses integers beyond JavaScript's safe range, and relay stores none.
  if (error instanceof RangeError) return DAMAGED
  const folder = path.dirname(file)
  const [code, extended] = [codeOf(error), extendedCode(error)]
  if (NO_LOCK_CODES.has(extended)) return NO_LOCKS
  if (NO_SHM_CODES.has(extended)) return NO_SHM
  if ([PERMISSION, BUSY, LOCKED].includes(code) && file !== ':memory:') return whyNoLock(file) ?? HELD
  if ([READ_ONLY, IO_ERROR, CANNOT_OPEN].includes(code))
    return (
      SYSTEM_REASONS[errnoOf(error)] ?? SYSTEM_REASONS[errnoOfWriting(folder) ?? 0] ?? SQLITE_REASONS[code]
    )
  return SQLITE_REASONS[code]
}

/** Size of a page of the database. */
const TRIAL_BYTES = 8192

/** Tries to write a small file, as SQLite does. Returns the number of the system's error, or undefined on success. */
function errnoOfWriting(folder: string): number | undefined {
  return withDraft(folder, (draft) => {
    try {
      makeOwnFile(draft)
      const descriptor = openSync(draft, 'r+')
      try {
        writeSync(descriptor, Buffer.alloc(TRIAL_BYTES), 0, TRIAL_BYTES, 0)
        fsyncSync(descriptor)
      } finally {
        closeSync(descriptor)
      }
      return undefined
    } catch (error) {
      return systemErrno(error)
    }
  })
}

/**
 * Explains why a file counts as busy although no other process has locked it. Undefined if one may have. SQLite also
 * reports busy for a file system without locks (ENOLCK in `sqliteErrorFromPosixError`).
 */
function whyNoLock(file: string): string | undefined {
  if (!hasLocks(path.dirname(file))) return NO_LOCKS
  return isLocked(file) ? undefined : NO_LOCK_SEEN
}

/** True if the file system can lock a new file. */
function hasLocks(folder: string): boolean {
  return withDraft(folder, (draft) => {
    let database: DatabaseSyncInstance | undefined
    try {
      makeOwnFile(draft)
      database = new (loadSqlite().DatabaseSync)(draft, { timeout: 0 })
      database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
      return true
    } catch (error) {
      // A full or read-only disk still has locks.
      return !(isBusy(error) || codeOf(error) === PERMISSION || NO_LOCK_CODES.has(extendedCode(error)))
    } finally {
      database?.close()
    }
  })
}

/**
 * True if a process of this machine has locked a part of the database (`man 5 proc`, /proc/locks), or if that is
 * unknown.
 */
export function isLocked(file: string): boolean {
  try {
    const inodes = new Set(
      ['', '-shm'].flatMap((end) => statSync(file + end, { throwIfNoEntry: false })?.ino ?? []),
    )
    const locks = readFileSync('/proc/locks', 'latin1').matchAll(/ [0-9a-f]+:[0-9a-f]+:(\d+) /g)
    return [...locks].some(([, inode]) => inodes.has(Number(inode)))
  } catch {
    return true
  }
}

function withDraft<Result>(folder: string, work: (draft: string) => Result): Result {
  const draft = path.join(folder, `${randomUUID()}.draft`)
  try {
    return work(draft)
  } finally {
    try {
      rmSync(draft, { force: true })
    } catch {
      // The disk is read-only.
    }
  }
}

/** Checks that a busy file is locked by another process. @throws RelayError `storage` if it is not */
export function checkLocks(file: string): void {
  const why = whyNoLock(file)
  if (why !== undefined) throw unusable(file, why)
}

/** Completes a reason with the file and the commands for its profile, after which the folder of the file is named. */
export function completed(reason: string, file: string): string {
  const command = profileCommand(path.basename(path.dirname(file)))
  const words: Readonly<Record<string, string>> = {
    FILE: file,
    DOCTOR: command('doctor'),
    RESET: command('reset'),
  }
  return reason.replaceAll(/\b(?:FILE|DOCTOR|RESET)\b/g, (word) => words[word] ?? word)
}

/** Error that says what failed, why, and what to do. A RelayError from the transaction itself is returned unchanged. */
export function storageError(cause: unknown, file: string): RelayError {
  if (cause instanceof RelayError) return cause
  const reason = reasonFor(cause, file) ?? (isError(cause) ? cause.message : String(cause))
  return unusable(file, reason, cause)
}

/** Error for a database file that cannot be created. */
export function notMade(file: string, cause: unknown): RelayError {
  return unusable(file, SYSTEM_REASONS[systemErrno(cause) ?? 0] ?? NO_ACCESS, cause)
}

export function unusable(file: string, reason: string, cause?: unknown): RelayError {
  const text = completed(reason, file)
  return new RelayError('storage', `The database ${file} cannot be used: ${text}`, { cause })
}
