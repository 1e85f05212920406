/** Providers send one field. The limit bounds the work for a body that consists of `&`. */
const MAX_FIELDS = 100
/** The length of `payload` with every letter percent-encoded. */
const MAX_NAME_LENGTH = 21

const AMPERSAND = 0x26
const EQUALS = 0x3d
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20

/**
 * The decoded bytes of `payload` in an `application/x-www-form-urlencoded` body. Undefined unless it occurs
 * exactly once, its percent-encoding is complete, and the body has at most {@link MAX_FIELDS} fields.
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

/** Whether a `Content-Type` says that a body is a form; a body of any other type is read as JSON. */
export function isFormType(contentType = ''): boolean {
  const [type = ''] = contentType.split(';')
  return type.trim().toLowerCase() === 'application/x-www-form-urlencoded'
}

function indexOf(bytes: Uint8Array, byte: number, from: number, to: number): number {
  const index = bytes.subarray(from, to).indexOf(byte)
  return index === -1 ? to : from + index
}

function isPayload(name: Uint8Array): boolean {
  if (name.length > MAX_NAME_LENGTH) return false
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

/** The digit's value; -1, which makes the whole byte negative, for any other character. */
function hexDigit(code: number | undefined): number {
  if (code === undefined) return -1
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
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

/** Collects the first {@link MAX_START} bytes of a response or an output, and drops the rest. */
export class StartOf {
  readonly #chunks: Uint8Array[] = []
  #room = MAX_START

  add(chunk: Uint8Array): void {
    if (this.#room === 0) return
    // A copy, so that these few bytes do not keep the whole chunk in memory.
    const start = new Uint8Array(chunk.subarray(0, this.#room))
    this.#room -= start.byteLength
    this.#chunks.push(start)
  }

  get bytes(): Uint8Array {
    const [first, ...more] = this.#chunks
    return more.length === 0 ? (first ?? NOTHING) : new Uint8Array(Buffer.concat(this.#chunks))
  }
}
