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
  if (startsAsPayload(bytes)) return true
  // Nearly every body is JSON, which its first character shows.
  return (
    FORM.test(bytes.toString('latin1', 0, 16)) && bytes.includes('=') && FORM.test(bytes.toString('latin1'))
  )
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

/**
 * Sets a field of a form: the last one of its name, or a new one at the end. Every other byte stays, also the escapes of
 * what the old and the new text have in common.
 */
export function withFormField(form: Uint8Array, name: string, text: string): Uint8Array {
  const all = Buffer.from(form.buffer, form.byteOffset, form.byteLength).toString('latin1').split('&')
  const at = all.findLastIndex((field) => decode(field.split('=', 1).join('')) === name)
  const [field = ''] = at === -1 ? [] : all.slice(at)
  const [own] = field.split('=', 1)
  const raw = field.slice((own?.length ?? 0) + 1)
  const written = reEscaped(raw, Buffer.from(decode(raw) ?? ''), Buffer.from(text))
  if (at === -1) all.push(`${escapeForm(Buffer.from(name))}=${written}`)
  else all[at] = `${own}=${written}`
  return Buffer.from(all.filter((each) => each !== '').join('&'), 'latin1')
}

/** Escapes a text. The parts that it shares with the text before keep their escapes. */
function reEscaped(raw: string, before: Buffer, after: Buffer): string {
  const shortest = Math.min(before.length, after.length)
  let [start, end] = [0, 0]
  while (start < shortest && before[start] === after[start]) start++
  while (end < shortest - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  const [from, to] = [escapedOffset(raw, start), escapedOffset(raw, before.length - end)]
  return raw.slice(0, from) + escapeForm(after.subarray(start, after.length - end)) + raw.slice(to)
}

/** Characters of escaped text that stand for this many bytes at its start. */
function escapedOffset(raw: string, bytes: number): number {
  let at = 0
  for (let count = 0; count < bytes; count++) at += raw.charAt(at) === '%' ? 3 : 1
  return at
}

/** @see https://url.spec.whatwg.org/#urlencoded-serializing */
function escapeForm(bytes: Uint8Array): string {
  return Buffer.from(bytes)
    .toString('latin1')
    .replaceAll(/[^\w*.-]/g, (char) =>
      char === ' ' ? '+' : `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
    )
}
