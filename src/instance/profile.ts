import { existsSync } from 'node:fs'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { sleep } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import type { ProviderName, StoreText } from '../base/settings.js'
import { closeOwnFile, makeOwnFolder, readOwnFile, readOwnFolder, writeOwnFile } from '../base/own-files.js'
import { databaseExists } from '../store/open.js'

/** Its file in the profile's folder, which a running `serve` has locked. */
export const LOCK_FILE = 'serve.lock'
/** A command may hold it for a moment, to find out whether a relay runs. Milliseconds. */
const PATIENCE_MS = 250
const RETRY_MS = 10

/**
 * Takes a profile for this process, for as long as it lives: the lock is the operating system's, so that it is free the moment this process
 * is gone, and held also while it is stopped.
 * @throws RelayError `unavailable` when another process has it, with what `owner` says of that; `settings` where another user could change
 * the folder; `storage`
 */
export async function lockProfile(folder: string, owner: () => string): Promise<Disposable> {
  const [{ lockFile }, { checkLocks }] = await Promise.all([
    import('../store/sqlite.js'),
    import('../store/sqlite-error.js'),
  ])
  for (const until = performance.now() + PATIENCE_MS; ; await sleep(RETRY_MS)) {
    // Each time, since a start that fails removes the folder that it has made.
    makeOwnFolder(folder)
    const lock = lockFile(path.join(folder, LOCK_FILE))
    if (lock) return lock
    if (performance.now() <= until) continue
    checkLocks(path.join(folder, LOCK_FILE))
    throw new RelayError(
      'unavailable',
      `This profile is already served by ${owner()}. Stop it, or choose another profile with --profile`,
    )
  }
}

/** What a profile remembers of how it was used, so that its commands find its data also when nothing runs. */
export interface SavedProfile {
  readonly v: 1
  /** Where its tokens are. */
  readonly store: Exclude<StoreText, 'memory'>
  /** Its code host. Null where only a working folder's file named it: that can name another at any time. */
  readonly provider: ProviderName | null
  readonly providerUrl: string | null
  /** Whether it belongs to an embedded sandbox. */
  readonly sandbox: boolean
}

/** Its file in the profile's folder. */
export const SAVED_FILE = 'profile.json'

/** Undefined when the profile in this folder remembers nothing, or only another version can read it. @throws RelayError as {@link readRecord} */
export function readSavedProfile(folder: string): SavedProfile | undefined {
  return readRecord<SavedProfile>(path.join(folder, SAVED_FILE))
}

/**
 * The record that {@link writeRecord} has written; undefined when there is none, or only another version can read it.
 * @throws RelayError `settings` where another user could have written it
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows what it has written
export function readRecord<Value extends { readonly v: 1 }>(file: string): Value | undefined {
  const text = readOwnFile(file)
  try {
    const record: Value = JSON.parse(text ?? '')
    return record.v === 1 ? record : undefined
  } catch {
    return undefined
  }
}

/** Has the profile remember its use now. Writes nothing where it does already: the disk may be full. @throws RelayError as {@link writeRecord}. */
export function saveProfile(folder: string, used: Omit<SavedProfile, 'v'>): void {
  const saved: SavedProfile = { v: 1, ...used }
  const file = path.join(folder, SAVED_FILE)
  if (isDeepStrictEqual(readSavedProfile(folder), saved)) closeOwnFile(file)
  else writeRecord(file, saved)
}

/** Whether the folder holds data of a profile. */
export function profileExists(folder: string): boolean {
  return databaseExists(folder) || existsSync(path.join(folder, SAVED_FILE))
}

/** The names of the profiles in a data folder, in order. @throws RelayError `settings` where another user could have made them */
export function listProfiles(home: string): readonly string[] {
  const names = readOwnFolder(home)
  return names.filter((name) => !name.startsWith('.') && profileExists(path.join(home, name))).toSorted()
}

/** Writes a record, as {@link writeOwnFile} does. @throws RelayError `settings` when the folder cannot be used, `storage` when the file cannot be written. */
export function writeRecord(file: string, record: { readonly v: 1 }): void {
  writeOwnFile(file, `${JSON.stringify(record)}\n`)
}
