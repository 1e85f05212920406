import { chmodSync, existsSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { StoreKind } from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Store } from './contract.js'
import type { Database } from './database.js'
import type { ProcessOptions } from './keychain-process.js'
import { createStore } from './kv.js'
import { makeFolder } from './make-folder.js'
import type { Sql } from './sql.js'
import { cannotMake, storageError } from './storage-error.js'

/** The database's file in the profile's folder. SQLite keeps two more next to it. */
const FILE = 'relay.db'

export interface OpenOptions {
  readonly kind: StoreKind
  /** The profile's folder, which has its name; made (0700) when it is missing. Unused by `memory`. */
  readonly folder: string
  readonly clock?: Clock | undefined
  readonly keychain?: KeychainSettings | undefined
  /** Keep the database in a thread of its own: for a process that has other work while the disk is busy. Default: false. */
  readonly thread?: boolean | undefined
  /** Milliseconds to wait while another process holds the database, without `thread`. Default: 3,500. */
  readonly patience?: number | undefined
}

/** What tests set of a keychain. */
export interface KeychainSettings extends ProcessOptions {
  /** How the keys begin that it keeps. */
  readonly prefixes?: readonly string[] | undefined
}

/** Tokens, and what renews them. */
const SECRETS = ['token:', 'refresh:']

/** Whether the profile with this folder has a database. */
export function databaseExists(folder: string): boolean {
  return existsSync(join(folder, FILE))
}

/** The path of the database in a profile's folder. */
export function databaseFile(folder: string): string {
  return join(folder, FILE)
}

/** Every file of the database in a profile's folder. */
export function databaseFiles(folder: string): readonly string[] {
  return ['', '-wal', '-shm'].map((end) => databaseFile(folder) + end)
}

/**
 * Opens a profile's database. Several processes may have the same folder open.
 * @throws RelayError `storage`, naming the file and what to do, when it cannot be opened; `settings` when the folder cannot
 * be made.
 */
export async function openDatabase(options: OpenOptions): Promise<Database> {
  const { kind, clock = systemClock } = options
  const sql = await openSql(options)
  const file = createStore(sql, clock)
  const store = kind === 'keychain' ? await withKeychain(sql, file, options) : file
  return { store, sql, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
}

/** SQLite is native code: it is loaded by those that need it. */
async function openSql({ kind, folder, thread = false, patience }: OpenOptions): Promise<Sql> {
  if (kind === 'memory') {
    const { MEMORY, openEngine } = await import('./open-engine.js')
    return openEngine(MEMORY)
  }
  const file = databaseFile(folder)
  makeFolder(folder)
  closeToOthers(folder, file)
  if (thread) return (await import('./in-thread.js')).openInThread(file)
  return (await import('./open-engine.js')).openEngine(file, patience)
}

/** @throws RelayError `storage` */
function closeToOthers(folder: string, file: string): void {
  if ((statSync(folder).mode & 0o777) === 0o700) return
  try {
    chmodSync(folder, 0o700)
  } catch (error) {
    throw storageError(cannotMake(error), file)
  }
}

async function withKeychain(sql: Sql, file: Store, options: OpenOptions): Promise<Store> {
  const { folder, clock = systemClock, keychain: { prefixes = SECRETS, ...helper } = {} } = options
  const [{ createKeychain }, { createKeychainStore }, { createLock }] = await Promise.all([
    import('./keychain.js'),
    import('./keychain-store.js'),
    import('./lock.js'),
  ])
  return createKeychainStore({
    file,
    keychain: createKeychain({ ...helper, service: `relay:${basename(folder)}` }),
    lock: createLock(createStore(sql, systemClock)),
    clock,
    prefixes,
  })
}
