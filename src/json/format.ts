import { endOfString } from './tokens.js'

/**
 * A part of a JSON text, so that a large text is never in memory as a whole in each layout. Bytes, since a string joined from many
 * parts takes many times its length.
 */
export interface Piece {
  readonly bytes: Buffer
  /** Whether it is a part of one long string and contains no tokens. */
  readonly inString: boolean
}

/** The text between tokens. */
export interface Layout {
  /** Indentation per level after a line break; '' for text without line breaks. */
  readonly indent: string
  /** With the following space, if any. */
  readonly comma: string
  readonly colon: string
}

export const COMPACT: Layout = { indent: '', comma: ',', colon: ':' }
export const PRETTY: Layout = { indent: '  ', comma: ',', colon: ': ' }
export const SPACED: Layout = { indent: '', comma: ', ', colon: ': ' }

/** Characters: the approximate length of a piece. */
const PIECE = 65_536
/** Characters of a long string for one piece. Does not split a character, an escape or a pair of escapes. */
const PART_OF_STRING = /(?:\\u[dD][89abAB]..(?:\\u[dD][c-fC-F]..)?|\\u[^]{4}|\\[^]|[^\\]){1,8192}/gu

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BRACKET = 0x5b
const BRACE = 0x7b

/** Rewrites a JSON string, which includes its quotes. */
export type WriteString = (string: string) => string

/**
 * Removes the white space between the tokens of well-formed JSON. Keeps numbers, names and their order; `write` rewrites the
 * strings. No piece ends within `[]` or `{}`.
 * @throws SyntaxError from {@link asStringified} for a malformed string.
 */
export function* minify(json: string, write: WriteString = asStringified): Generator<Piece> {
  let out = ''
  for (let at = 0; at < json.length;) {
    const quote = json.indexOf('"', at)
    const stop = Math.min(quote === -1 ? json.length : quote, at + PIECE)
    out += json.slice(at, stop).replaceAll(/[ \n\r\t]+/g, '')
    at = stop
    if (stop === quote) {
      at = endOfString(json, stop)
      const string = json.slice(stop, at)
      if (string.length > PIECE) {
        yield tokens(out)
        yield* longString(string, write)
        out = ''
      } else out += write(string)
    }
    if (out.length < PIECE || /[[{]$/.test(out)) continue
    yield tokens(out)
    out = ''
  }
  yield tokens(out)
}

function tokens(text: string): Piece {
  return { bytes: Buffer.from(text), inString: false }
}

function* longString(string: string, write: WriteString): Generator<Piece> {
  const quote: Piece = { bytes: Buffer.from('"'), inString: true }
  yield quote
  for (const [part] of string.slice(1, -1).matchAll(PART_OF_STRING))
    yield { bytes: Buffer.from(write(`"${part}"`).slice(1, -1)), inString: true }
  yield quote
}

/** The string as JSON.stringify writes it. Only the escapes `\\u` and `\\/` may differ from that. */
export function asStringified(string: string): string {
  return /\\[u/]/.test(string) ? JSON.stringify(JSON.parse(string)) : string
}

/**
 * Writes the pieces of {@link minify} in another layout. Empty arrays and objects stay on one line. Deeply nested text becomes
 * many times as long, so the caller must limit it.
 */
export function* layOut(text: readonly Piece[], layout: Layout): Generator<string> {
  let depth = 0
  for (const { bytes, inString } of text) {
    const json = bytes.toString()
    if (inString || layout === COMPACT) {
      yield json
      continue
    }
    let out = ''
    let start = 0
    for (let at = 0; at < json.length; at++) {
      const char = json.charCodeAt(at)
      if (char === QUOTE) at = endOfString(json, at) - 1
      else if (char === COMMA) {
        out += json.slice(start, at) + layout.comma + newLine(layout, depth)
        start = at + 1
      } else if (char === COLON) {
        out += json.slice(start, at) + layout.colon
        start = at + 1
      } else if (char === BRACKET || char === BRACE) {
        // The code of the closing character is two higher.
        if (json.charCodeAt(at + 1) === char + 2) at++
        else {
          out += json.slice(start, at + 1) + newLine(layout, ++depth)
          start = at + 1
        }
      } else if (char === BRACKET + 2 || char === BRACE + 2) {
        out += json.slice(start, at) + newLine(layout, --depth)
        start = at
      }
      if (out.length < PIECE) continue
      yield out
      out = ''
    }
    yield out + json.slice(start)
  }
}

function newLine({ indent }: Layout, depth: number): string {
  return indent === '' ? '' : `\n${indent.repeat(depth)}`
}

/** Writes well-formed JSON in another layout. Keeps numbers, strings, names and their order. */
export function format(json: string, layout: Layout): string {
  return [...layOut([...minify(json, (string) => string)], layout)].join('')
}
