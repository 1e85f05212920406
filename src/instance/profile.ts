import { existsSync } from 'node:fs'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { sleep } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import type { ProviderName, StoreText } from '../base/settings.js'
import { closeOwnFile, makeOwnFolder, readOwnFile, readOwnFolder, writeOwnFile } from '../base/own-files.js'
import { databaseExists } from '../store/open.js'

/** File in the profile's folder that a running `serve` has locked. */
export const LOCK_FILE = 'serve.lock'
/** Time to wait for the lock: a command may hold it for a moment, to find out if a relay runs. Milliseconds. */
const PATIENCE_MS = 250
const RETRY_MS = 10

/**
 * Locks a profile for this process for as long as it lives. The operating system holds the lock: it is free the moment
 * this process is gone, and stays locked while the process is stopped.
 * @param owner describes the process that has the lock, for the error
 * @param what names what is locked to the user: the profile, or to an embedding program the folder
 * @throws RelayError `unavailable` if another process has the lock; `settings` if another user could change the folder;
 * `storage`
 */
export async function lockProfile(
  folder: string,
  owner: () => string,
  what: 'profile' | 'folder' = 'profile',
): Promise<Disposable> {
  const [{ lockFile }, { checkLocks }] = await Promise.all([
    import('../store/sqlite.js'),
    import('../store/sqlite-error.js'),
  ])
  for (const until = performance.now() + PATIENCE_MS; ; await sleep(RETRY_MS)) {
    // Made each time, since a failed start removes the folder that it made.
    makeOwnFolder(folder)
    const lock = lockFile(path.join(folder, LOCK_FILE))
    if (lock) return lock
    if (performance.now() <= until) continue
    checkLocks(path.join(folder, LOCK_FILE))
    throw new RelayError(
      'unavailable',
      `${what === 'folder' ? `The folder ${folder}` : 'This profile'} is already served by ${owner()}. Stop it, or choose another ${what} with --profile`,
    )
  }
}

/**
 * True while a process serves a profile of this machine. False for a profile in a shared store, which many can serve.
 * @throws RelayError `storage`
 */
export async function isServed(folder: string): Promise<boolean> {
  const file = path.join(folder, LOCK_FILE)
  if (!existsSync(file)) return false
  const { lockFile } = await import('../store/sqlite.js')
  const lock = lockFile(file)
  lock?.[Symbol.dispose]()
  return lock === undefined
}

/** Saved use of a profile, so that its commands find its data when nothing runs. */
export interface SavedProfile {
  readonly v: 1
  /** Store of its tokens. */
  readonly store: Exclude<StoreText, 'memory'>
  /** Its code host. Null if only a file of a working folder named it, since that file can name another at any time. */
  readonly provider: ProviderName | null
  readonly providerUrl: string | null
  /** True if it belongs to an embedded sandbox. */
  readonly sandbox: boolean
  /** Set if it is the data of a hub, and not of a workstation. */
  readonly hub?: true
}

/** File of {@link SavedProfile} in the profile's folder. */
export const SAVED_FILE = 'profile.json'

/**
 * Reads the saved use of the profile in a folder. Undefined if there is none, or only another version can read it.
 * @throws RelayError as {@link readRecord}
 */
export function readSavedProfile(folder: string): SavedProfile | undefined {
  return readRecord<SavedProfile>(path.join(folder, SAVED_FILE))
}

/**
 * Reads a record written by {@link writeRecord}. Undefined if there is none, or only another version can read it.
 * @throws RelayError `settings` if another user could have written it
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows the type that it wrote
export function readRecord<Value extends { readonly v: 1 }>(file: string): Value | undefined {
  const text = readOwnFile(file)
  try {
    const record: Value = JSON.parse(text ?? '')
    return record.v === 1 ? record : undefined
  } catch {
    return undefined
  }
}

/**
 * Saves the use of the profile. Writes nothing if it is saved already, since the disk may be full. @throws RelayError
 * as {@link writeRecord}
 */
export function saveProfile(folder: string, used: Omit<SavedProfile, 'v'>): void {
  const saved: SavedProfile = { v: 1, ...used }
  const file = path.join(folder, SAVED_FILE)
  if (isDeepStrictEqual(readSavedProfile(folder), saved)) closeOwnFile(file)
  else writeRecord(file, saved)
}

/** True if the folder holds data of a profile. */
export function profileExists(folder: string): boolean {
  return databaseExists(folder) || existsSync(path.join(folder, SAVED_FILE))
}

/**
 * Lists the names of the profiles in a data folder, sorted. @throws RelayError `settings` if another user could have
 * made them
 */
export function listProfiles(home: string): readonly string[] {
  const names = readOwnFolder(home)
  return names.filter((name) => !name.startsWith('.') && profileExists(path.join(home, name))).toSorted()
}

/**
 * Writes a record, as {@link writeOwnFile} does. @throws RelayError `settings` if the folder cannot be used, `storage`
 * if the file cannot be written
 */
export function writeRecord(file: string, record: { readonly v: 1 }): void {
  writeOwnFile(file, `${JSON.stringify(record)}\n`)
}
