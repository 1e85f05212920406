// Public keys of senders, as their pages show them, and relay's own key pairs.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { Secret } from '../base/secret.js'
import { parseJson } from '../json/parse.js'
import type { KeyKind } from './algorithms.js'

/** How a public key is written. `spki` is DER in base64, `whpk` that of Standard Webhooks, `jwks` a JWK set. */
export const KEY_FORMS = ['hex', 'base64', 'spki', 'whpk', 'pem', 'jwk', 'jwks'] as const
export type PublicForm = (typeof KEY_FORMS)[number]

/** A public key, or the reason why a text is none, to follow the words "it is". */
export type ReadKey =
  | { readonly key: KeyObject; readonly why?: undefined }
  | { readonly key?: undefined; readonly why: string }

/** Beginnings of SubjectPublicKeyInfo in DER, before the bytes of the key (RFC 8410 section 4, RFC 5480 section 2). */
const ED25519_START = Buffer.from('302a300506032b6570032100', 'hex')
const P256_START = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex')
const ED25519_BYTES = 32
const POINT_BYTES = 65

/** Parsed keys by their texts, so that each key of the settings is parsed once. */
const known = new WeakMap<Secret, ReadKey>()

/**
 * Reads a public key in any form in which senders show one: PEM, also in one line; a certificate in PEM; a JWK; the key
 * or its DER in base64 or hex, with or without `whpk_`. Never repeats the text.
 */
export function readPublicKey(text: Secret): ReadKey {
  const found = known.get(text) ?? readKey(text.reveal().trim())
  known.set(text, found)
  return found
}

/** Reads a public key of this kind. Undefined if the text is none. */
export function keyOfKind(text: Secret, kind: KeyKind): KeyObject | undefined {
  const { key } = readPublicKey(text)
  return key && keyKind(key) === kind ? key : undefined
}

/** True for a text that is a public key, and so never a secret. */
export function isPublicKey(text: Secret): boolean {
  return /^whpk_|-----BEGIN (?:RSA |EC )?PUBLIC KEY|-----BEGIN CERTIFICATE|"kty"/.test(text.reveal().trim())
}

/** Explains why a text is no public key of this kind, to follow the words "it is". Undefined if it is one. */
export function keyDefect(text: Secret, kind: KeyKind): string | undefined {
  const { key, why } = readPublicKey(text)
  if (!key) return why
  const own = keyKind(key)
  if (own === kind) return undefined
  return own === undefined ? 'a key of a kind that relay does not use' : `a key of ${own}, not of ${kind}`
}

/** Kind of a key. Undefined for one that relay does not use: another curve, or RSA of under 1,024 or over 8,192 bits. */
export function keyKind({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): KeyKind | undefined {
  if (asymmetricKeyType === 'ed25519') return 'Ed25519'
  const { namedCurve, modulusLength = 0 } = asymmetricKeyDetails ?? {}
  if (asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return 'P-256'
  const isRsa = asymmetricKeyType === 'rsa' && modulusLength >= 1024 && modulusLength <= 8192
  return isRsa ? 'RSA' : undefined
}

function readKey(text: string): ReadKey {
  if (text === '') return { why: 'empty' }
  if (/-----BEGIN [A-Z ]*PRIVATE KEY/.test(text)) return PRIVATE
  if (text.startsWith('-----BEGIN'))
    return attempt('no PEM of a public key', () => createPublicKey(pemOf(text)))
  if (text.startsWith('{')) return readJwk(text)
  const bare = text.replace(/^whpk_/, '').replaceAll(/\s/g, '')
  const isHex = /^(?:[\da-f]{2})+$/i.test(bare)
  if (!isHex && !/^[\w+/-]+={0,2}$/.test(bare)) return { why: 'neither PEM nor base64 nor hex' }
  return ofBytes(Buffer.from(bare, isHex ? 'hex' : 'base64'))
}

const PRIVATE: ReadKey = {
  why: 'a private key, with which anybody signs as the sender: give the public one',
}

function attempt(why: string, read: () => KeyObject): ReadKey {
  try {
    return { key: read() }
  } catch {
    return { why }
  }
}

function readJwk(text: string): ReadKey {
  let jwk: unknown
  try {
    jwk = parseJson(text)
  } catch {
    return { why: 'no JSON of a key (JWK)' }
  }
  if (typeof jwk !== 'object' || jwk === null) return { why: 'no JSON of a key (JWK)' }
  if ('d' in jwk) return PRIVATE
  const key: object = jwk
  return attempt('no JWK of a public key', () => createPublicKey({ key: { ...key }, format: 'jwk' }))
}

function ofBytes(bytes: Buffer): ReadKey {
  const der =
    bytes.length === ED25519_BYTES
      ? Buffer.concat([ED25519_START, bytes])
      : bytes.length === POINT_BYTES
        ? Buffer.concat([P256_START, bytes])
        : bytes
  return attempt(`no public key, which ${bytes.length} bytes cannot be or are not`, () =>
    createPublicKey({ key: der, format: 'der', type: 'spki' }),
  )
}

/** PEM with its line breaks, which a variable or a form may have lost. */
function pemOf(text: string): string {
  const [, label = '', body = ''] =
    /^-----BEGIN ([A-Z ]+)-----(.*?)-----END/s.exec(text.replaceAll(String.raw`\n`, '\n')) ?? []
  const base64 = body.replaceAll(/\s/g, '')
  return `-----BEGIN ${label}-----\n${base64.replaceAll(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`
}

/** Makes a key pair, as the PEM of its private half (PKCS #8). RSA has 2,048 bits, and takes a tenth of a second. */
export function makeKeyPair(kind: KeyKind): Secret {
  const { privateKey } =
    kind === 'Ed25519'
      ? generateKeyPairSync('ed25519')
      : kind === 'P-256'
        ? generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
        : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return new Secret(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
}

interface Pair {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

const pairs = new WeakMap<Secret, Pair>()

/** Reads a pair of {@link makeKeyPair}. */
export function readKeyPair(own: Secret): Pair {
  const found = pairs.get(own) ?? pairOf(createPrivateKey(own.reveal()))
  pairs.set(own, found)
  return found
}

function pairOf(privateKey: KeyObject): Pair {
  return { privateKey, publicKey: createPublicKey(privateKey) }
}

/** Writes a public key in a form that a program's setting takes. */
export function writePublicKey(key: KeyObject, form: PublicForm): string {
  if (form === 'pem') return key.export({ type: 'spki', format: 'pem' }).toString().trim()
  const jwk = key.export({ format: 'jwk' })
  if (form === 'jwk') return JSON.stringify(jwk)
  if (form === 'jwks') return JSON.stringify({ keys: [{ ...jwk, use: 'sig', kid: OWN_KID }] })
  const der = key.export({ type: 'spki', format: 'der' })
  const raw = keyKind(key) === 'Ed25519' ? der.subarray(ED25519_START.length) : der
  if (form === 'hex') return raw.toString('hex')
  return (form === 'whpk' ? 'whpk_' : '') + (form === 'spki' ? der : raw).toString('base64')
}

/** Name of relay's own key in a JWK set and in the header of a JWT. */
export const OWN_KID = 'relay'
