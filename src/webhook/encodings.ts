import { COMPACT, type Layout, layOut, minify, type Piece, PRETTY, SPACED } from '../json/format.js'

/** One way in which programs write JSON. */
export interface Encoding {
  /** For a record: `compact-go`. */
  readonly id: EncodingId
  /** For a sentence: `compact JSON`. */
  readonly name: string
  /**
   * Rewrites a valid JSON text in this encoding. Numbers, key order and repeated keys stay as they are; of strings only
   * the escapes change. Undefined if the result exceeds {@link MAX_GROWTH} times the text's length and 64 KiB.
   */
  readonly write: (json: string) => string | undefined
}

export type EncodingId =
  | 'compact'
  | 'compact-upper'
  | 'indented-go'
  | 'indented-go-long'
  | 'indented-go-replaced'
  | 'compact-go'
  | 'indented'
  | 'compact-ascii'
  | 'compact-php'
  | 'spaced-ascii'

/** Growth that no real payload reaches. Indenting deeply nested JSON could otherwise fill the memory. */
const MAX_GROWTH = 8
/** Characters. Shorter texts may grow as much as a text of this length. */
const MIN_GROWTH_BASE = 8192

/** How a program's string escapes differ from those of JSON.stringify. */
interface EscapeStyle {
  /** Matches the text in which this style makes a difference. */
  readonly pattern: RegExp
  /** Takes JSON text with JSON.stringify's escapes. What it replaces occurs only inside strings. */
  apply(json: string): string
}

/** Go's `encoding/json` and Rails escape HTML, and the two line ends that JavaScript strings once could not hold. */
const HTML = escapeCharacters(/[<>&\u2028\u2029]/g)
const NOT_ASCII = escapeCharacters(/[\u0080-\uffff]/g)
const DELETE = escapeCharacters(/\u007f/g)
/** Go writes this for bytes that are not UTF-8. */
const REPLACEMENT = escapeCharacters(/\ufffd/g)
const SLASH: EscapeStyle = { pattern: /\//, apply: (json) => json.replaceAll('/', String.raw`\/`) }
/** yajl, which GitHub uses. */
const UPPER_CASE = rewriteEscapes(/\\u00[01][a-f]/, (escape) =>
  escape.length > 2 ? `\\u${escape.slice(2).toUpperCase()}` : escape,
)
/** Go before 1.22, and json-iterator, which Gitea uses. */
const LONG = rewriteEscapes(/\\[bf]/, (escape) => LONG_ESCAPES.get(escape) ?? escape)
const LONG_ESCAPES = new Map([
  [String.raw`\b`, String.raw`\u0008`],
  [String.raw`\f`, String.raw`\u000c`],
])

interface EncodingSpec {
  readonly id: EncodingId
  readonly name: string
  readonly layout: Layout
  readonly escapeStyles: readonly EscapeStyle[]
}

/** The encodings in which code hosts, and people who test webhooks, sign JSON. The likeliest come first. */
const SPECS: readonly EncodingSpec[] = [
  { id: 'compact', name: 'compact JSON', layout: COMPACT, escapeStyles: [] },
  {
    id: 'compact-upper',
    name: 'compact JSON with upper-case escapes, as GitHub writes it',
    layout: COMPACT,
    escapeStyles: [UPPER_CASE],
  },
  {
    id: 'indented-go',
    name: "two-space indented JSON with Go's escapes, as Gitea writes it",
    layout: PRETTY,
    escapeStyles: [HTML],
  },
  {
    id: 'indented-go-long',
    name: "two-space indented JSON with Go's older escapes, as Gitea writes it",
    layout: PRETTY,
    escapeStyles: [HTML, LONG],
  },
  {
    id: 'indented-go-replaced',
    name: "two-space indented JSON with Go's escapes for bytes that are not UTF-8, as Gitea writes it",
    layout: PRETTY,
    escapeStyles: [HTML, LONG, REPLACEMENT],
  },
  { id: 'compact-go', name: "compact JSON with Go's escapes", layout: COMPACT, escapeStyles: [HTML] },
  { id: 'indented', name: 'two-space indented JSON', layout: PRETTY, escapeStyles: [] },
  {
    id: 'compact-ascii',
    name: 'compact JSON in ASCII',
    layout: COMPACT,
    escapeStyles: [NOT_ASCII, DELETE],
  },
  {
    id: 'compact-php',
    name: 'compact JSON in ASCII with escaped slashes, as PHP writes it',
    layout: COMPACT,
    escapeStyles: [NOT_ASCII, SLASH],
  },
  {
    id: 'spaced-ascii',
    name: 'JSON with spaces and in ASCII, as Python writes it',
    layout: SPACED,
    escapeStyles: [NOT_ASCII, DELETE],
  },
]

export const ENCODINGS: readonly Encoding[] = SPECS.map((spec) => ({
  id: spec.id,
  name: spec.name,
  write: (json) => join(encode([...minify(json)], spec), maxLengthOf(json)),
}))

const FIELD = 'payload='

/** The ways in which programs write a form with the field `payload`. The likeliest come first. */
export const FORMS: readonly ((json: string) => string)[] = [
  // Go, Python and Faraday.
  (json) =>
    `${FIELD}${percentEncoded(json)
      .replaceAll('%20', '+')
      .replaceAll(/[!'()*]/g, percent)}`,
  (json) => new URLSearchParams({ payload: json }).toString(),
  (json) => `${FIELD}${percentEncoded(json)}`,
]

/** One of the {@link FORMS} for a text in pieces. No piece may end within a character. */
export function* formInPieces(write: (json: string) => string, pieces: Iterable<string>): Generator<string> {
  yield FIELD
  for (const piece of pieces) yield write(piece).slice(FIELD.length)
}

/** The text in pieces of about 64 KiB, cut between characters. */
export function* splitText(text: string): Generator<string> {
  for (const [piece] of text.matchAll(/[^]{1,65536}/gu)) yield piece
}

/** JSON.stringify's output with Go's escapes. */
export function goEscaped(json: string): string {
  return HTML.apply(json)
}

/**
 * A valid JSON text in each of the {@link ENCODINGS}, in their order. Skips a text that equals an earlier one, and one
 * that grows too long. Each text is written only when the caller asks for it.
 */
export function* candidateEncodings(json: string): Generator<readonly [id: EncodingId, text: string]> {
  for (const [id, pieces] of candidateEncodingsInPieces(json)) {
    const text = join(pieces(), maxLengthOf(json))
    if (text !== undefined) yield [id, text]
  }
}

/**
 * {@link candidateEncodings} in pieces of about 64 KiB, so that a large text is never in memory as a whole. The caller
 * must limit the length: deeply nested JSON becomes many times as long when indented.
 */
export function* candidateEncodingsInPieces(
  json: string,
): Generator<readonly [id: EncodingId, pieces: () => Iterable<string>]> {
  const text = [...minify(json)]
  const seen = new Set<string>()
  for (const spec of SPECS) {
    const patterns = spec.escapeStyles.map(({ pattern }) => (occurs(pattern, text) ? pattern.source : ''))
    const key = [spec.layout.colon, spec.layout.indent, ...patterns.filter(Boolean)].join('\n')
    if (seen.has(key)) continue
    seen.add(key)
    yield [spec.id, () => encode(text, spec)]
  }
}

function occurs(pattern: RegExp, text: readonly Piece[]): boolean {
  return text.some(({ bytes }) => bytes.toString().search(pattern) !== -1)
}

function* encode(text: readonly Piece[], { layout, escapeStyles }: EncodingSpec): Generator<string> {
  for (const piece of layOut(text, layout))
    yield escapeStyles.reduce((json, style) => style.apply(json), piece)
}

/** Undefined if the text is longer than `maxLength`. */
function join(pieces: Iterable<string>, maxLength: number): string | undefined {
  let text = ''
  for (const piece of pieces) {
    text += piece
    if (text.length > maxLength) return undefined
  }
  return text
}

function maxLengthOf(json: string): number {
  return MAX_GROWTH * Math.max(json.length, MIN_GROWTH_BASE)
}

/** Writes these characters as `\u00e9`. */
function escapeCharacters(pattern: RegExp): EscapeStyle {
  return { pattern, apply: (json) => json.replaceAll(pattern, escaped) }
}

/** Rewrites escapes. Matches each as a whole: `\\u001b` is an escaped backslash and no `\u001b`. */
function rewriteEscapes(pattern: RegExp, rewrite: (escape: string) => string): EscapeStyle {
  return { pattern, apply: (json) => json.replaceAll(/\\(?:u00[01][0-9a-f]|.)/g, rewrite) }
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Lone surrogates, which UTF-8 cannot encode, become U+FFFD. */
function percentEncoded(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString())
}

function percent(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`
}
