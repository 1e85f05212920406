import type { Expectation, Json, Operation, Store } from './contract.js'
import type { Keychain } from './keychain.js'
import { encode, type Records } from './keychain-records.js'

export interface Writing {
  readonly file: Store
  readonly keychain: Keychain
  readonly records: Pick<Records, 'has' | 'live'>
  /** Throws when the lock may soon be another's. */
  readonly mustHold: () => void
}

/**
 * A write over both sides, by one who holds the lock. The keychain stores first and deletes last: wherever it is cut off, what
 * the file store says of a secret is missing or of an earlier one, but never there without a secret. A failure before
 * anything was deleted is undone, if the keychain lets us.
 */
export async function writeBoth(
  writing: Writing,
  operations: readonly Operation[],
  expected: readonly Expectation[],
): Promise<boolean> {
  const { file, keychain, records, mustHold } = writing
  const last = [...new Map(operations.map((operation) => [operation.key, operation])).values()]
  const secret = last.filter(({ key }) => records.has(key))
  const puts = secret.filter((operation) => operation.type === 'put')
  const wanted = expected.filter(({ key }) => records.has(key))
  const before = await readAll(keychain, [...secret, ...wanted])
  if (!wanted.every(({ key, value }) => isSame(records.live(before.get(key)), value))) return false

  const changed: string[] = []
  let written = false
  try {
    for (const put of puts) {
      mustHold()
      changed.push(put.key)
      await keychain.set(put.key, encode(put.value, put))
    }
    mustHold()
    const others = last.filter(({ key }) => !records.has(key))
    const otherwise = expected.filter(({ key }) => !records.has(key))
    written = await file.write([...others, ...(await leftovers(file, secret))], otherwise)
  } finally {
    if (!written) await restore(writing, before, changed).catch(() => {})
  }
  if (!written) return false
  const removed = secret.filter(({ type, key }) => type === 'delete' && before.get(key) !== undefined)
  for (const { key } of removed) {
    mustHold()
    await keychain.delete(key)
  }
  return true
}

async function readAll(
  keychain: Keychain,
  rows: readonly { readonly key: string }[],
): Promise<Map<string, string | undefined>> {
  const texts = new Map<string, string | undefined>()
  for (const key of new Set(rows.map(({ key }) => key))) texts.set(key, await keychain.get(key))
  return texts
}

async function restore(
  { keychain, mustHold }: Writing,
  before: ReadonlyMap<string, string | undefined>,
  keys: readonly string[],
): Promise<void> {
  for (const key of keys) {
    mustHold()
    const text = before.get(key)
    await (text === undefined ? keychain.delete(key) : keychain.set(key, text))
  }
}

/** Deletes secrets that the database has from before the keychain was chosen. */
async function leftovers(file: Store, secret: readonly Operation[]): Promise<Operation[]> {
  const there = await Promise.all(secret.map(({ key }) => file.get(key)))
  return secret.filter((_, i) => there[i] !== undefined).map(({ key }) => ({ type: 'delete', key }))
}

function isSame(stored: Json | undefined, expected: Json | undefined): boolean {
  return JSON.stringify(stored) === JSON.stringify(expected)
}
