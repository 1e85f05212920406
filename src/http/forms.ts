import { isUtf8 } from 'node:buffer'

/** Most fields that are parsed. Providers send one; the limit bounds the work for a body that consists of `&`. */
const MAX_FIELDS = 100

/**
 * Decodes the field `payload` of an `application/x-www-form-urlencoded` body to bytes. Returns undefined unless the
 * field occurs exactly once, is well-formed UTF-8, and the body has at most {@link MAX_FIELDS} fields.
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

/**
 * Parses all fields of a form. A repeated field has its last value. Returns no fields if there are more than {@link
 * MAX_FIELDS}.
 */
export function formFields(body: Uint8Array): Readonly<Record<string, string>> {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
  // Fields are counted before they are parsed: parsing a megabyte of them would take a hundred megabytes.
  const isTooMany = text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS
  return isTooMany ? {} : Object.fromEntries(new URLSearchParams(text))
}

/**
 * Decodes one name or value. Returns undefined for invalid UTF-8, escaped or not, and for a `%` without two hex digits.
 */
function decode(latin1: string): string | undefined {
  const bytes = Buffer.from(latin1, 'latin1')
  try {
    return isUtf8(bytes) ? decodeURIComponent(bytes.toString().replaceAll('+', ' ')) : undefined
  } catch {
    return undefined
  }
}

const FIRST_FIELD = Buffer.from('payload=')
/** Visible ASCII except `"`, `<`, `>`, `` ` `` and others that every form writer escapes and that JSON and XML need. */
const FORM = /^[!#-;=?-Z_a-z~]+$/

/**
 * True if the bytes of a body look like a form. The Content-Type is not asked: no signature covers it, and JSON or text
 * that is parsed as a form could have fields in its words. Every field must be escaped, except that a leading `payload`
 * may be written raw.
 */
export function isFormBody(body: Uint8Array): boolean {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return startsAsPayload(bytes) || (bytes.includes('=') && FORM.test(bytes.toString('latin1')))
}

function startsAsPayload(body: Uint8Array): boolean {
  return FIRST_FIELD.equals(body.subarray(0, FIRST_FIELD.length))
}

/** Like {@link formPayload}, but only if `payload` is the first field: a text inside JSON may contain `&payload=`. */
export function firstPayload(form: Uint8Array): Uint8Array | undefined {
  return startsAsPayload(form) ? formPayload(form) : undefined
}

/** True if a `Content-Type` header names a form. A body of any other type is parsed as JSON. */
export function isFormType(contentType = ''): boolean {
  const [type = ''] = contentType.split(';')
  return type.trim().toLowerCase() === 'application/x-www-form-urlencoded'
}
