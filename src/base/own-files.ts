import { randomUUID } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants as access,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { constants } from 'node:os'
import path from 'node:path'
import { errorReason, RelayError, systemErrno } from './errors.js'
import { FIXED, inspectPlace } from './trust.js'

// relay's own folders and files. They hold tokens and secrets, so all of them are made, read and written here: where another user can change
// one, or put another in its place, relay refuses it.

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
/** What a mode allows the group and others. */
const OF_OTHERS = 0o077

/**
 * Whether something is at a path of relay's own. Reads and changes nothing.
 * @throws RelayError `settings` when another user owns it or can change it, with what to do
 */
export function isOwn(place: string): boolean {
  return checked(place) !== undefined
}

function checked(place: string) {
  const found = inspectPlace(place)
  if (!found || !('why' in found)) return found
  throw new RelayError(
    'settings',
    `relay does not use ${place}: ${found.why}. ${found.fix}, or set RELAY_HOME to a folder of your own`,
  )
}

/**
 * Makes a folder for its owner alone (0700), with those above it that are missing. One that is there is closed to others.
 * @throws RelayError `settings` that names what cannot be made, why, and what to do; as {@link isOwn}
 */
export function makeOwnFolder(folder: string): void {
  // Before anything is made in a place of another user.
  if (!isOwn(folder)) makeFolder(folder)
  close(folder, FOLDER_MODE)
}

/**
 * Makes an empty file for its owner alone (0600). One that is there is closed to others, and not opened.
 * @throws RelayError as {@link isOwn}; the system's error when it cannot be made
 */
export function makeOwnFile(file: string): void {
  try {
    if (!isOwn(file)) closeSync(openSync(file, 'wx', FILE_MODE))
  } catch (cause) {
    // Another process may have made it meanwhile.
    if (cause instanceof RelayError || !isOwn(file)) throw cause
  }
  closeOwnFile(file)
}

/** Closes a file to others, if it is there. @throws RelayError as {@link isOwn} */
export function closeOwnFile(file: string): void {
  close(file, FILE_MODE)
}

/** The text of a file; undefined when there is none, or it cannot be read. @throws RelayError as {@link isOwn} */
export function readOwnFile(file: string): string | undefined {
  if (!isOwn(file)) return undefined
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

/** The names in a folder; none when there is no folder, or it cannot be read. @throws RelayError as {@link isOwn} */
export function readOwnFolder(folder: string): readonly string[] {
  if (!isOwn(folder)) return []
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/**
 * Writes a small file that only its owner can read (0600), and its folder. A reader sees the old file or the new one.
 * @throws RelayError as {@link makeOwnFolder}; `storage` when the file cannot be written
 */
export function writeOwnFile(file: string, text: string): void {
  makeOwnFolder(path.dirname(file))
  // Under a name that cannot be guessed and that nothing has: a link that waits there would be followed.
  const draft = `${file}.${randomUUID()}.draft`
  try {
    writeFileSync(draft, text, { mode: FILE_MODE, flag: 'wx' })
    renameSync(draft, file)
  } catch (cause) {
    rmSync(draft, { force: true })
    throw new RelayError('storage', `${file} cannot be written: ${whyNot(cause)}`, { cause })
  }
}

/** @throws RelayError as {@link isOwn}; `settings` when it cannot be closed */
function close(place: string, mode: number): void {
  const found = checked(place)
  const uid = process.geteuid?.()
  // Only its owner and root may; what is root's, root has decided.
  if (!found || uid === undefined || (found.mode & OF_OTHERS) === 0 || (uid !== 0 && found.uid !== uid))
    return
  try {
    chmodSync(place, mode)
    if ((statSync(place).mode & OF_OTHERS) === 0) return
  } catch (cause) {
    throw new RelayError(
      'settings',
      `relay does not use ${place}: it is open to others, and cannot be closed to them (${errorReason(cause)}). Set RELAY_HOME to a folder of your own`,
      { cause },
    )
  }
  throw new RelayError(
    'settings',
    `relay does not use ${place}: it is open to others, and chmod does not close it. ${FIXED}. Or set RELAY_HOME to a folder of your own`,
  )
}

/**
 * Not by `mkdir`'s `recursive`: Node 20 then tries for ever where a file system says ENOENT in a folder that is there, as
 * procfs and autofs do (measured). This makes one attempt for each name in the path.
 */
function makeFolder(folder: string): void {
  if (isFolder(folder)) return
  const parent = path.dirname(folder)
  if (parent !== folder) makeFolder(parent)
  try {
    mkdirSync(folder, { mode: FOLDER_MODE })
  } catch (cause) {
    // Another process may have made it meanwhile.
    if (isFolder(folder)) return
    throw new RelayError(
      'settings',
      `The folder ${folder} cannot be made: ${reason(folder, cause)}. Set RELAY_HOME to a folder that you can write to`,
      { cause },
    )
  }
}

/** Why a folder that is not there cannot be made; undefined where nothing speaks against it. */
export function obstacleTo(folder: string): string | undefined {
  const parent = path.dirname(folder)
  if (parent !== folder && !existsSync(parent)) return obstacleTo(parent)
  try {
    accessSync(parent, access.W_OK | access.X_OK)
    return undefined
  } catch (error) {
    return reason(folder, error)
  }
}

function isFolder(file: string): boolean {
  try {
    return statSync(file).isDirectory()
  } catch {
    return false
  }
}

const QUOTA = 'your disk quota is used up'

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'you have no permission to write there',
  EPERM: 'you have no permission to write there',
  EROFS: 'the file system is read-only',
  ENOENT: 'the file system takes no new folders there',
  ENOSPC: 'the disk is full',
}

function reason(folder: string, cause: unknown): string {
  if (errorReason(cause) !== 'EEXIST') return whyNot(cause)
  return lstatSync(folder).isSymbolicLink() ? 'it is a link to what is not a folder' : 'it is not a folder'
}

/** Why the system refused to write, in words. */
function whyNot(cause: unknown): string {
  if (systemErrno(cause) === constants.errno.EDQUOT) return QUOTA
  return REASONS[errorReason(cause)] ?? errorReason(cause)
}
