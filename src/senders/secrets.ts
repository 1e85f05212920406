import { hash } from 'node:crypto'
import { Secret } from '../base/secret.js'

/** True for an empty secret, which would let anyone sign. */
export function isEmptySecret(secret: Secret): boolean {
  return /^(?:whsec_)?$/.test(secret.reveal())
}

/**
 * Base64 as the reference library decodes it. A leading `whsec_` is removed first, and trailing `=` are optional, since
 * a double click does not select them.
 */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

const HEX = /^(?:[\da-f]{2})+$/i

/** Rules for making a key from a secret. */
export type KeyForm = 'base64' | 'hex' | 'sha1'

/** The key with which a secret signs, and its name. Undefined if it should have a name, `name:key`, and has none. */
export function keyOf(
  secret: Secret,
  form: KeyForm | undefined,
  isNamed: boolean,
): { readonly name: string; readonly bytes: Buffer } | undefined {
  const [, name = '', own] = isNamed ? (/^([\w-]{1,100}):(.+)$/s.exec(secret.reveal()) ?? []) : []
  if (isNamed && own === undefined) return undefined
  const key = own === undefined ? secret : new Secret(own)
  return { name, bytes: (form && decodeKey(key, form)) ?? Buffer.from(key.reveal()) }
}

/** Decodes a secret that is the key in another form. Undefined if it is not in that. */
export function decodeKey(secret: Secret, encoding: KeyForm = 'base64'): Buffer | undefined {
  if (encoding === 'sha1') return hash('sha1', secret.reveal(), 'buffer')
  const text = secret.reveal().replace(/^whsec_/, '')
  return (encoding === 'hex' ? HEX : BASE64).test(text) ? Buffer.from(text, encoding) : undefined
}
