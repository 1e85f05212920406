import type { Json } from './contract.js'

/** A record as it is kept: 8 bytes for the instant of its expiry (a double, most significant byte first), then JSON. */
const HEADER = 8

export function encodeRecord(value: Json, expiresAt = Infinity): Uint8Array {
  const json = JSON.stringify(value)
  const bytes = Buffer.allocUnsafe(HEADER + Buffer.byteLength(json))
  bytes.writeDoubleBE(expiresAt)
  bytes.write(json, HEADER)
  return bytes
}

/** Whether a record still exists at `now`; one whose expiry is no number does not. */
export function isLive(record: Uint8Array, now: number): boolean {
  return now < view(record).readDoubleBE()
}

export function decodeRecord(record: Uint8Array): Json {
  const value: Json = JSON.parse(view(record).toString('utf8', HEADER))
  return value
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
