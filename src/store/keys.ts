import { RelayError } from '../base/errors.js'
import { MAX_KEY_BYTES } from './contract.js'

/**
 * A key's bytes in UTF-8, whose order is the order of the store.
 * @throws RelayError `bad_request` when it is empty, longer than {@link MAX_KEY_BYTES}, or has half a surrogate pair.
 */
export function encodeKey(key: string): Uint8Array {
  const bytes = encodePrefix(key)
  if (bytes.length === 0) throw new RelayError('bad_request', 'Invalid key: empty')
  return bytes
}

/**
 * Like {@link encodeKey}, for the beginning of keys: it may be empty.
 * @throws RelayError `bad_request`
 */
export function encodePrefix(prefix: string): Uint8Array {
  const bytes = Buffer.from(prefix)
  // Encoding replaces half a pair by U+FFFD: without this, two keys would become one.
  if (bytes.toString() !== prefix) throw new RelayError('bad_request', 'Invalid key: not well-formed Unicode')
  if (bytes.length > MAX_KEY_BYTES) {
    throw new RelayError('bad_request', `Invalid key: longer than ${MAX_KEY_BYTES} bytes`)
  }
  return bytes
}

export function decodeKey(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('utf8')
}

/**
 * A number's bytes, 8 of them, most significant first, so that their order is the numbers' order.
 * @throws RangeError when it is not a non-negative safe integer.
 */
export function encodeNumber(number: number): Uint8Array {
  if (!Number.isSafeInteger(number) || number < 0) throw new RangeError(`No row number: ${number}`)
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeUInt32BE(Math.floor(number / 2 ** 32), 0)
  bytes.writeUInt32BE(number % 2 ** 32, 4)
  return bytes
}

export function decodeNumber(bytes: Uint8Array): number {
  const buffer = asBuffer(bytes)
  return buffer.readUInt32BE(0) * 2 ** 32 + buffer.readUInt32BE(4)
}

/** A key with one character per byte: such texts compare as the bytes do. */
export function keyText(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('latin1')
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
