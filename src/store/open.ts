import { chmodSync, existsSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { RelayError } from '../base/errors.js'
import type { StorePlace } from '../base/settings.js'
import { SharedStore } from '../base/shared-store.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Store } from './contract.js'
import type { Database } from './database.js'
import type { ProcessOptions } from './keychain-process.js'
import { createStore, expectStep } from './kv.js'
import { makeFolder } from './make-folder.js'
import type { Sql } from './sql.js'
import { cannotMake, storageError } from './storage-error.js'

/** The database's file in the profile's folder. SQLite keeps two more next to it. */
const FILE = 'relay.db'

export interface OpenOptions {
  readonly kind: StorePlace
  /** The profile's folder, which has its name; made (0700) when it is missing. `memory` and a shared store have none. */
  readonly folder: string
  readonly clock?: Clock | undefined
  readonly keychain?: KeychainSettings | undefined
  /** Keep the database in a thread of its own: for a process that has other work while the disk is busy. Default: false. */
  readonly thread?: boolean | undefined
  /** Make the profile's data where a shared store has none; a folder is always made. Default: true. */
  readonly create?: boolean | undefined
  /** While it says so, each transaction fails as if the disk were full. For tests. */
  readonly fault?: { readonly fails: boolean } | undefined
  /** Milliseconds to wait while another process holds the database, without `thread`. Default: 3,500. */
  readonly patience?: number | undefined
}

/** What tests set of a keychain. */
export interface KeychainSettings extends ProcessOptions {
  /** How the keys begin that it keeps. */
  readonly prefixes?: readonly string[] | undefined
}

/** Tokens, what renews them, and what `relay setup` registered. */
const SECRETS = ['token:', 'refresh:', 'setup:']

/** What to open to read what no keychain holds. */
export function withoutKeychain(kind: StorePlace): StorePlace {
  return kind === 'keychain' ? 'file' : kind
}

/** Whether the profile with this folder can have data: of a shared store only the server knows. */
export function mayHaveData(kind: StorePlace, folder: string): boolean {
  return kind instanceof SharedStore || (kind !== 'memory' && databaseExists(folder))
}

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
  const sql = withFault(await openSql(options), options.fault)
  const file = createStore(sql, clock)
  if (kind instanceof SharedStore) return encrypted(sql, file, kind, options)
  const store = kind === 'keychain' ? await withKeychain(sql, file, options) : file
  return {
    store,
    sql,
    expectStep: (expected) => (now) => expectStep(expected, now),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

function withFault(sql: Sql, fault: OpenOptions['fault']): Sql {
  if (!fault) return sql
  const transaction: Sql['transaction'] = async (...args) => {
    if (fault.fails) throw new RelayError('storage', 'no room')
    return sql.transaction(...args)
  }
  return { ...sql, transaction, [Symbol.asyncDispose]: () => sql[Symbol.asyncDispose]() }
}

/** Closes the database when the key is missing or another one. */
async function encrypted(
  sql: Sql,
  file: Store,
  { secrets: { keys } }: SharedStore,
  { folder }: OpenOptions,
): Promise<Database> {
  const [{ createRecordCipher }, { checkEncryptionKey, createEncryptedStore }] = await Promise.all([
    import('./record-cipher.js'),
    import('./encrypted-store.js'),
  ])
  try {
    if (!keys) throw new RelayError('settings', 'A shared store needs RELAY_TOKEN_KEY')
    const cipher = createRecordCipher(keys, basename(folder))
    await checkEncryptionKey(file, cipher)
    const store = createEncryptedStore({ store: file, sql, cipher })
    return {
      store,
      sql,
      expectStep({ key, value }) {
        // Encrypted once: the journal uses the same step for each delivery.
        const expected = value === undefined ? { key, value } : cipher.expect(key, value)
        return (now) => expectStep(expected, now)
      },
      [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
    }
  } catch (error) {
    await file[Symbol.asyncDispose]()
    throw error
  }
}

/** SQLite is native code: it is loaded by those that need it. */
async function openSql({ kind, folder, thread = false, create, patience }: OpenOptions): Promise<Sql> {
  if (kind instanceof SharedStore) {
    const { openPostgres } = await import('./postgres/open.js')
    return openPostgres({ store: kind, profile: basename(folder), create })
  }
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
