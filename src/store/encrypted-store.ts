import type { Expectation, Json, Operation, Store } from './contract.js'
import { type RecordCipher, wrongKey } from './record-cipher.js'
import type { Sql, Step } from './sql.js'

/** A record that only the right key can read, so that a wrong one is found before anything is written. */
const CHECK_KEY = 'key-check'
const CHECK_VALUE = 'relay'

/** A store whose values cannot be read or changed with the database alone. Keys and expiry stay readable. It closes `store`. */
export function createEncryptedStore(store: Store, cipher: RecordCipher): Store {
  const put = (operation: Operation): Operation =>
    operation.type === 'delete'
      ? operation
      : { ...operation, value: cipher.encrypt(operation.key, operation.value) }
  /** What must be stored for the expectation to hold. A record may still be under the previous key. */
  const expectStored = async ({ key, value }: Expectation): Promise<Expectation> =>
    value === undefined
      ? { key, value }
      : { key, value: cipher.encryptLike(key, value, await store.get(key)) }
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
    write: async (operations, expected = []) =>
      store.write(operations.map(put), await Promise.all(expected.map(expectStored))),
    sweep: () => store.sweep(),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

/** Records that are encrypted again in one step. */
const PAGE = 500

/**
 * Checks that the key is the one of the store's records, or makes it that of a new store. What is under the previous key is
 * encrypted again with the current one, so that the previous one is not needed any more. `store` is the one in `sql`.
 * @throws RelayError `settings` for another key, with no change; `storage`.
 */
export async function adoptKey(sql: Sql, store: Store, cipher: RecordCipher): Promise<void> {
  await store.putIfAbsent(CHECK_KEY, cipher.encrypt(CHECK_KEY, CHECK_VALUE))
  const check = await store.get(CHECK_KEY)
  if (check === undefined || cipher.decrypt(CHECK_KEY, check) !== CHECK_VALUE) throw wrongKey()
  if (cipher.isCurrent(check)) return
  for (let after = '', count = PAGE; count === PAGE;) {
    const rows = await sql.query<Row>(
      `SELECT key, value FROM kv WHERE key > ? AND key <> ? ORDER BY key LIMIT ${PAGE}`,
      [after, CHECK_KEY],
    )
    await encryptAgain(sql, cipher, rows)
    count = rows.length
    after = rows.at(-1)?.key ?? after
  }
  // Last: it is under the current key only when all others are.
  await encryptAgain(sql, cipher, [{ key: CHECK_KEY, value: JSON.stringify(check) }])
}

type Row = { readonly key: string; readonly value: string }

/** A record that was changed meanwhile is under its writer's key. */
async function encryptAgain(sql: Sql, cipher: RecordCipher, rows: readonly Row[]): Promise<void> {
  const steps = rows.flatMap(({ key, value }): readonly Step[] => {
    const stored: Json = JSON.parse(value)
    if (cipher.isCurrent(stored)) return []
    const again = JSON.stringify(cipher.encrypt(key, cipher.decrypt(key, stored)))
    return [{ sql: 'UPDATE kv SET value = ? WHERE key = ? AND value = ?', values: [again, key, value] }]
  })
  await sql.transaction(steps)
}
