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
import { CHMOD_ADVICE, inspectPlace } from './trust.js'

// relay's own folders and files hold tokens and secrets, so all of them are created, read and written here. relay
// refuses a path that another user can change or replace.

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
/** Permission bits of the group and others. */
const OF_OTHERS = 0o077

/**
 * True if relay's own file or folder exists. Reads and changes nothing.
 * @throws RelayError `settings`, with the fix, when another user owns it or can change it
 */
export function ownPathExists(place: string): boolean {
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
 * Creates a folder and its missing parents with mode 0700. An existing folder is closed to other users.
 * @throws RelayError `settings` that names what cannot be created, why, and what to do; as {@link ownPathExists}
 */
export function makeOwnFolder(folder: string): void {
  // Checked first, so that nothing is created inside another user's folder.
  if (!ownPathExists(folder)) makeFolder(folder)
  close(folder, FOLDER_MODE)
}

/**
 * Creates an empty file with mode 0600. An existing file is closed to other users, but not opened.
 * @throws RelayError as {@link ownPathExists}; the system's error when it cannot be created
 */
export function makeOwnFile(file: string): void {
  try {
    if (!ownPathExists(file)) closeSync(openSync(file, 'wx', FILE_MODE))
  } catch (cause) {
    // Another process may have created it meanwhile.
    if (cause instanceof RelayError || !ownPathExists(file)) throw cause
  }
  closeOwnFile(file)
}

/** Closes an existing file to other users. @throws RelayError as {@link ownPathExists} */
export function closeOwnFile(file: string): void {
  close(file, FILE_MODE)
}

/** Reads a file's text. Returns undefined if it is missing or unreadable. @throws RelayError as {@link ownPathExists} */
export function readOwnFile(file: string): string | undefined {
  if (!ownPathExists(file)) return undefined
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

/** Lists a folder's names. Returns none if it is missing or unreadable. @throws RelayError as {@link ownPathExists} */
export function readOwnFolder(folder: string): readonly string[] {
  if (!ownPathExists(folder)) return []
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/**
 * Writes a small file with mode 0600, and creates its folder. A reader sees the old file or the new one, never a mix.
 * @throws RelayError as {@link makeOwnFolder}; `storage` when the file cannot be written
 */
export function writeOwnFile(file: string, text: string): void {
  makeOwnFolder(path.dirname(file))
  // The draft has an unguessable name and is created exclusively, so that no prepared link is followed.
  const draft = `${file}.${randomUUID()}.draft`
  try {
    writeFileSync(draft, text, { mode: FILE_MODE, flag: 'wx' })
    renameSync(draft, file)
  } catch (cause) {
    rmSync(draft, { force: true })
    throw new RelayError('storage', `${file} cannot be written: ${whyNot(cause)}`, { cause })
  }
}

/**
 * Removes the permissions of other users. @throws RelayError as {@link ownPathExists}; `settings` when they cannot be removed
 */
function close(place: string, mode: number): void {
  const found = checked(place)
  const uid = process.geteuid?.()
  // Only the owner and root may change a mode. A mode that root has set on its own file is left alone.
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
    `relay does not use ${place}: it is open to others, and chmod does not close it. ${CHMOD_ADVICE}. Or set RELAY_HOME to a folder of your own`,
  )
}

/**
 * Creates a folder and its parents, with one attempt for each name. `mkdir`'s `recursive` is not used: Node 20 loops
 * for ever where a file system answers ENOENT inside an existing folder, as procfs and autofs do (measured).
 */
function makeFolder(folder: string): void {
  if (isFolder(folder)) return
  const parent = path.dirname(folder)
  if (parent !== folder) makeFolder(parent)
  try {
    mkdirSync(folder, { mode: FOLDER_MODE })
  } catch (cause) {
    // Another process may have created it meanwhile.
    if (isFolder(folder)) return
    throw new RelayError(
      'settings',
      `The folder ${folder} cannot be made: ${reason(folder, cause)}. Set RELAY_HOME to a folder that you can write to`,
      { cause },
    )
  }
}

/** Reason why a missing folder cannot be created. Undefined if nothing prevents it. */
export function folderObstacle(folder: string): string | undefined {
  const parent = path.dirname(folder)
  if (parent !== folder && !existsSync(parent)) return folderObstacle(parent)
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

const WRITE_FAILURES: Readonly<Record<string, string>> = {
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

/** Describes why the system refused a write. */
function whyNot(cause: unknown): string {
  if (systemErrno(cause) === constants.errno.EDQUOT) return QUOTA
  return WRITE_FAILURES[errorReason(cause)] ?? errorReason(cause)
}
