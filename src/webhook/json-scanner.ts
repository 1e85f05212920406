import { RelayError } from '../base/errors.js'

/** Deeper than any payload, shallow enough for programs that read JSON recursively, as this one does. */
const MAX_NESTING = 1000

const SPACE = 0x20
const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const COLON = 0x3a
const BACKSLASH = 0x5c
const ARRAY = 0x5b
const ARRAY_END = 0x5d
const OBJECT = 0x7b
const OBJECT_END = 0x7d
const LETTER_E = 0x65
const LETTER_F = 0x66
const LETTER_N = 0x6e
const LETTER_T = 0x74
const LETTER_U = 0x75

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')
const WHITE = setOf(' \t\n\r')
const ESCAPED = setOf('"\\/bfnrt')
const DIGITS = setOf('0123456789')
const HEX_DIGITS = setOf('0123456789abcdefABCDEF')

/** Four bytes of a string are looked at together; these are four of each. */
const WORD = 4
const ONES = 0x01_01_01_01
const SPACES = 0x20_20_20_20
const QUOTES = 0x22_22_22_22
const BACKSLASHES = 0x5c_5c_5c_5c
const HIGH_BITS = 0x80_80_80_80 | 0

/** A member of an object, by a name of ASCII: its value, if that is no container; with `members`, those of the object it is. */
export interface Wanted {
  readonly name: string
  readonly members?: readonly Wanted[]
}

/** What is wanted of an object, and there. */
export type Outline = Record<string, unknown>

/** Where what is wanted of an object is to go. */
interface Sink {
  readonly wanted: readonly Wanted[]
  readonly outline: Outline
}

/**
 * Reads UTF-8 as JSON (RFC 8259), with arrays and objects at most {@link MAX_NESTING} deep, and makes of it only what is wanted.
 * Each function is told where something begins, and gives where it ends.
 *
 * For a payload of 7 KB that takes half as long as JSON.parse, for one of 1 MiB a third, and it leaves no garbage.
 */
export class JsonScanner {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #escapes = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /**
   * What is wanted of the one value there is, nothing if that is no object. Of a repeated name the last counts, as for JSON.parse.
   * @throws RelayError `invalid_event` for what is not JSON, or nests deeper.
   */
  scan(wanted: readonly Wanted[]): Outline {
    const outline: Outline = {}
    const end = this.#white(this.#value(this.#white(0), 0, { wanted, outline }))
    if (end < this.#bytes.length) throw notJson()
    return outline
  }

  #value(at: number, depth: number, sink?: Sink): number {
    switch (this.#bytes[at] ?? 0) {
      case QUOTE:
        return this.#string(at)
      case OBJECT:
        return this.#object(at, depth + 1, sink)
      case ARRAY:
        return this.#array(at, depth + 1)
      case LETTER_T:
        return this.#literal(at, TRUE)
      case LETTER_F:
        return this.#literal(at, FALSE)
      case LETTER_N:
        return this.#literal(at, NULL)
      default:
        return this.#number(at)
    }
  }

  #object(start: number, depth: number, sink?: Sink): number {
    let at = this.#enter(start, depth)
    if (this.#bytes[at] === OBJECT_END) return at + 1
    for (;;) {
      at = this.#white(sink ? this.#memberFor(sink, at, depth) : this.#member(at, depth))
      if (this.#bytes[at] === OBJECT_END) return at + 1
      at = this.#white(this.#mark(at, COMMA))
    }
  }

  #array(start: number, depth: number): number {
    let at = this.#enter(start, depth)
    if (this.#bytes[at] === ARRAY_END) return at + 1
    for (;;) {
      at = this.#white(this.#value(at, depth))
      if (this.#bytes[at] === ARRAY_END) return at + 1
      at = this.#white(this.#mark(at, COMMA))
    }
  }

  #enter(container: number, depth: number): number {
    if (depth > MAX_NESTING) throw malformed('nested too deep')
    return this.#white(container + 1)
  }

  #member(at: number, depth: number): number {
    return this.#value(this.#colon(this.#string(at)), depth)
  }

  #memberFor({ wanted, outline }: Sink, start: number, depth: number): number {
    const escapes = this.#escapes
    const end = this.#string(start)
    const found =
      this.#escapes === escapes ? this.#named(wanted, start + 1, end - 1) : this.#spelled(wanted, start, end)
    const value = this.#colon(end)
    return found ? this.#keep(found, outline, value, depth) : this.#value(value, depth)
  }

  #named(wanted: readonly Wanted[], start: number, end: number): Wanted | undefined {
    for (const member of wanted) if (this.#is(member.name, start, end)) return member
    return undefined
  }

  #is(name: string, start: number, end: number): boolean {
    if (end - start !== name.length) return false
    for (let at = start; at < end; at++) if (this.#bytes[at] !== name.charCodeAt(at - start)) return false
    return true
  }

  #spelled(wanted: readonly Wanted[], start: number, end: number): Wanted | undefined {
    const name = this.#scalar(start, end)
    return wanted.find((member) => member.name === name)
  }

  #keep({ name, members }: Wanted, into: Outline, start: number, depth: number): number {
    const outline = members && {}
    const end = this.#value(start, depth, outline && { wanted: members, outline })
    into[name] = outline ?? this.#scalar(start, end)
    return end
  }

  /** Undefined for a container. */
  #scalar(start: number, end: number): unknown {
    const first = this.#bytes[start]
    if (first === OBJECT || first === ARRAY) return undefined
    return JSON.parse(Buffer.from(this.#bytes.subarray(start, end)).toString())
  }

  #string(start: number): number {
    let at = this.#mark(start, QUOTE)
    for (;;) {
      at = this.#plain(at)
      const byte = this.#bytes[at++]
      if (byte === QUOTE) return at
      if (byte !== BACKSLASH) throw notJson()
      at = this.#escape(at)
    }
  }

  /** Where the first byte is that is a quote, a backslash or a control character. */
  #plain(start: number): number {
    const bytes = this.#bytes
    let at = start
    for (const last = bytes.length - WORD; at <= last; at += WORD) {
      const word = this.#view.getInt32(at, true)
      const found = zeros(word ^ QUOTES) | zeros(word ^ BACKSLASHES) | ((word - SPACES) & ~word & HIGH_BITS)
      // The lowest is right: what is borrowed for it disturbs only those above.
      if (found !== 0) return at + ((31 - Math.clz32(found & -found)) >> 3)
    }
    for (; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0
      if (byte < SPACE || byte === QUOTE || byte === BACKSLASH) break
    }
    return at
  }

  #escape(at: number): number {
    this.#escapes++
    if (this.#bytes[at] !== LETTER_U) return this.#one(at, ESCAPED)
    return this.#one(this.#one(this.#one(this.#one(at + 1, HEX_DIGITS), HEX_DIGITS), HEX_DIGITS), HEX_DIGITS)
  }

  #number(start: number): number {
    const bytes = this.#bytes
    let at = bytes[start] === MINUS ? start + 1 : start
    at = bytes[at] === ZERO ? at + 1 : this.#digits(at)
    if (bytes[at] === POINT) at = this.#digits(at + 1)
    if (((bytes[at] ?? 0) | 0x20) !== LETTER_E) return at
    at++
    return this.#digits(bytes[at] === PLUS || bytes[at] === MINUS ? at + 1 : at)
  }

  /** At least one. */
  #digits(start: number): number {
    let at = this.#one(start, DIGITS)
    while (DIGITS[this.#bytes[at] ?? 0]) at++
    return at
  }

  #literal(start: number, literal: Uint8Array): number {
    let at = start
    for (const byte of literal) at = this.#mark(at, byte)
    return at
  }

  #colon(at: number): number {
    return this.#white(this.#mark(this.#white(at), COLON))
  }

  #white(start: number): number {
    const bytes = this.#bytes
    let at = start
    for (; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0
      if (byte > SPACE || !WHITE[byte]) break
    }
    return at
  }

  #one(at: number, set: Uint8Array): number {
    if (!set[this.#bytes[at] ?? 0]) throw notJson()
    return at + 1
  }

  #mark(at: number, byte: number): number {
    if (this.#bytes[at] !== byte) throw notJson()
    return at + 1
  }
}

/** The high bit of each byte that is zero. */
function zeros(word: number): number {
  return (word - ONES) & ~word & HIGH_BITS
}

/** By code, for ASCII: 1 for those in `text`. */
function setOf(text: string): Uint8Array {
  const set = new Uint8Array(256)
  for (const byte of Buffer.from(text)) set[byte] = 1
  return set
}

function notJson(): RelayError {
  return malformed('not JSON')
}

export function malformed(why: string): RelayError {
  return new RelayError('invalid_event', 'Invalid event', { cause: new Error(`the body is ${why}`) })
}
