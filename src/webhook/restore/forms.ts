const FIELD = Buffer.from('payload=')
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20
const DIGITS = Buffer.from('0123456789ABCDEF')

/** Writes a form with the one field `payload`. */
export type WriteForm = (payload: Uint8Array) => Buffer

/** The ways in which programs write a form. The likeliest come first. */
export const FORMS: readonly WriteForm[] = [
  // Go, Python and Faraday.
  formWriter('-_.~', PLUS),
  // URLSearchParams.
  formWriter('*-._', PLUS),
  // encodeURIComponent.
  formWriter("-_.!~*'()", undefined),
]

/** `space` is the byte for a space, if that is not percent-encoded. */
function formWriter(unreserved: string, space: number | undefined): WriteForm {
  /** What is written for each byte; 0 if it is percent-encoded. */
  const plain = new Uint8Array(256)
  for (const byte of Buffer.from(unreserved)) plain[byte] = byte
  for (let byte = 0; byte < 256; byte++) if (/[0-9A-Za-z]/.test(String.fromCharCode(byte))) plain[byte] = byte
  if (space !== undefined) plain[SPACE] = space
  return (payload) => {
    let length = FIELD.length
    for (const byte of payload) length += plain[byte] === 0 ? 3 : 1
    const form = Buffer.allocUnsafe(length)
    let at = FIELD.copy(form)
    for (const byte of payload) {
      const written = plain[byte] ?? 0
      form[at++] = written || PERCENT
      if (written !== 0) continue
      form[at++] = DIGITS[byte >> 4] ?? 0
      form[at++] = DIGITS[byte & 0xf] ?? 0
    }
    return form
  }
}
