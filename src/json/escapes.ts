import type { ByteWriter } from './byte-writer.js'

/**
 * How a program's string escapes differ from those of JSON.stringify. Flags, so that what a program escapes can be compared
 * with what occurs in a text.
 */
export const ESCAPES = {
  /** `<`, `>` and `&`, as `\u003c`. */
  html: 1,
  /** U+2028 and U+2029, the line ends that JavaScript strings once could not hold. */
  lines: 2,
  /** `\b` and `\f`, as `\u0008` and `\u000c`. */
  long: 4,
  /** U+FFFD, as `\ufffd`. */
  replacement: 8,
  /** All characters outside ASCII. One outside the Basic Multilingual Plane becomes a pair. */
  nonAscii: 16,
  /** U+007F. */
  delete: 32,
  /** `/`, as `\/`. */
  slash: 64,
  /** Upper-case digits in escapes of control characters: `\u001B`. */
  upperControl: 128,
  /** Upper-case digits in escapes of `<` and `>`: `\u003C`. */
  upperHtml: 256,
} as const

/** Go's `encoding/json` escapes HTML and these line ends; so does Rails. */
export const GO_ESCAPES = ESCAPES.html | ESCAPES.lines

const ALL = Object.values(ESCAPES).reduce((sum, flag) => sum | flag, 0)

const QUOTE = 0x22
const AMPERSAND = 0x26
const SLASH = 0x2f
const DIGIT_0 = 0x30
const LESS_THAN = 0x3c
const GREATER_THAN = 0x3e
const BACKSLASH = 0x5c
const LETTER_B = 0x62
const LETTER_F = 0x66
const LETTER_U = 0x75
const DELETE = 0x7f
/** From a lower-case letter to its upper-case one. */
const UPPER_CASE = 0x20
const LINE_SEPARATOR = 0x2028
const PARAGRAPH_SEPARATOR = 0x2029
const REPLACEMENT = 0xfffd
/** The first byte of U+2028 and U+2029 in UTF-8, and of U+FFFD. */
const LINES_LEAD = 0xe2
const REPLACEMENT_LEAD = 0xef

/** Writes strings with some of the {@link ESCAPES}. */
export interface StringWriter {
  /**
   * Writes the string that begins at `start` in the output of `minify`. Returns the index after its closing quote; the length
   * of the text if it has none.
   */
  write(json: Buffer, start: number, out: ByteWriter): number
}

export function createStringWriter(escapes: number): StringWriter {
  const special = specialBytes(escapes)
  return {
    write(json, start, out) {
      let copied = start
      let at = start + 1
      while (at < json.length) {
        const byte = json[at] ?? 0
        if (special[byte] === 0) {
          at++
          continue
        }
        if (byte === QUOTE) {
          at++
          break
        }
        const end = at + lengthAt(json, at)
        if ((flagsAt(json, at) & escapes) !== 0) {
          out.pushRange(json, copied, at)
          writeEscaped(json, at, escapes, out)
          copied = end
        }
        at = end
      }
      out.pushRange(json, copied, Math.min(at, json.length))
      return at
    },
  }
}

/** Which of the {@link ESCAPES} would change this text, the output of `minify`. */
export function escapesIn(json: Buffer): number {
  const special = specialBytes(ALL)
  let found = 0
  for (let at = 0; at < json.length;) {
    if (special[json[at] ?? 0] === 0) at++
    else {
      found |= flagsAt(json, at)
      at += lengthAt(json, at)
    }
  }
  return found
}

/** The bytes at which a string may be more than copied: 1, and 0 for others. */
function specialBytes(escapes: number): Uint8Array {
  const special = new Uint8Array(256)
  const mark = (flag: number, ...bytes: number[]): void => {
    if ((escapes & flag) !== 0) for (const byte of bytes) special[byte] = 1
  }
  special[QUOTE] = special[BACKSLASH] = 1
  mark(ESCAPES.html, AMPERSAND, LESS_THAN, GREATER_THAN)
  mark(ESCAPES.slash, SLASH)
  mark(ESCAPES.delete, DELETE)
  mark(ESCAPES.lines, LINES_LEAD)
  mark(ESCAPES.replacement, REPLACEMENT_LEAD)
  if ((escapes & ESCAPES.nonAscii) !== 0) special.fill(1, 0x80)
  return special
}

/** The bytes of the character or escape at `at`. */
function lengthAt(json: Buffer, at: number): number {
  const byte = json[at] ?? 0
  if (byte === BACKSLASH) return json[at + 1] === LETTER_U ? 6 : 2
  if (byte < 0xc0) return 1
  if (byte < 0xe0) return 2
  return byte < 0xf0 ? 3 : 4
}

/** The {@link ESCAPES} that concern the character or escape at `at`. */
function flagsAt(json: Buffer, at: number): number {
  switch (json[at] ?? 0) {
    case BACKSLASH:
      return flagsOfEscape(json, at)
    case AMPERSAND:
      return ESCAPES.html
    case LESS_THAN:
    case GREATER_THAN:
      return ESCAPES.html | ESCAPES.upperHtml
    case SLASH:
      return ESCAPES.slash
    case DELETE:
      return ESCAPES.delete
    case QUOTE:
      return 0
    default:
      return flagsOfCharacter(characterAt(json, at))
  }
}

/** Control characters are `\u00` and two digits; lone surrogates begin with another digit. */
function flagsOfEscape(json: Buffer, at: number): number {
  const kind = json[at + 1]
  if (kind === LETTER_B || kind === LETTER_F) return ESCAPES.long
  const hasLetter = kind === LETTER_U && json[at + 2] === DIGIT_0 && (json[at + 5] ?? 0) > DIGIT_0 + 9
  return hasLetter ? ESCAPES.upperControl : 0
}

function flagsOfCharacter(code: number): number {
  if (code === LINE_SEPARATOR || code === PARAGRAPH_SEPARATOR) return ESCAPES.nonAscii | ESCAPES.lines
  return ESCAPES.nonAscii | (code === REPLACEMENT ? ESCAPES.replacement : 0)
}

/** Writes the character or escape at `at`, to which some of the escapes apply. */
function writeEscaped(json: Buffer, at: number, escapes: number, out: ByteWriter): void {
  const byte = json[at] ?? 0
  if (byte === SLASH) {
    out.push(BACKSLASH)
    out.push(SLASH)
  } else if (byte !== BACKSLASH) {
    out.pushEscape(characterAt(json, at), (escapes & ESCAPES.upperHtml) !== 0 && byte < 0x80)
  } else if (json[at + 1] === LETTER_U) {
    out.pushRange(json, at, at + 5)
    out.push((json[at + 5] ?? 0) - UPPER_CASE)
  } else out.pushEscape(json[at + 1] === LETTER_B ? 0x08 : 0x0c)
}

/** The character whose UTF-8 begins at `at`. */
function characterAt(utf8: Buffer, at: number): number {
  const lead = utf8[at] ?? 0
  if (lead < 0x80) return lead
  const second = (utf8[at + 1] ?? 0) & 0x3f
  if (lead < 0xe0) return ((lead & 0x1f) << 6) | second
  const third = (utf8[at + 2] ?? 0) & 0x3f
  if (lead < 0xf0) return ((lead & 0x0f) << 12) | (second << 6) | third
  return ((lead & 0x07) << 18) | (second << 12) | (third << 6) | ((utf8[at + 3] ?? 0) & 0x3f)
}
