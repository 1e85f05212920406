const BACKSLASH = 0x5c
const LETTER_U = 0x75
const LOWER_DIGITS = Buffer.from('0123456789abcdef')
const UPPER_DIGITS = Buffer.from('0123456789ABCDEF')
const MIN_CAPACITY = 1024
/** Bytes. For fewer, a loop is faster than a call. */
const MAX_LOOP = 32

/** Collects bytes, up to a limit. Used again for each text, so that many long texts take the memory of one. */
export class ByteWriter {
  private buffer: Buffer
  private length = 0

  private readonly limit: number

  /** Both in bytes. More than `limit` bytes may be collected, but not read. */
  constructor(capacity: number, limit = Infinity) {
    this.limit = limit
    this.buffer = Buffer.allocUnsafe(Math.max(capacity, MIN_CAPACITY))
  }

  clear(): void {
    this.length = 0
  }

  get isOverLimit(): boolean {
    return this.length > this.limit
  }

  /** The bytes collected, valid until {@link clear}; undefined if there are more than the limit. */
  get bytes(): Buffer | undefined {
    return this.isOverLimit ? undefined : this.buffer.subarray(0, this.length)
  }

  push(byte: number): void {
    if (this.length === this.buffer.length) this.grow(this.length + 1)
    this.buffer[this.length++] = byte
  }

  /** Copies a part of other bytes. */
  pushRange(from: Uint8Array, start: number, end: number): void {
    const { buffer, length } = this.reserve(end - start)
    if (end - start > MAX_LOOP) buffer.set(from.subarray(start, end), length)
    else for (let at = start; at < end; at++) buffer[length + at - start] = from[at] ?? 0
    this.length += end - start
  }

  /** A character as UTF-8. */
  pushCharacter(code: number): void {
    if (code < 0x80) return this.push(code)
    if (code < 0x800) this.push(0xc0 | (code >> 6))
    else {
      if (code < 0x1_0000) this.push(0xe0 | (code >> 12))
      else {
        this.push(0xf0 | (code >> 18))
        this.push(0x80 | ((code >> 12) & 0x3f))
      }
      this.push(0x80 | ((code >> 6) & 0x3f))
    }
    this.push(0x80 | (code & 0x3f))
  }

  /** A character as JSON's `\u00e9`; one outside the Basic Multilingual Plane as a pair. */
  pushEscape(code: number, upperCase = false): void {
    if (code > 0xffff) {
      this.pushEscape(0xd800 + ((code - 0x1_0000) >> 10), upperCase)
      return this.pushEscape(0xdc00 + ((code - 0x1_0000) & 0x3ff), upperCase)
    }
    const digits = upperCase ? UPPER_DIGITS : LOWER_DIGITS
    const { buffer, length } = this.reserve(6)
    buffer[length] = BACKSLASH
    buffer[length + 1] = LETTER_U
    buffer[length + 2] = digits[code >> 12] ?? 0
    buffer[length + 3] = digits[(code >> 8) & 0xf] ?? 0
    buffer[length + 4] = digits[(code >> 4) & 0xf] ?? 0
    buffer[length + 5] = digits[code & 0xf] ?? 0
    this.length += 6
  }

  /** Makes room for `count` more bytes. */
  private reserve(count: number): this {
    if (this.length + count > this.buffer.length) this.grow(this.length + count)
    return this
  }

  private grow(capacity: number): void {
    const buffer = Buffer.allocUnsafe(Math.max(capacity, 2 * this.buffer.length))
    this.buffer.copy(buffer, 0, 0, this.length)
    this.buffer = buffer
  }
}
