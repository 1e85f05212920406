import { isUtf8 } from 'node:buffer'

/** Providers send one field. The limit bounds the work for a body that consists of `&`. */
const MAX_FIELDS = 100

/**
 * The decoded bytes of `payload` in an `application/x-www-form-urlencoded` body. Undefined unless it occurs
 * exactly once, all is well-formed UTF-8, and the body has at most {@link MAX_FIELDS} fields.
 * @see https://url.spec.whatwg.org/#urlencoded-parsing
 */
export function formPayload(body: Uint8Array): Uint8Array | undefined {
  if (!isUtf8(body)) return undefined
  const fields = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    .toString()
    .split('&', MAX_FIELDS + 1)
  const [payload, ...others] = fields.filter((field) => field.startsWith('payload='))
  if (payload === undefined || others.length > 0 || fields.length > MAX_FIELDS) return undefined
  try {
    return Buffer.from(decodeURIComponent(payload.slice('payload='.length).replaceAll('+', ' ')))
  } catch {
    return undefined
  }
}

/** Whether a `Content-Type` says that a body is a form; a body of any other type is read as JSON. */
export function isFormType(contentType = ''): boolean {
  const [type = ''] = contentType.split(';')
  return type.trim().toLowerCase() === 'application/x-www-form-urlencoded'
}
