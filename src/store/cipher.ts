import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import type { TokenKeys } from '../base/shared-store.js'
import { changedRecord, type Json, type RecordCipher, type StoreUpdater } from './kv.js'
import { fetchRows, type Sql, type Tx } from './sql.js'

/** AES-256-GCM (NIST SP 800-38D) with a random nonce of 96 bits and a tag of 128. Lengths in bytes. */
const NONCE = 12
const TAG = 16
/** Hex digits of a key's id: enough to distinguish two keys, and too few to reveal anything of the key. */
const ID_DIGITS = 8

/**
 * Creates the cipher of a profile's records. `place`, the profile's name, is authenticated with each record, so that a
 * record cannot be moved to another profile or key.
 */
export function createCipher(keys: TokenKeys, place: string): RecordCipher {
  const current = derive(keys.current)
  const previous = keys.previous && derive(keys.previous)
  return {
    encrypt(recordKey, value) {
      const nonce = randomBytes(NONCE)
      const cipher = createCipheriv('aes-256-gcm', current.encryption, nonce).setAAD(
        context(place, recordKey),
      )
      const text = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()])
      const data = Buffer.concat([nonce, text, cipher.getAuthTag()])
      return `${prefixOf(current)}${data.toString('base64')}"}`
    },
    decrypt(recordKey, stored) {
      const [, id, base64] = /^\{"v":2,"key":"([0-9a-f]+)","data":"([A-Za-z0-9+/=]+)"\}$/.exec(stored) ?? []
      if (id === undefined || base64 === undefined) throw changedRecord(recordKey)
      const key = [current, previous].find((each) => each?.id === id)
      if (!key) throw new RelayError('settings', WRONG_KEY)
      try {
        return open(key.encryption, context(place, recordKey), Buffer.from(base64, 'base64'))
      } catch {
        throw changedRecord(recordKey)
      }
    },
    currentPrefix: prefixOf(current),
    previousPrefix: previous && prefixOf(previous),
  }
}

const WRONG_KEY =
  'RELAY_TOKEN_KEY is not the key that this profile is encrypted with. Set the same as on the other relays; after a change, set the earlier one as RELAY_TOKEN_KEY_PREVIOUS'

interface Derived {
  readonly id: string
  readonly encryption: Buffer
}

function derive(key: Secret): Derived {
  const secret = Buffer.from(key.reveal(), 'base64')
  const part = (use: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', `relay ${use}`, 32))
  return { id: part('key id').toString('hex').slice(0, ID_DIGITS), encryption: part('encryption') }
}

function prefixOf({ id }: Derived): string {
  return `{"v":2,"key":"${id}","data":"`
}

function context(place: string, recordKey: string): Buffer {
  return Buffer.from(JSON.stringify(['relay', place, recordKey]))
}

function open(key: Buffer, aad: Buffer, data: Buffer): Json {
  const decipher = createDecipheriv('aes-256-gcm', key, data.subarray(0, NONCE), { authTagLength: TAG })
  decipher.setAAD(aad).setAuthTag(data.subarray(data.length - TAG))
  const text = Buffer.concat([decipher.update(data.subarray(NONCE, data.length - TAG)), decipher.final()])
  const value: Json = JSON.parse(text.toString())
  return value
}

/** Key of a record that only the right encryption key can read. It reveals a wrong key before anything is written. */
const CHECK_KEY = 'key-check'

/** True if the profile's records are encrypted, so that a key exists and no new one may be made. Reads no value. */
export async function isEncrypted(sql: Sql): Promise<boolean> {
  return (await sql.query('SELECT 1 FROM kv WHERE key = ?', [CHECK_KEY])).length > 0
}

/**
 * Checks the encryption key, or sets it for a profile without one.
 * @throws RelayError `settings` for another key, with no change; `storage`
 */
export async function checkKey(encrypted: StoreUpdater): Promise<void> {
  await encrypted.update(function* (records): Tx<void> {
    // Reading a record that another key encrypted throws.
    if ((yield* records.get(CHECK_KEY)) === undefined) yield* records.put(CHECK_KEY, 'relay')
  })
}

/**
 * Encrypts the records of the previous key with the current one, so that the previous key is no longer needed.
 * @throws RelayError `storage`
 */
export async function rotateKey(sql: Sql, cipher: RecordCipher): Promise<void> {
  const { previousPrefix } = cipher
  if (previousPrefix === undefined) return
  await sql.write(function* (): Tx<void> {
    const query = 'SELECT key, value FROM kv WHERE value LIKE ?'
    for (const { key, value } of yield* fetchRows<{ key: string; value: string }>(
      query,
      `${previousPrefix}%`,
    ))
      try {
        yield* fetchRows(
          'UPDATE kv SET value = ? WHERE key = ?',
          cipher.encrypt(key, cipher.decrypt(key, value)),
          key,
        )
      } catch (error) {
        // An unreadable record is left as it is. Reading it explains the problem.
        if (!(error instanceof RelayError)) throw error
      }
  })
}

interface KeyUse {
  readonly records: number
  /** Records encrypted with another key than the current one. */
  readonly others: number
}

/** Counts the encrypted records. @throws RelayError `storage` */
export async function countKeyUse(sql: Sql, { currentPrefix }: RecordCipher): Promise<KeyUse> {
  const [use = { records: 0, others: 0 }] = await sql.query<KeyUse>(
    `SELECT count(*) AS records, coalesce(sum(CASE WHEN value LIKE ? THEN 0 ELSE 1 END), 0) AS others
      FROM kv WHERE value LIKE '{"v":2,"key":%'`,
    [`${currentPrefix}%`],
  )
  return use
}
