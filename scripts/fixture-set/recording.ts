import { createHmac } from 'node:crypto'
import type { Header } from '../../src/http/headers.js'
import { TEST_SECRET } from '../../src/testing/signed-request.js'

/** One delivery of the set, as its provider sends it. */
export interface Recording {
  readonly provider: 'github'
  /** The file's name, without `.json`. */
  readonly name: string
  readonly event: string
  readonly body: Uint8Array
  readonly headers: (deliveryId: string) => readonly Header[]
  readonly forTests?: boolean
}

/** Lower-case hex digits. Not relay's own signing, since these files test that. */
export function hmac(algorithm: 'sha1' | 'sha256', bytes: Uint8Array): string {
  return createHmac(algorithm, TEST_SECRET).update(bytes).digest('hex')
}

export const JSON_TYPE = 'application/json'
export const FORM_TYPE = 'application/x-www-form-urlencoded'
