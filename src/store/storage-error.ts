import { RelayError } from '../base/errors.js'

/** SQLite's primary result codes (sqlite.org/rescode.html); those below 0 are relay's own. */
const BUSY = 5
const LOCKED = 6
const READ_ONLY = 8
const IO_ERROR = 10
export const CORRUPT = 11
const FULL = 13
const CANNOT_OPEN = 14
const CONSTRAINT = 19
const NOT_A_DATABASE = 26
export const LITTLE_ROOM = -1
export const OTHER_PROGRAM = -2
export const NEWER_SCHEMA = -3

const HELD = 'another process holds it. Try again, or end a relay that is stopped or hangs'
const DAMAGED = 'it is damaged. Write what can still be read into files with relay doctor --salvage FILE'
const NO_ACCESS = 'it cannot be opened or written. Check the permissions of the file and its folder'

const REASONS: Readonly<Record<number, string>> = {
  [BUSY]: HELD,
  [LOCKED]: HELD,
  [READ_ONLY]: NO_ACCESS,
  [IO_ERROR]: 'the disk is full or reported an error. Check its free space, the disk and the system log',
  [CORRUPT]: DAMAGED,
  [FULL]: 'the disk is full. Free some space; a running relay then continues by itself',
  [CANNOT_OPEN]: NO_ACCESS,
  // No statement of relay's breaks a constraint while tables and indexes agree.
  [CONSTRAINT]: DAMAGED,
  [NOT_A_DATABASE]:
    'it is not a database, or is damaged at its beginning. Write what can still be read into files with relay doctor --salvage FILE',
  [LITTLE_ROOM]: 'the disk is almost full. Free some space; a running relay then continues by itself',
  [OTHER_PROGRAM]: 'it belongs to another program. Choose another folder with RELAY_HOME',
  [NEWER_SCHEMA]:
    'it was written by a newer version of relay. Update relay, or choose another profile with --profile',
}

/** A failure of the database in a form that can cross threads. `code` is 0 where there is none. */
export interface Failure {
  readonly code: number
  readonly message: string
}

/** A failure that relay itself found. */
export class DatabaseFailure extends Error implements Failure {
  readonly code: number

  constructor({ code, message }: Failure) {
    super(message)
    this.code = code
  }
}

/** What the SQLite library or {@link DatabaseFailure} says of an error. */
export function toFailure(thrown: unknown): Failure {
  if (thrown instanceof DatabaseFailure) return { code: thrown.code, message: thrown.message }
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  // No whole number of ours is larger than JavaScript's; the library refuses such.
  if (thrown instanceof RangeError) return { code: CORRUPT, message }
  // The extended code holds the primary one in its lowest byte.
  const code = thrown instanceof Error && 'errcode' in thrown ? Number(thrown.errcode) & 0xff : 0
  return { code, message }
}

/** For an error of the file system that the database's file could not be made for. */
export function cannotMake(error: unknown): DatabaseFailure {
  const { code, message } = Object(error)
  return new DatabaseFailure({ code: code === 'ENOSPC' ? FULL : CANNOT_OPEN, message: String(message) })
}

/** The error for a failure of the database in `file`: what failed, why, and what to do. */
export function storageError(failure: Failure, file: string): RelayError {
  const reason = (REASONS[failure.code] ?? failure.message).replace('FILE', file)
  return new RelayError('storage', `The database ${file} cannot be used: ${reason}`, {
    cause: new DatabaseFailure(failure),
  })
}

/** The failure that a RelayError of {@link storageError} was made from. */
export function failureOf(error: unknown): Failure {
  return toFailure(error instanceof RelayError && error.cause !== undefined ? error.cause : error)
}

/** Whether another process was in the way, so that a later try may succeed. */
export const isBusy = ({ code }: Failure): boolean => code === BUSY || code === LOCKED

export const isFull = ({ code }: Failure): boolean => code === FULL

export const isUnreadable = ({ code }: Failure): boolean => code === CORRUPT || code === NOT_A_DATABASE

/** Whether the data that was read is damaged; other data of the same database may be readable. */
export function isDamaged(error: unknown): error is RelayError {
  const cause = error instanceof RelayError ? error.cause : undefined
  return cause instanceof DatabaseFailure && isUnreadable(cause)
}
