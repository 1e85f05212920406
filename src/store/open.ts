import { basename } from 'node:path'
import type { StoreKind } from '../base/settings.js'
import { silentLog, type Log } from '../base/log.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Store } from './contract.js'
import type { Database } from './database.js'
import type { Engine } from './engine.js'
import type { ProcessOptions } from './keychain-process.js'
import { createStore } from './kv.js'
import { createMemoryEngine } from './memory.js'
import { createTable } from './table.js'

export interface OpenOptions {
  readonly kind: StoreKind
  /** The profile's folder, which bears its name; made (0700) when it is not there. Unused by `memory`. */
  readonly folder: string
  readonly clock?: Clock | undefined
  readonly log?: Log | undefined
  readonly keychain?: KeychainSettings | undefined
}

/** What tests set of a keychain. */
export interface KeychainSettings extends ProcessOptions {
  /** How the keys begin that it keeps. */
  readonly prefixes?: readonly string[] | undefined
}

/** Tokens, and what renews them. */
const SECRETS = ['token:', 'refresh:']

/**
 * Opens a profile's database. Several processes may have the same folder open.
 * @throws RelayError `storage`, naming the folder, when it cannot be made or holds something that is no database.
 */
export async function openDatabase(options: OpenOptions): Promise<Database> {
  const { kind, folder, clock = systemClock, log = silentLog } = options
  const engine = kind === 'memory' ? createMemoryEngine() : await openFile(folder, log)
  const store = createStore(engine, clock)
  return createDatabase(engine, kind === 'keychain' ? await withKeychain(engine, store, options) : store)
}

/** lmdb is native code: it is loaded by those that need it. */
async function openFile(folder: string, log: Log): Promise<Engine> {
  const { openFileEngine } = await import('./file.js')
  return openFileEngine(folder, log)
}

async function withKeychain(engine: Engine, file: Store, options: OpenOptions): Promise<Store> {
  const { folder, clock = systemClock, keychain: { prefixes = SECRETS, ...helper } = {} } = options
  const [{ createKeychain }, { createKeychainStore }, { createLock }] = await Promise.all([
    import('./keychain.js'),
    import('./keychain-store.js'),
    import('./lock.js'),
  ])
  return createKeychainStore({
    file,
    keychain: createKeychain({ ...helper, service: `relay:${basename(folder)}` }),
    lock: createLock(engine),
    clock,
    prefixes,
  })
}

function createDatabase(engine: Engine, store: Store): Database {
  return {
    store,
    table: (name, options) => createTable(engine, name, options),
    commit: (writes) => engine.write(writes),
    transact: (decide) => engine.transact(decide),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}
