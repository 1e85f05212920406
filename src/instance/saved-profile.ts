import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { isStoreText, PROVIDER_NAMES, type ProviderName, type StoreText } from '../base/settings.js'
import { databaseExists } from '../store/open.js'
import { isText, shape } from '../store/shape.js'
import { writeWhole } from './write-file.js'

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
