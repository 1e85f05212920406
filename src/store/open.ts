import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { profileCommand } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { makeOwnFolder } from '../base/own-files.js'
import { Secret } from '../base/secret.js'
import type { StorePlace } from '../base/settings.js'
import { SharedStore } from '../base/shared-store.js'
import type { Clock } from '../base/time.js'
import { withLock } from './lock.js'
import { createStore, type RecordCipher, type Store } from './kv.js'
import { copiesOf } from './copies.js'
import type { Postgres } from './postgres.js'
import type { MigrationOptions } from './schema.js'
import type { Sql } from './sql.js'

/** A profile's data: a relational database, and the key-value stores in it. */
export interface Database extends AsyncDisposable {
  readonly sql: Sql
  readonly store: Store
  /** Store for tokens and other secrets, in the same table. With the keychain, encrypted with the key stored there. */
  readonly secrets: Store
  /** The PostgreSQL database, if several relays share the data. */
  readonly shared: Postgres | undefined
  /** Deletes the copy of migrated data that an earlier start kept. Called once a start has succeeded. */
  removeCopies(): void
  /** True if another process has written to the profile's own data since it was opened. */
  isShared(): boolean
  /** Re-encrypts records of the previous key with the current one. Part of a sweep. */
  rotate(): Promise<void>
}

export interface Patience {
  /** Milliseconds to wait while another process writes. Default: 3,500. */
  readonly patience?: number | undefined
}

export interface OpenDatabaseOptions extends Patience {
  readonly kind: StorePlace
  /**
   * The profile's folder, whose name is the profile's; created with mode 0700 if missing. Not used by `memory` and a
   * shared store.
   */
  readonly folder: string
  readonly clock?: Clock | undefined
  /** Environment of the keychain's helper process. Default: that of this process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /**
   * Migrates data of an earlier version. Only for a caller that has the profile to itself, such as `serve`. Default:
   * such data is refused.
   */
  readonly migrate?: boolean
  /** Command line that migrates, for the message. Default: `relay serve` with the profile's name, without a sandbox. */
  readonly startCommand?: string
  /** Called with a message when the keychain waits for the user, and when data is migrated. */
  readonly onSlow?: ((text: string) => void) | undefined
  /** Simulates a full disk in tests: every write fails while `fails` is true. */
  readonly fault?: { readonly fails: boolean } | undefined
  /** Creates the profile's data if a shared store has none. A folder is always created. Default: true. */
  readonly create?: boolean | undefined
}

/** Path of the database in a profile's folder. */
export function databaseFile(folder: string): string {
  return join(folder, 'relay.db')
}

/** Every file of the database in a profile's folder, including copies of migrated data. */
export function databaseFiles(folder: string): readonly string[] {
  const file = databaseFile(folder)
  return [...['', '-wal', '-shm'].map((end) => file + end), ...copiesOf(file)]
}

/** True if the profile with this folder has a database. */
export function databaseExists(folder: string): boolean {
  return existsSync(databaseFile(folder))
}

/** True if the profile with this folder can have data. Whether a shared store has any, only its server knows. */
export function mayHaveData(kind: StorePlace, folder: string): boolean {
  return kind instanceof SharedStore || (kind !== 'memory' && databaseExists(folder))
}

/**
 * Opens a profile's database. Several processes may have the same folder open.
 * @throws RelayError `storage`, naming the file and what to do, when it cannot be opened; `settings` when the folder
 * cannot be created or another user can change it or its files, for data of another version that cannot be migrated or
 * that the caller may not migrate, and for a missing or wrong key; `unavailable` while relays of an earlier version use
 * a shared store
 */
export async function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  const database = await (options.kind instanceof SharedStore
    ? openShared(options.kind, options)
    : openLocal(options))
  const { sql } = database
  const { fault } = options
  if (!fault) return database
  const write = sql.write.bind(sql)
  sql.write = async (...args) => {
    if (fault.fails) throw new RelayError('storage', 'no room', { forClients: true })
    return write(...args)
  }
  return database
}

function migrationOf({
  folder,
  migrate = false,
  startCommand,
  onSlow = () => {},
}: OpenDatabaseOptions): MigrationOptions {
  return { migrate, startCommand: startCommand ?? profileCommand(basename(folder))('serve'), onSlow }
}

/**
 * The record of `relay setup` (the registered client and App) stays readable, because every command reads it at its
 * start without the keychain.
 */
const isPlain = (key: string): boolean => key === 'setup'

async function openLocal(options: OpenDatabaseOptions): Promise<Database> {
  const { kind, folder, clock, patience } = options
  const migration = migrationOf(options)
  // Loaded here because it is native code, which a shared store does not need.
  const { MEMORY, openSqlite } = await import('./sqlite.js')
  if (kind !== 'memory') makeOwnFolder(folder)
  const sql = await openSqlite(kind === 'memory' ? MEMORY : databaseFile(folder), { patience, migration })
  const store = createStore(sql, { clock })
  const cipher = (): Promise<RecordCipher> => keychainCipher(sql, store, options)
  return {
    sql,
    store,
    secrets: kind === 'keychain' ? createStore(sql, { clock, cipher, isPlain }) : store,
    shared: undefined,
    removeCopies: () => sql.removeCopies(),
    isShared: () => sql.isShared(),
    rotate: async () => {},
    [Symbol.asyncDispose]: () => sql[Symbol.asyncDispose](),
  }
}

async function openShared(kind: SharedStore, options: OpenDatabaseOptions): Promise<Database> {
  const { folder, clock, create } = options
  const { keys } = kind.secrets
  if (!keys) throw new RelayError('settings', 'A shared store needs RELAY_TOKEN_KEY')
  const [{ openPostgres }, { checkKey, createCipher, rotateKey }] = await Promise.all([
    import('./postgres.js'),
    import('./cipher.js'),
  ])
  const profile = basename(folder)
  const sql = await openPostgres({ store: kind, profile, create, migration: migrationOf(options) })
  try {
    const cipher = createCipher(keys, profile)
    const store = createStore(sql, { clock, cipher: async () => cipher })
    await checkKey(store)
    return {
      sql,
      store,
      secrets: store,
      shared: sql,
      removeCopies: () => {},
      isShared: () => true,
      rotate: () => rotateKey(sql, cipher),
      [Symbol.asyncDispose]: () => sql[Symbol.asyncDispose](),
    }
  } catch (error) {
    await sql[Symbol.asyncDispose]()
    throw error
  }
}

/**
 * Opens the cipher with the key in the keychain, or creates the key if the profile has no encrypted record yet.
 * @throws RelayError `storage`
 */
async function keychainCipher(sql: Sql, store: Store, options: OpenDatabaseOptions): Promise<RecordCipher> {
  const [{ getKey, setKey }, { checkKey, createCipher, isEncrypted }] = await Promise.all([
    import('./keychain.js'),
    import('./cipher.js'),
  ])
  const checked = async (key: string): Promise<RecordCipher> => {
    const cipher = createCipher({ current: new Secret(key) }, basename(options.folder))
    await checkKey(createStore(sql, { clock: options.clock, cipher: async () => cipher })).catch(
      (error: unknown) => {
        const isOther = error instanceof RelayError && error.kind === 'settings'
        throw isOther ? new RelayError('storage', `${OTHER_KEY} ${signInAnew(options)}`) : error
      },
    )
    return cipher
  }
  const find = async (): Promise<RecordCipher | undefined> => {
    const found = await getKey(options)
    // A locked keychain looks like one without the key. A new key would make every token unreadable.
    if (found === undefined && (await isEncrypted(sql)))
      throw new RelayError('storage', `${NO_KEY} ${signInAnew(options)}`)
    return found === undefined ? undefined : checked(found)
  }
  const make = async (): Promise<RecordCipher> => {
    const made = randomBytes(32).toString('base64')
    await setKey(options, made)
    return checked(made)
  }
  const what = 'making the key of the keychain'
  return (await find()) ?? withLock(store, 'lock:keychain', { what }, async () => (await find()) ?? make())
}

const NO_KEY =
  'The keychain gives no key for this profile: it is locked, or the key was removed. Unlock it; if the key is gone,'
const OTHER_KEY =
  'The key in the keychain is not the one that the tokens of this profile are encrypted with. Put that one back, or'

function signInAnew({ folder }: OpenDatabaseOptions): string {
  return `run ${profileCommand(basename(folder))('reset')} and sign in again`
}

/** Removes the profile's key from the keychain. @throws RelayError `storage` */
export async function removeKey(folder: string): Promise<void> {
  const { deleteKey } = await import('./keychain.js')
  await deleteKey({ folder })
}
