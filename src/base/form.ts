import { isUtf8 } from 'node:buffer'

/** Providers send one field. The limit bounds the work for a body that consists of `&`. */
const MAX_FIELDS = 100

/**
 * The decoded bytes of `payload` in an `application/x-www-form-urlencoded` body. Undefined unless it occurs
 * exactly once, is well-formed UTF-8, and the body has at most {@link MAX_FIELDS} fields.
 * @see https://url.spec.whatwg.org/#urlencoded-parsing
 */
export function formPayload(body: Uint8Array): Uint8Array | undefined {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
  const fields = text.split('&', MAX_FIELDS + 1)
  const [payload, ...others] = fields.filter((field) => decode(field.split('=', 1).join('')) === 'payload')
  if (payload === undefined || others.length > 0 || fields.length > MAX_FIELDS) return undefined
  const value = decode(payload.replace(/^[^=]*=?/, ''))
  return value === undefined ? undefined : Buffer.from(value)
}

/** Undefined for what is not UTF-8, also by its escapes, and for a `%` without two digits. */
function decode(latin1: string): string | undefined {
  const bytes = Buffer.from(latin1, 'latin1')
  try {
    return isUtf8(bytes) ? decodeURIComponent(bytes.toString().replaceAll('+', ' ')) : undefined
  } catch {
    return undefined
  }
}

/** Whether a `Content-Type` says that a body is a form; a body of any other type is read as JSON. */
export function isFormType(contentType = ''): boolean {
  const [type = ''] = contentType.split(';')
  return type.trim().toLowerCase() === 'application/x-www-form-urlencoded'
}
