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

/** The fields of a form; of one that is given twice, the last. Empty for more than {@link MAX_FIELDS}. */
export function formFields(body: Uint8Array): Readonly<Record<string, string>> {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
  // Counted first: a megabyte of them would become a hundred.
  const isTooMany = text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS
  return isTooMany ? {} : Object.fromEntries(new URLSearchParams(text))
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

const FIRST_FIELD = Buffer.from('payload=')
/** Visible ASCII without the marks that every writer of forms escapes, and JSON and XML need. */
const FORM = /^[!#-;=?-Z_a-z~]+$/

/**
 * Whether a body is a form, by its bytes alone: no signature covers a Content-Type, and JSON or text that is read as a form could have fields
 * in its words. Fields are escaped; only the one `payload` may come first and be written as it is.
 */
export function isFormBody(body: Uint8Array): boolean {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return startsAsPayload(bytes) || (bytes.includes('=') && FORM.test(bytes.toString('latin1')))
}

function startsAsPayload(body: Uint8Array): boolean {
  return FIRST_FIELD.equals(body.subarray(0, FIRST_FIELD.length))
}

/** As {@link formPayload}, of a form whose first field it is: a text inside JSON may contain `&payload=`. */
export function firstPayload(form: Uint8Array): Uint8Array | undefined {
  return startsAsPayload(form) ? formPayload(form) : undefined
}

/** Whether a `Content-Type` says that a body is a form; a body of any other type is read as JSON. */
export function isFormType(contentType = ''): boolean {
  const [type = ''] = contentType.split(';')
  return type.trim().toLowerCase() === 'application/x-www-form-urlencoded'
}

/** A body or an input is larger than its limit, which the message names. The message contains none of the content. */
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

/** 4 KiB: enough of a target's response to see what it says. */
export const MAX_START = 4096

const NOTHING = new Uint8Array()

/** Collects the first bytes of a response or an output, {@link MAX_START} unless it says otherwise, and drops the rest. */
export class StartOf {
  readonly #chunks: Uint8Array[] = []
  #room: number

  constructor(limit = MAX_START) {
    this.#room = limit
  }

  add(chunk: Uint8Array): void {
    if (this.#room === 0) return
    // A copy, so that these few bytes do not keep the whole chunk in memory.
    const start = new Uint8Array(chunk.subarray(0, this.#room))
    this.#room -= start.byteLength
    this.#chunks.push(start)
  }

  /** Whether it drops all that is added from now on. */
  get isFull(): boolean {
    return this.#room === 0
  }

  get bytes(): Uint8Array {
    const [first, ...more] = this.#chunks
    return more.length === 0 ? (first ?? NOTHING) : new Uint8Array(Buffer.concat(this.#chunks))
  }
}
