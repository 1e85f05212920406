import { endOfString } from './json.js'

/** One way in which programs write JSON. */
export interface Encoding {
  /** For a record: `compact-go`. */
  readonly id: EncodingId
  /** For a sentence: `compact JSON`. */
  readonly name: string
  /**
   * Writes a valid JSON text so. Numbers, order and repeated keys stay as they are; so do strings, but for escapes.
   * Undefined where that would be {@link MAX_GROWTH} times as long, and over 64 KiB.
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

/** More than any payload grows, while indenting what is nested deep could fill the memory. A small one may grow more. */
const MAX_GROWTH = 8
const SMALL = 8192

interface Layout {
  readonly indent: string
  readonly comma: string
  readonly colon: string
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BRACKET = 0x5b
const BRACE = 0x7b

const COMPACT: Layout = { indent: '', comma: ',', colon: ':' }
const INDENTED: Layout = { indent: '  ', comma: ',', colon: ': ' }
const SPACED: Layout = { indent: '', comma: ', ', colon: ': ' }

/** In what a program's strings differ from those that JSON.stringify writes. */
interface Habit {
  /** Occurs where the habit shows. */
  readonly sign: RegExp
  /** Takes JSON text with strings as JSON.stringify writes them. Of what it looks for nothing can stand outside a string. */
  apply(json: string): string
}

/** `encoding/json` has HTML in mind, Rails too; both write the two line ends that JavaScript once had no strings with. */
const HTML = escaping(/[<>&\u2028\u2029]/g)
const NOT_ASCII = escaping(/[\u0080-\uffff]/g)
const DELETE = escaping(/\u007f/g)
/** What Go writes for bytes that are not UTF-8. */
const REPLACEMENT = escaping(/\ufffd/g)
const SLASH: Habit = { sign: /\//, apply: (json) => json.replaceAll('/', String.raw`\/`) }
/** As yajl, which GitHub uses. */
const UPPER_CASE = respelling(/\\u00[01][a-f]/, (escape) =>
  escape.length > 2 ? `\\u${escape.slice(2).toUpperCase()}` : escape,
)
/** As Go before 1.22 and json-iterator, which Gitea uses. */
const LONG = respelling(/\\[bf]/, (escape) => LONG_ESCAPES.get(escape) ?? escape)
const LONG_ESCAPES = new Map([
  [String.raw`\b`, String.raw`\u0008`],
  [String.raw`\f`, String.raw`\u000c`],
])

interface Style {
  readonly id: EncodingId
  readonly name: string
  readonly layout: Layout
  readonly habits: readonly Habit[]
}

/** As code hosts and those who test with them sign JSON; the likeliest first. */
const STYLES: readonly Style[] = [
  { id: 'compact', name: 'compact JSON', layout: COMPACT, habits: [] },
  {
    id: 'compact-upper',
    name: 'compact JSON with upper-case escapes, as GitHub writes it',
    layout: COMPACT,
    habits: [UPPER_CASE],
  },
  {
    id: 'indented-go',
    name: "two-space indented JSON with Go's escapes, as Gitea writes it",
    layout: INDENTED,
    habits: [HTML],
  },
  {
    id: 'indented-go-long',
    name: "two-space indented JSON with Go's older escapes, as Gitea writes it",
    layout: INDENTED,
    habits: [HTML, LONG],
  },
  {
    id: 'indented-go-replaced',
    name: "two-space indented JSON with Go's escapes for what is not UTF-8, as Gitea writes it",
    layout: INDENTED,
    habits: [HTML, LONG, REPLACEMENT],
  },
  { id: 'compact-go', name: "compact JSON with Go's escapes", layout: COMPACT, habits: [HTML] },
  { id: 'indented', name: 'two-space indented JSON', layout: INDENTED, habits: [] },
  { id: 'compact-ascii', name: 'compact JSON in ASCII', layout: COMPACT, habits: [NOT_ASCII, DELETE] },
  {
    id: 'compact-php',
    name: 'compact JSON in ASCII with escaped slashes, as PHP writes it',
    layout: COMPACT,
    habits: [NOT_ASCII, SLASH],
  },
  {
    id: 'spaced-ascii',
    name: 'JSON with spaces and in ASCII, as Python writes it',
    layout: SPACED,
    habits: [NOT_ASCII, DELETE],
  },
]

export const ENCODINGS: readonly Encoding[] = STYLES.map((style) => ({
  id: style.id,
  name: style.name,
  write: (json) => spelled(laidOut(plain(json), style.layout), style),
}))

/** How the field `payload` of a form is written; the likeliest first. */
export const FORMS: readonly ((json: string) => string)[] = [
  // As Go, Python and Faraday write forms.
  (json) =>
    `payload=${percentEncoded(json)
      .replaceAll('%20', '+')
      .replaceAll(/[!'()*]/g, percent)}`,
  (json) => new URLSearchParams({ payload: json }).toString(),
  (json) => `payload=${percentEncoded(json)}`,
]

/** What JSON.stringify wrote, with Go's escapes. */
export function goEscaped(json: string): string {
  return HTML.apply(json)
}

/**
 * A valid JSON text in each of the {@link ENCODINGS}, in their order. A text that was given already, or cannot be
 * written, is left out; each is written when it is asked for.
 */
export function* spellings(json: string): Generator<readonly [id: EncodingId, text: string]> {
  const text = plain(json)
  // Several styles share one, and laying out takes longest.
  const layouts = new Map<Layout, string | undefined>()
  const seen = new Set<string>()
  for (const style of STYLES) {
    const shown = style.habits.map(({ sign }) => (text.search(sign) === -1 ? '' : sign.source))
    const key = [style.layout.colon, style.layout.indent, ...shown.filter(Boolean)].join('\n')
    if (seen.has(key)) continue
    seen.add(key)
    if (!layouts.has(style.layout)) layouts.set(style.layout, laidOut(text, style.layout))
    const written = spelled(layouts.get(style.layout), style)
    if (written !== undefined) yield [style.id, written]
  }
}

function spelled(text: string | undefined, { habits }: Style): string | undefined {
  let written = text
  for (const habit of habits) written = written && habit.apply(written)
  return written
}

/**
 * Without white space between tokens, strings as JSON.stringify writes them. Token by token, since a value once parsed
 * has lost large numbers, repeated keys and the order of numeric ones.
 */
function plain(json: string): string {
  let out = ''
  for (let at = 0; at < json.length;) {
    const quote = json.indexOf('"', at)
    const start = quote === -1 ? json.length : quote
    out += json.slice(at, start).replaceAll(/[ \n\r\t]+/g, '')
    const end = endOfString(json, start) + 1
    out += respelled(json.slice(start, end))
    at = end
  }
  return out
}

/** Of the escapes only these may be others than JSON.stringify writes. */
function respelled(string: string): string {
  return /\\[u/]/.test(string) ? JSON.stringify(JSON.parse(string)) : string
}

/** Takes what {@link plain} gives. */
function laidOut(json: string, layout: Layout): string | undefined {
  if (layout === COMPACT) return json
  const longest = MAX_GROWTH * Math.max(json.length, SMALL)
  let out = ''
  let depth = 0
  let start = 0
  for (let at = 0; at < json.length; at++) {
    const char = json.charCodeAt(at)
    if (char === QUOTE) at = endOfString(json, at)
    else if (char === COMMA) {
      out += json.slice(start, at) + layout.comma + newLine(layout, depth)
      start = at + 1
    } else if (char === COLON) {
      out += json.slice(start, at) + layout.colon
      start = at + 1
    } else if (char === BRACKET || char === BRACE) {
      // Both differ from what closes them by two.
      if (json.charCodeAt(at + 1) === char + 2) at++
      else {
        out += json.slice(start, at + 1) + newLine(layout, ++depth)
        start = at + 1
      }
    } else if (char === BRACKET + 2 || char === BRACE + 2) {
      out += json.slice(start, at) + newLine(layout, --depth)
      start = at
    }
    if (out.length > longest) return undefined
  }
  return out + json.slice(start)
}

function newLine({ indent }: Layout, depth: number): string {
  return indent === '' ? '' : `\n${indent.repeat(depth)}`
}

/** Writes these characters as `\u00e9`. */
function escaping(characters: RegExp): Habit {
  return { sign: characters, apply: (json) => json.replaceAll(characters, escaped) }
}

/** Writes escapes in another way. Takes each as a whole: in `\\u001b` there is a backslash, and no `\u001b`. */
function respelling(sign: RegExp, respell: (escape: string) => string): Habit {
  return { sign, apply: (json) => json.replaceAll(/\\(?:u00[01][0-9a-f]|.)/g, respell) }
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Half of a surrogate pair, which no encoding of UTF-8 has, is replaced. */
function percentEncoded(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString())
}

function percent(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`
}
