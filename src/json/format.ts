import { ByteWriter } from './byte-writer.js'
import { createStringWriter } from './escapes.js'
import { minify } from './minify.js'

/** The text between tokens. */
export interface Layout {
  /** Indentation per level after a line break; '' for text without line breaks. */
  readonly indent: string
  /** Whether a space follows each colon and, in text without line breaks, each comma. */
  readonly space: boolean
}

export const COMPACT: Layout = { indent: '', space: false }
export const PRETTY: Layout = { indent: '  ', space: true }

/** One way to write JSON. */
export interface Style {
  readonly layout: Layout
  /** The sum of some `ESCAPES`. Default: 0, those of JSON.stringify. */
  readonly escapes?: number
  /**
   * The index past an object that is compact in any layout; undefined for other objects. Asked for each object. It must have
   * no objects or arrays in it.
   */
  readonly endOfCompact?: ((json: Buffer, start: number) => number | undefined) | undefined
}

const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BRACKET = 0x5b
const BRACE = 0x7b

/** What is at a byte outside strings: 1 for punctuation and quotes. */
const STRUCTURAL = new Uint8Array(256)
for (const byte of Buffer.from('",:[]{}')) STRUCTURAL[byte] = 1

/**
 * Writes the output of `minify` in another style, in one pass. Empty arrays and objects stay on one line. Undefined past the
 * writer's limit, where it stops, since deeply nested text becomes many times as long.
 */
export function encode(
  json: Buffer,
  { layout, escapes = 0, endOfCompact }: Style,
  out: ByteWriter,
): Buffer | undefined {
  out.clear()
  // The text is already written so.
  if (layout === COMPACT && escapes === 0) {
    out.pushRange(json, 0, json.length)
    return out.bytes
  }
  const strings = createStringWriter(escapes)
  const indent = createIndent(layout.indent)
  let depth = 0
  let compactUntil = 0
  for (let at = 0; at < json.length && !out.isOverLimit;) {
    const byte = json[at] ?? 0
    if (byte === QUOTE) {
      at = strings.write(json, at, out)
      continue
    }
    if (byte === BRACE && endOfCompact) compactUntil = endOfCompact(json, at) ?? compactUntil
    const isBare = at < compactUntil || !layout.space
    const start = at
    at = STRUCTURAL[byte] === 0 ? endOfScalar(json, at) : at + 1
    const opens = byte === BRACKET || byte === BRACE
    // The code of the closing character is two higher.
    const isEmpty = opens && json[at] === byte + 2
    if (isEmpty) at++
    const closes = byte === BRACKET + 2 || byte === BRACE + 2
    if (closes && !isBare) indent.breakLine(out, --depth)
    out.pushRange(json, start, at)
    if (isBare || isEmpty) continue
    if (opens) indent.breakLine(out, ++depth)
    else if (byte === COMMA) indent.breakLine(out, depth)
    if (byte === COLON || (byte === COMMA && layout.indent === '')) out.push(SPACE)
  }
  return out.bytes
}

function endOfScalar(json: Buffer, start: number): number {
  let at = start
  while (at < json.length && STRUCTURAL[json[at] ?? 0] === 0) at++
  return at
}

function createIndent(indent: string): { breakLine(out: ByteWriter, depth: number): void } {
  let levels = 32
  let text = Buffer.from(`\n${indent.repeat(levels)}`)
  return {
    breakLine(out, depth) {
      if (indent === '') return
      if (depth > levels) {
        levels = 2 * depth
        text = Buffer.from(`\n${indent.repeat(levels)}`)
      }
      out.pushRange(text, 0, 1 + Math.max(0, depth) * indent.length)
    },
  }
}

/** Writes well-formed JSON in another style. Keeps numbers, names and their order, and of strings all that the style allows. */
export function format(json: string, style: Style): string {
  const text = minify(json, { normalize: false })
  return String(encode(text, style, new ByteWriter(2 * text.length)))
}
