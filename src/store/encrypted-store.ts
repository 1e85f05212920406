import type { Expectation, Json, Operation, Store } from './contract.js'
import { type RecordCipher, wrongKey } from './record-cipher.js'
import { rotate } from './rotate.js'
import type { Sql } from './sql.js'

/** A record that only the right key can read, so that a wrong one is found before anything is written. */
const CHECK_KEY = 'key-check'
const CHECK_VALUE = 'relay'

export interface EncryptedParts {
  readonly store: Store
  /** The database that `store` is in. */
  readonly sql: Sql
  readonly cipher: RecordCipher
}

/**
 * A store whose values cannot be read or changed with the database alone. Keys and expiry stay readable. Its sweep also encrypts
 * again what is under the previous key. It closes `store`.
 */
export function createEncryptedStore({ store, sql, cipher }: EncryptedParts): Store {
  const put = (operation: Operation): Operation =>
    operation.type === 'delete'
      ? operation
      : { ...operation, value: cipher.encrypt(operation.key, operation.value) }
  const expectStored = ({ key, value }: Expectation): Expectation =>
    value === undefined ? { key, value } : cipher.expect(key, value)
  const decrypt = (key: string, stored: Json | undefined): Json | undefined =>
    stored === undefined ? undefined : cipher.decrypt(key, stored)

  return {
    get: async (key) => decrypt(key, await store.get(key)),
    put: async (key, value, expiry) => store.put(key, cipher.encrypt(key, value), expiry),
    putIfAbsent: async (key, value, expiry) => store.putIfAbsent(key, cipher.encrypt(key, value), expiry),
    take: async (key) => decrypt(key, await store.take(key)),
    delete: (key) => store.delete(key),
    async list(prefix) {
      return (await store.list(prefix)).filter((key) => key !== CHECK_KEY)
    },
    write: async (operations, expected = []) => store.write(operations.map(put), expected.map(expectStored)),
    async sweep() {
      const swept = await store.sweep()
      await rotate(sql, cipher)
      return swept
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

/**
 * Checks that the current or the previous key is the one of the store's records, or makes the current one that of a new store.
 * @throws RelayError `settings` for another key, with no change; `storage`.
 */
export async function checkEncryptionKey(store: Store, cipher: RecordCipher): Promise<void> {
  const check = (await store.get(CHECK_KEY)) ?? (await makeCheck(store, cipher))
  if (check === undefined || cipher.decrypt(CHECK_KEY, check) !== CHECK_VALUE) throw wrongKey()
}

/** What is there afterwards: several relays may start at once. */
async function makeCheck(store: Store, cipher: RecordCipher): Promise<Json | undefined> {
  await store.putIfAbsent(CHECK_KEY, cipher.encrypt(CHECK_KEY, CHECK_VALUE))
  return store.get(CHECK_KEY)
}
