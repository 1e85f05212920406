import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'
import type { TokenKeys } from '../base/shared-store.js'
import { RelayError } from '../base/errors.js'
import type { Expectation, Json } from './contract.js'
import { isText, shape } from './shape.js'

/** A record as a shared store holds it. Part of the file format. */
interface Encrypted {
  readonly v: 1
  /** Which key encrypted it. */
  readonly key: string
  /** Nonce, ciphertext and tag, base64. */
  readonly data: string
}

const parseEncrypted = shape<Encrypted>({ v: (value) => value === 1, key: isText, data: isText })

/** AES-256-GCM (NIST SP 800-38D): a nonce of 96 bits, a tag of 128. Bytes. */
const NONCE = 12
const TAG = 16
/** Hex digits of a key's id: enough to distinguish two keys, and too few to reveal anything of the key. */
const ID_DIGITS = 8

/** Encrypts the values of records for a store that others can read and write. */
export interface RecordCipher {
  /** The same value under the same record key always gives the same, so that a stored value can be compared with one. */
  encrypt(recordKey: string, value: Json): Json
  /** @throws RelayError `settings` for a record under a key that is not set; `storage` for one that was changed or moved. */
  decrypt(recordKey: string, stored: Json): Json
  /** What must be stored for the value to be there: it may still be under the previous key. */
  expect(recordKey: string, value: Json): Expectation
  /** How the stored text of every record under the current key begins. */
  readonly currentPrefix: string
  /** The same under the previous key, if there is one. */
  readonly previousPrefix: string | undefined
}

/** `profile` is part of what is authenticated, so a record cannot be moved to another one. */
export function createRecordCipher(keys: TokenKeys, profile: string): RecordCipher {
  const current = deriveKey(keys.current.reveal())
  const previous = keys.previous && deriveKey(keys.previous.reveal())
  const keyOf = (stored: Json): DerivedKey | undefined => {
    const id = parseEncrypted(stored)?.key
    return [current, previous].find((key) => key?.id === id)
  }
  const context = (recordKey: string): Buffer => Buffer.from(JSON.stringify(['relay', profile, recordKey]))
  return {
    encrypt: (recordKey, value) => encrypt(current, context(recordKey), value),
    decrypt(recordKey, stored) {
      const record = parseEncrypted(stored)
      if (!record) throw changed(recordKey)
      const key = keyOf(stored)
      if (!key) throw wrongKey()
      const value = decrypt(key, context(recordKey), record.data)
      if (value === undefined) throw changed(recordKey)
      return value
    },
    expect: (recordKey, value) => ({
      key: recordKey,
      value: encrypt(current, context(recordKey), value),
      or: previous && encrypt(previous, context(recordKey), value),
    }),
    currentPrefix: prefixOf(current),
    previousPrefix: previous && prefixOf(previous),
  }
}

interface DerivedKey {
  readonly id: string
  readonly encryption: Buffer
  readonly nonces: Buffer
}

function deriveKey(base64: string): DerivedKey {
  const secret = Buffer.from(base64, 'base64')
  const derive = (use: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', `relay ${use}`, 32))
  const id = derive('key id').toString('hex').slice(0, ID_DIGITS)
  return { id, encryption: derive('encryption'), nonces: derive('nonces') }
}

/** Also how {@link encrypt} writes it: the key's id comes before the data. */
function prefixOf({ id }: DerivedKey): string {
  return `{"v":1,"key":"${id}"`
}

/**
 * The nonce is made of what is encrypted, as in RFC 8452 and RFC 5297: it comes again only for the same value of the same record, which
 * shows that it is the same and nothing else.
 */
function encrypt({ id, encryption, nonces }: DerivedKey, context: Buffer, value: Json): Json {
  const text = Buffer.from(JSON.stringify(value))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(context.length)
  const mac = createHmac('sha256', nonces).update(length).update(context).update(text).digest()
  const nonce = mac.subarray(0, NONCE)
  const cipher = createCipheriv('aes-256-gcm', encryption, nonce).setAAD(context)
  const data = Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()])
  return { v: 1, key: id, data: data.toString('base64') }
}

/** Undefined for what this key and context did not encrypt. */
function decrypt({ encryption }: DerivedKey, context: Buffer, base64: string): Json | undefined {
  const data = Buffer.from(base64, 'base64')
  if (data.length < NONCE + TAG) return undefined
  const decipher = createDecipheriv('aes-256-gcm', encryption, data.subarray(0, NONCE), {
    authTagLength: TAG,
  })
  decipher.setAAD(context).setAuthTag(data.subarray(data.length - TAG))
  try {
    const text = Buffer.concat([decipher.update(data.subarray(NONCE, data.length - TAG)), decipher.final()])
    const value: Json = JSON.parse(text.toString())
    return value
  } catch {
    return undefined
  }
}

/** Names the kind of the record only: the rest of its key may name a user. */
function changed(recordKey: string): RelayError {
  const [kind = ''] = recordKey.split(':')
  return new RelayError(
    'storage',
    `A record of the shared database (${kind}) was changed or moved by another program, and is not used. Sign in again, or restore a backup`,
  )
}

export function wrongKey(): RelayError {
  return new RelayError(
    'settings',
    'RELAY_TOKEN_KEY is not the key that this profile is encrypted with. Set the same as on the other relays; after a change, set the earlier one as RELAY_TOKEN_KEY_PREVIOUS',
  )
}
