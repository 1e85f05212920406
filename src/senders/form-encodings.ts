/** A form with the single field `payload`, in one of the encodings. */
export interface WrittenForm {
  /** Size in bytes. */
  readonly size: number
  readonly write: () => Buffer
}

const FIELD = Buffer.from('payload=')
/** Bytes of an escape such as `%2B`. */
const ESCAPED = 3
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20
const DIGITS = Buffer.from('0123456789ABCDEF')
/** Characters that no program escapes. */
const BARE = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.')
/** Characters that programs write differently: a space is `+` or escaped, and some marks are left unescaped. */
const DIFFERENT = Buffer.from(" !'()*~")

/** Makes a table with the written size of each byte for a program that leaves `left` unescaped. */
function widthsOf(left: string): Uint8Array {
  const widths = new Uint8Array(256).fill(ESCAPED)
  for (const byte of [...BARE, ...Buffer.from(left)]) widths[byte] = 1
  return widths
}

/** Encoding of Go, Python and Faraday. */
const LIKELIEST_FORM = widthsOf(' ~')
/** Encodings of URLSearchParams and encodeURIComponent. */
const OTHER_FORMS = [widthsOf(' *'), widthsOf("!'()*~")]

/**
 * Returns the encodings of a form that differ for a text, the likeliest first. One pass computes the size of all; each
 * is written only on request.
 */
export function formsOf(payload: Uint8Array): readonly [WrittenForm, ...WrittenForm[]] {
  const counts = new Uint32Array(256)
  for (let at = 0; at < payload.length; at++) {
    const byte = payload[at] ?? 0
    counts[byte] = (counts[byte] ?? 0) + 1
  }
  const present = DIFFERENT.filter((byte) => counts[byte] !== 0)
  const spell = (widths: Uint8Array): string => present.map((byte) => widths[byte] ?? 0).join()
  const form = (widths: Uint8Array): WrittenForm => {
    const size = counts.reduce((sum, count, byte) => sum + count * (widths[byte] ?? 0), FIELD.length)
    return { size, write: () => writeForm(payload, widths, size) }
  }
  const seen = new Set([spell(LIKELIEST_FORM)])
  const others = OTHER_FORMS.filter((widths) => seen.size < seen.add(spell(widths)).size)
  return [form(LIKELIEST_FORM), ...others.map(form)]
}

function writeForm(payload: Uint8Array, widths: Uint8Array, size: number): Buffer {
  const to = Buffer.allocUnsafe(size)
  let length = FIELD.copy(to)
  for (let at = 0; at < payload.length; at++) {
    const byte = payload[at] ?? 0
    if (widths[byte] === 1) to[length++] = byte === SPACE ? PLUS : byte
    else {
      to[length++] = PERCENT
      to[length++] = DIGITS[byte >> 4] ?? 0
      to[length++] = DIGITS[byte & 15] ?? 0
    }
  }
  return to
}
