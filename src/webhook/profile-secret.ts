import { Secret } from '../base/secret.js'
import type { KeyKind } from '../senders/algorithms.js'
import { keyKind, makeKeyPair, readKeyPair } from '../senders/keys.js'
import type { SourceSettings } from '../base/settings.js'
import { SETTINGS_NOTICE, type Store, type StoreReader, type StoreUpdater } from '../store/kv.js'
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

/** Reads the profile's webhook secret, or stores `made`. @throws RelayError `storage` */
export async function makeProfileSecret(store: StoreUpdater, made: Secret): Promise<Secret> {
  const value = await store.update(function* (records): Tx<string> {
    const found = yield* records.get(KEY)
    if (typeof found === 'string') return found
    yield* records.put(KEY, made.reveal())
    return made.reveal()
  })
  return new Secret(value)
}

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
  }, SETTINGS_NOTICE)
  return earlier === null ? undefined : new Secret(earlier)
}

/** Prefix of the records of relay's own key pairs. They are as plain or encrypted as the webhook secret. */
const KEY_PREFIX = 'source-key:'

/** Reads relay's own key for a source. Undefined if it has made none of this kind. @throws RelayError `storage` */
export async function readOwnKey(
  store: StoreReader | undefined,
  source: string,
  kind: KeyKind,
): Promise<Secret | undefined> {
  return ownKeyOf(await store?.get(KEY_PREFIX + source), kind)
}

function ownKeyOf(value: unknown, kind: KeyKind): Secret | undefined {
  const own = typeof value === 'string' ? new Secret(value) : undefined
  return own && keyKind(readKeyPair(own).publicKey) === kind ? own : undefined
}

/** Reads relay's own key for a source, or makes and stores one. @throws RelayError `storage` */
export async function makeOwnKey(store: StoreUpdater, source: string, kind: KeyKind): Promise<Secret> {
  const made = makeKeyPair(kind)
  return store.update(function* (records): Tx<Secret> {
    const found = ownKeyOf(yield* records.get(KEY_PREFIX + source), kind)
    if (found) return found
    yield* records.put(KEY_PREFIX + source, made.reveal())
    return made
  })
}

/** Removes a source with its secrets. False if the profile has none of that name. @throws RelayError `storage` */
export async function removeProfileSource(store: StoreUpdater, name: string): Promise<boolean> {
  return store.update(function* (records): Tx<boolean> {
    yield* records.delete(KEY_PREFIX + name)
    return yield* records.delete(SOURCE_PREFIX + name)
  }, SETTINGS_NOTICE)
}
