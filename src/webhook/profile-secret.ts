import { randomBytes } from 'node:crypto'
import { Secret } from '../base/secret.js'
import type { SourceSettings } from '../base/settings.js'
import type { Store, StoreReader, StoreUpdater } from '../store/kv.js'
import type { Tx } from '../store/sql.js'

/**
 * Key of the webhook secret's record. It is plain on SQLite, so that deliveries are verified while the keychain is
 * locked, and encrypted in a shared store.
 */
const KEY = 'webhook-secret'

/**
 * Reads the webhook secret that relay made for the profile. Undefined if it has made none. @throws RelayError `storage`
 */
export async function readProfileSecret(store: StoreReader | undefined): Promise<Secret | undefined> {
  const value = await store?.get(KEY)
  return typeof value === 'string' ? new Secret(value) : undefined
}

/** Reads the profile's webhook secret, or stores `made`, by default a random one. @throws RelayError `storage` */
export async function makeProfileSecret(
  store: StoreUpdater,
  made: Secret = new Secret(randomBytes(32).toString('hex')),
): Promise<Secret> {
  const value = await store.update(function* (records): Tx<string> {
    const found = yield* records.get(KEY)
    if (typeof found === 'string') return found
    yield* records.put(KEY, made.reveal())
    return made.reveal()
  })
  return new Secret(value)
}

/**
 * In a notice to the other relays of a profile, where the numbers of entries are: that its sources have changed. No entry
 * has this number.
 */
export const SOURCES_CHANGED = 0
const NOTICE = { announces: [SOURCES_CHANGED] }

/** Prefix of the records that `relay source add` stores. They are as plain or encrypted as the webhook secret. */
const SOURCE_PREFIX = 'source-secret:'

interface SourceRecord {
  readonly scheme: string
  readonly current: string
  readonly previous: string | null
}

/** Reads the profile's sources with their secrets. @throws RelayError `storage` */
export async function readProfileSources(store: Store): Promise<SourceSettings[]> {
  const keys = await store.list(SOURCE_PREFIX)
  const found = await Promise.all(keys.map(async (key) => [key, await store.get<SourceRecord>(key)] as const))
  return found.flatMap(([key, record]) => {
    if (!record) return []
    const { scheme, current, previous } = record
    const secrets = {
      current: new Secret(current),
      previous: previous === null ? undefined : new Secret(previous),
    }
    return { name: key.slice(SOURCE_PREFIX.length), scheme, secrets }
  })
}

/**
 * Stores a source with its secret. Returns the replaced secret, which stays valid as the previous one. @throws
 * RelayError `storage`
 */
export async function putProfileSource(
  store: StoreUpdater,
  { name, scheme }: { readonly name: string; readonly scheme: string },
  secret: Secret,
): Promise<Secret | undefined> {
  const current = secret.reveal()
  const key = SOURCE_PREFIX + name
  const earlier = await store.update(function* (records): Tx<string | null> {
    const found = yield* records.get<SourceRecord>(key)
    // Storing the same secret again is not a rotation.
    const previous = (found?.current === current ? found.previous : found?.current) ?? null
    yield* records.put(key, { scheme, current, previous })
    return previous
  }, NOTICE)
  return earlier === null ? undefined : new Secret(earlier)
}

/** Removes a source with its secrets. False if the profile has none of that name. @throws RelayError `storage` */
export async function removeProfileSource(store: StoreUpdater, name: string): Promise<boolean> {
  return store.update((records) => records.delete(SOURCE_PREFIX + name), NOTICE)
}
