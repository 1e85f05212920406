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

/**
 * Error for a body or input that is larger than its limit. The message names the limit and quotes none of the content.
 */
export class TooManyBytes extends Error {
  override readonly name = 'TooManyBytes'

  constructor(limit: number) {
    super(`more than ${limit} bytes`)
  }
}

/**
 * Reads a whole stream: a response body, standard input or a file.
 * @param limit in bytes; reading stops there, which closes the stream's connection.
 * @throws TooManyBytes beyond the limit; the stream's own error.
 */
export async function readBounded(stream: AsyncIterable<Uint8Array>, limit: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.byteLength
    if (size > limit) throw new TooManyBytes(limit)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Default size of {@link PrefixBuffer}, in bytes: enough of a target's response to recognize it. */
export const MAX_PREFIX = 4096

const NOTHING = new Uint8Array()

/** Collects the first bytes of a response or an output, and drops the rest. */
export class PrefixBuffer {
  readonly #chunks: Uint8Array[] = []
  #room: number

  constructor(limit = MAX_PREFIX) {
    this.#room = limit
  }

  add(chunk: Uint8Array): void {
    if (this.#room === 0) return
    // Copied, so that these few bytes do not keep the whole chunk in memory.
    const start = new Uint8Array(chunk.subarray(0, this.#room))
    this.#room -= start.byteLength
    this.#chunks.push(start)
  }

  /** True once all further bytes are dropped. */
  get isFull(): boolean {
    return this.#room === 0
  }

  get bytes(): Uint8Array {
    const [first, ...more] = this.#chunks
    return more.length === 0 ? (first ?? NOTHING) : new Uint8Array(Buffer.concat(this.#chunks))
  }
}
