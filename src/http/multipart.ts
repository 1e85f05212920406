/** Most parts that are read, as many as a form may have fields. */
const MAX_PARTS = 100
/** First line: the boundary, of at most 70 characters (RFC 2046, section 5.1.1). */
const FIRST_LINE = /^--([\w'()+,./:=?-]{1,70})\r\n/
const NAME = /^content-disposition:[^\r\n]*;\s*name="([^"\r\n]*)"/im
const HAS_FILE = /^content-disposition:[^\r\n]*;\s*filename\*?=/im
const END_OF_HEADERS = Buffer.from('\r\n\r\n')

/** A field of a multipart form, and where its text is in the body. */
interface Field {
  readonly name: string
  readonly start: number
  readonly end: number
}

/** The boundary of a body that is a multipart form, by its bytes alone: no signature covers Content-Type. */
export function boundaryOf(body: Uint8Array): string | undefined {
  const bytes = bytesOf(body)
  const [, boundary] = FIRST_LINE.exec(bytes.toString('latin1', 0, 80)) ?? []
  if (boundary === undefined) return undefined
  return bytes
    .toString('latin1', Math.max(0, bytes.length - 100))
    .trimEnd()
    .endsWith(`\r\n--${boundary}--`)
    ? boundary
    : undefined
}

/**
 * Reads the fields of a multipart form. A repeated field has its last value; files are left out. Returns undefined for
 * another body, and no fields of more than {@link MAX_PARTS} parts.
 * @see RFC 7578
 */
export function multipartFields(body: Uint8Array): Readonly<Record<string, string>> | undefined {
  const boundary = boundaryOf(body)
  if (boundary === undefined) return undefined
  const bytes = bytesOf(body)
  const fields = fieldsIn(bytes, boundary)
  return Object.fromEntries(fields.map(({ name, start, end }) => [name, bytes.toString('utf8', start, end)]))
}

/** Sets a field of a multipart form, or adds it at the end. Every other byte stays. Undefined for another body. */
export function withMultipartField(body: Uint8Array, name: string, text: string): Uint8Array | undefined {
  const boundary = boundaryOf(body)
  const bytes = bytesOf(body)
  if (boundary === undefined) return undefined
  const found = fieldsIn(bytes, boundary).findLast((field) => field.name === name)
  if (found)
    return Buffer.concat([bytes.subarray(0, found.start), Buffer.from(text), bytes.subarray(found.end)])
  const end = bytes.lastIndexOf(`--${boundary}--`)
  const part = `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`
  return Buffer.concat([bytes.subarray(0, end), Buffer.from(part), bytes.subarray(end)])
}

function fieldsIn(bytes: Buffer, boundary: string): readonly Field[] {
  const delimiter = `\r\n--${boundary}`
  const fields: Field[] = []
  // The first delimiter has no line end before it.
  for (let at = boundary.length + 4, parts = 0; ; parts++) {
    const end = bytes.indexOf(delimiter, at - 2)
    if (end === -1) return fields
    if (parts === MAX_PARTS) return []
    const headersEnd = bytes.indexOf(END_OF_HEADERS, at)
    if (headersEnd !== -1 && headersEnd < end) {
      const headers = bytes.toString('utf8', at, headersEnd)
      const [, name] = NAME.exec(headers) ?? []
      if (name !== undefined && !HAS_FILE.test(headers))
        fields.push({ name, start: headersEnd + END_OF_HEADERS.length, end })
    }
    at = end + delimiter.length + 2
  }
}

function bytesOf(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}
