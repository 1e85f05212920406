import type { Expectation, Json, Operation, Store } from './contract.js'
import { createRecords, type RecordsParts } from './keychain-records.js'
import { writeBoth } from './keychain-write.js'
import { checkKey, checkPrefix } from './kv.js'
import { KEYCHAIN_USED } from './keychain-used.js'
import { LOCK_KEY } from './lock.js'

export interface KeychainStoreParts extends RecordsParts {
  /** Keeps all other records. */
  readonly file: Store
}

/**
 * A store some of whose records lie in the keychain, and all else in a file store; it closes both. A keychain knows no
 * transactions, so writers take turns with a lock; what is left of a write that is cut off, {@link writeBoth} says.
 */
export function createKeychainStore({ file, ...parts }: KeychainStoreParts): Store {
  const { keychain, lock } = parts
  const records = createRecords(parts)

  async function write(
    operations: readonly Operation[],
    expected: readonly Expectation[] = [],
  ): Promise<boolean> {
    const rows = [...operations, ...expected]
    for (const { key } of rows) checkKey(key)
    if (!rows.some(({ key }) => records.has(key))) return file.write(operations, expected)
    records.expect(operations)
    if (operations.some(({ type, key }) => type === 'put' && records.has(key))) await noteUse()
    return lock.hold((mustHold) => writeBoth({ file, keychain, records, mustHold }, operations, expected))
  }

  let noted = false
  /** Before the first secret is there. */
  async function noteUse(): Promise<void> {
    if (!noted) await file.put(KEYCHAIN_USED, true)
    noted = true
  }

  async function take(key: string): Promise<Json | undefined> {
    for (;;) {
      const value = await records.get(key)
      if (value === undefined || (await write([{ type: 'delete', key }], [{ key, value }]))) return value
    }
  }

  return {
    get: async (key) => (records.has(key) ? records.get(key) : file.get(key)),
    async put(key, value, expiry) {
      await write([{ type: 'put', key, value, ...expiry }])
    },
    putIfAbsent: async (key, value, expiry) =>
      write([{ type: 'put', key, value, ...expiry }], [{ key, value: undefined }]),
    take: async (key) => (records.has(key) ? take(key) : file.take(key)),
    delete: async (key) => (records.has(key) ? (await take(key)) !== undefined : file.delete(key)),
    async list(prefix) {
      checkPrefix(prefix)
      // A record of the keychain's that lies in the file store is from before the keychain was chosen.
      const others = (await file.list(prefix)).filter(
        (key) => !records.has(key) && key !== LOCK_KEY && key !== KEYCHAIN_USED,
      )
      const found = await records.list(prefix)
      return [...new Set([...others, ...found])].toSorted(byBytes)
    },
    write,
    sweep: async () => (await file.sweep()) + (await records.sweep()),
    async [Symbol.asyncDispose]() {
      await lock[Symbol.asyncDispose]()
      await keychain[Symbol.asyncDispose]()
      await file[Symbol.asyncDispose]()
    },
  }
}

function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other))
}
