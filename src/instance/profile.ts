import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { sleep } from '../base/wait.js'
import { errorReason, RelayError } from '../base/errors.js'
import { isStoreText, PROVIDER_NAMES, type ProviderName, type StoreText } from '../base/settings.js'
import { makeFolder } from '../base/make-folder.js'
import { databaseExists } from '../store/open.js'
import { isText, shape } from '../json/shape.js'

/** Its file in the profile's folder, which a running `serve` has locked. */
export const LOCK_FILE = 'serve.lock'
/** A command may hold it for a moment, to find out whether a relay runs. Milliseconds. */
const PATIENCE_MS = 250
const RETRY_MS = 10

/**
 * Takes a profile for this process, for as long as it lives: the lock is the operating system's, so that it is free the moment this process
 * is gone, and held also while it is stopped.
 * @throws RelayError `unavailable` when another process has it, with what `owner` says of that; `storage`
 */
export async function lockProfile(folder: string, owner: () => string): Promise<Disposable> {
  makeFolder(folder)
  const { lockFile } = await import('../store/sqlite.js')
  for (const until = performance.now() + PATIENCE_MS; ; await sleep(RETRY_MS)) {
    const lock = lockFile(path.join(folder, LOCK_FILE))
    if (lock) return lock
    if (performance.now() > until)
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

const parseSaved = shape<SavedProfile>({
  v: (value) => value === 1,
  store: (value) => value !== 'memory' && isStoreText(value),
  provider: (value) => value === null || PROVIDER_NAMES.some((known) => known === value),
  providerUrl: (value) => value === null || isText(value),
  sandbox: (value) => typeof value === 'boolean',
})

/** Undefined when the profile in this folder remembers nothing, or only an unknown version can read it. */
export function readSavedProfile(folder: string): SavedProfile | undefined {
  try {
    return parseSaved(JSON.parse(readFileSync(path.join(folder, SAVED_FILE), 'utf8')))
  } catch {
    return undefined
  }
}

/** Has the profile remember its use now. @throws RelayError as {@link writeWhole}. */
export function saveProfile(folder: string, used: Omit<SavedProfile, 'v'>): void {
  const saved: SavedProfile = { v: 1, ...used }
  writeWhole(path.join(folder, SAVED_FILE), `${JSON.stringify(saved)}\n`)
}

/** Whether the folder holds data of a profile. */
export function profileExists(folder: string): boolean {
  return databaseExists(folder) || existsSync(path.join(folder, SAVED_FILE))
}

/** The names of the profiles in a data folder, in order. */
export function listProfiles(home: string): readonly string[] {
  let names: string[]
  try {
    names = readdirSync(home)
  } catch {
    return []
  }
  return names.filter((name) => !name.startsWith('.') && profileExists(path.join(home, name))).toSorted()
}

/**
 * Writes a small file that only its owner can read (0600), and its folder. A reader sees the old file or the new one.
 * @throws RelayError `settings` when the folder cannot be made, `storage` when the file cannot be written.
 */
export function writeWhole(file: string, text: string): void {
  makeFolder(path.dirname(file))
  const draft = `${file}.draft`
  try {
    writeFileSync(draft, text, { mode: 0o600 })
    renameSync(draft, file)
  } catch (cause) {
    rmSync(draft, { force: true, recursive: true })
    const why = errorReason(cause)
    throw new RelayError('storage', `${file} cannot be written (${why})`, { cause })
  }
}
