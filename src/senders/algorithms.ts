// Signature algorithms: HMAC, or a key pair whose public half the receiver has.
import { constants, type KeyObject, sign, verify } from 'node:crypto'

/** Hash functions of HMAC. */
export const ALGORITHMS = ['sha256', 'sha1', 'sha384', 'sha512', 'md5'] as const
export type HashAlgorithm = (typeof ALGORITHMS)[number]

/**
 * Signatures with a key pair: Ed25519 (RFC 8032); ECDSA with P-256 and SHA-256 in DER, or `-raw` as two numbers of 32
 * bytes (IEEE P1363); RSA with PKCS #1 v1.5 (RFC 8017 section 8.2).
 */
export const KEY_ALGORITHMS = [
  'ed25519',
  'ecdsa-p256',
  'ecdsa-p256-raw',
  'rsa-sha256',
  'rsa-sha1',
  'rsa-sha512',
] as const
export type KeyAlgorithm = (typeof KEY_ALGORITHMS)[number]

/** Kinds of keys, as they are called in sentences. */
export const KEY_KINDS = ['Ed25519', 'P-256', 'RSA'] as const
export type KeyKind = (typeof KEY_KINDS)[number]

/** Sizes of a signature in bytes. */
interface Sizes {
  readonly min: number
  readonly max: number
}

/**
 * DER of P-256: two integers of up to 33 bytes, each with two bytes before it, and two before all. Of 2^60 signatures,
 * one is shorter.
 */
const DER: Sizes = { min: 56, max: 72 }
/** RSA of 1,024 to 8,192 bits, as {@link KeyAlgorithm} keys may have. */
const RSA: Sizes = { min: 128, max: 1024 }
const just = (bytes: number): Sizes => ({ min: bytes, max: bytes })

const SIZES: Readonly<Record<HashAlgorithm | KeyAlgorithm, Sizes>> = {
  md5: just(16),
  sha1: just(20),
  sha256: just(32),
  sha384: just(48),
  sha512: just(64),
  ed25519: just(64),
  'ecdsa-p256': DER,
  'ecdsa-p256-raw': just(64),
  'rsa-sha256': RSA,
  'rsa-sha1': RSA,
  'rsa-sha512': RSA,
}

/** Sizes in bytes of the signatures of an algorithm. */
export function sizesOf(algorithm: HashAlgorithm | KeyAlgorithm): Sizes {
  return SIZES[algorithm]
}

/** True for an algorithm whose receiver has a public key, and no secret. */
export function usesKeys(algorithm: string): algorithm is KeyAlgorithm {
  return KEY_ALGORITHMS.some((each) => each === algorithm)
}

/** Names an algorithm in a sentence: `HMAC-SHA256`, `Ed25519 signature`. */
export function algorithmWords(algorithm: HashAlgorithm | KeyAlgorithm): string {
  if (!usesKeys(algorithm)) return `HMAC-${algorithm.toUpperCase()}`
  if (algorithm === 'ed25519') return 'Ed25519 signature'
  if (kindOfKey(algorithm) === 'P-256') return 'ECDSA signature (P-256, SHA-256)'
  return `RSA signature (${algorithm.replace('rsa-sha', 'SHA-')})`
}

/** Kind of the key that an algorithm needs. */
export function kindOfKey(algorithm: KeyAlgorithm): KeyKind {
  if (algorithm === 'ed25519') return 'Ed25519'
  return algorithm.startsWith('ecdsa') ? 'P-256' : 'RSA'
}

/** True if the private half of `key` made a signature of a text. A key of another kind makes none. */
export function isSignedBy(
  key: KeyObject,
  signature: Uint8Array,
  text: Uint8Array,
  algorithm: KeyAlgorithm,
): boolean {
  try {
    return verify(hashOf(algorithm), text, { key, ...formOf(algorithm) }, signature)
  } catch {
    // OpenSSL refuses some malformed signatures instead of calling them wrong.
    return false
  }
}

/** Signs a text. */
export function signWith(key: KeyObject, text: Uint8Array, algorithm: KeyAlgorithm): Buffer {
  return sign(hashOf(algorithm), text, { key, ...formOf(algorithm) })
}

function hashOf(algorithm: KeyAlgorithm): string | null {
  if (algorithm === 'ed25519') return null
  return algorithm.startsWith('rsa') ? algorithm.slice('rsa-'.length) : 'sha256'
}

function formOf(algorithm: KeyAlgorithm) {
  if (algorithm.startsWith('rsa')) return { padding: constants.RSA_PKCS1_PADDING } as const
  return algorithm === 'ecdsa-p256-raw' ? ({ dsaEncoding: 'ieee-p1363' } as const) : {}
}
