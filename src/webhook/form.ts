import type { WebhookScheme } from '../providers/provider.js'
import type { HeaderLines } from './headers.js'

/** Providers send one field. Enough for any of them, and few enough that a body of `&` costs nothing. */
const MAX_FIELDS = 100
/** `payload` with every letter percent-encoded. */
const LONGEST_NAME = 21

const AMPERSAND = 0x26
const EQUALS = 0x3d
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20

/**
 * The decoded bytes of `payload` in an `application/x-www-form-urlencoded` body. Undefined unless it is there exactly
 * once, its percent-encoding is whole, and there are no more than {@link MAX_FIELDS} fields.
 * @see https://url.spec.whatwg.org/#urlencoded-parsing
 */
export function formPayload(body: Uint8Array): Uint8Array | undefined {
  let payload: Uint8Array | undefined
  let start = 0
  for (let fields = 1; start <= body.length; fields++) {
    const end = indexOf(body, AMPERSAND, start, body.length)
    const name = indexOf(body, EQUALS, start, end)
    if (isPayload(body.subarray(start, name))) {
      if (payload) return undefined
      payload = percentDecode(body.subarray(name + 1, end))
      if (!payload) return undefined
    }
    if (fields > MAX_FIELDS) return undefined
    start = end + 1
  }
  return payload
}

/**
 * What a delivery's signature covers. Decoding what is not yet proved genuine happens only for the provider whose
 * signature asks for it.
 */
export function signedBytes(
  lines: HeaderLines,
  body: Uint8Array,
  { formSignature }: Pick<WebhookScheme, 'formSignature'>,
): Uint8Array | undefined {
  return isForm(lines) && formSignature === 'payload' ? formPayload(body) : body
}

/** Whether a delivery's body is a form; any other is read as JSON. */
export function isForm(lines: HeaderLines): boolean {
  const [type = ''] = (lines.get('content-type')?.[0] ?? '').split(';')
  return type.trim().toLowerCase() === 'application/x-www-form-urlencoded'
}

function indexOf(bytes: Uint8Array, byte: number, from: number, to: number): number {
  const index = bytes.subarray(from, to).indexOf(byte)
  return index === -1 ? to : from + index
}

function isPayload(name: Uint8Array): boolean {
  if (name.length > LONGEST_NAME) return false
  const decoded = percentDecode(name)
  return decoded !== undefined && Buffer.from(decoded).toString('latin1') === 'payload'
}

/** Undefined where a `%` is not followed by two hex digits. */
function percentDecode(text: Uint8Array): Uint8Array | undefined {
  const decoded = new Uint8Array(text.length)
  let length = 0
  for (let i = 0; i < text.length; i++) {
    let byte = text[i] ?? 0
    if (byte === PLUS) byte = SPACE
    else if (byte === PERCENT) {
      byte = (hexDigit(text[++i]) << 4) | hexDigit(text[++i])
      if (byte < 0) return undefined
    }
    decoded[length++] = byte
  }
  return decoded.subarray(0, length)
}

/** -1, which makes the whole byte negative, for anything else. */
function hexDigit(code: number | undefined): number {
  if (code === undefined) return -1
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
