import { parseJson } from '../json/parse.js'
import { MAX_DEPTH } from '../json/text.js'
import { formsOf } from './form-encodings.js'

const [LINE_END, SPACE, QUOTE, AND, COMMA, SLASH, ZERO] = [0x0a, 0x20, 0x22, 0x26, 0x2c, 0x2f, 0x30]
const [NINE, COLON, LESS, GREATER] = [0x39, 0x3a, 0x3c, 0x3e]
const [BRACKET, BACKSLASH, SMALL_B, SMALL_F, SMALL_U, BRACE, DELETE] = [
  0x5b, 0x5c, 0x62, 0x66, 0x75, 0x7b, 0x7f,
]

interface Layout {
  readonly name: string
  /** Indentation of one level; empty for JSON in one line. */
  readonly indent: string
  /** Puts a space after each colon and comma of JSON in one line. */
  readonly spaced?: true
  /** Writes users of Gitea in one line. */
  readonly compactUsers?: true
  /** Puts line breaks into empty objects and arrays. */
  readonly openEmpties?: true
}

const COMPACT: Layout = { name: 'compact JSON', indent: '' }
const SPACED: Layout = { name: 'JSON with spaces', indent: '', spaced: true }
const ONE: Layout = { name: 'one-space indented JSON', indent: ' ' }
const ONE_USERS: Layout = { name: `${ONE.name} with compact users`, indent: ' ', compactUsers: true }
const TWO: Layout = { name: 'two-space indented JSON', indent: '  ' }
const TWO_OPEN: Layout = { name: `${TWO.name} with open empties`, indent: '  ', openEmpties: true }
const TWO_USERS: Layout = { name: `${TWO.name} with compact users`, indent: '  ', compactUsers: true }
const FOUR: Layout = { name: 'four-space indented JSON', indent: '    ' }
const TAB: Layout = { name: 'tab-indented JSON', indent: '\t' }

/** Parts of JSON text that programs write in several ways. */
type Special = 'html' | 'slash' | 'delete' | 'lines' | 'replacement' | 'nonAscii' | 'long' | 'upper'

/**
 * Escapes that differ from JSON.stringify. `html`: `<>&`; `lines`: the line ends that JavaScript strings once could not
 * hold; `replacement`: U+FFFD, which stands for bytes that are not UTF-8; `nonAscii`: these and all other non-ASCII
 * characters. They become `\u003c`, the slash `\/`. `long`: `\b` and `\f` become `\u0008` and `\u000c`. `upper`: digits
 * in upper case, `\u001B`.
 */
type Escapes = Readonly<Partial<Record<Special, true>>>

const NONE: Escapes = {}
const UPPER: Escapes = { upper: true }
/** Escapes of Go's `encoding/json`, and of Rails. */
const GO: Escapes = { html: true, lines: true }
const GO_UPPER: Escapes = { ...GO, upper: true }
/** Escapes of Go before 1.22, and of json-iterator. */
const GO_LONG: Escapes = { ...GO, long: true }
const GO_REPLACED: Escapes = { ...GO_LONG, replacement: true }
const ASCII: Escapes = { delete: true, nonAscii: true }
const PHP: Escapes = { slash: true, nonAscii: true }
/** Escapes of PHP with JSON_UNESCAPED_UNICODE. */
const PHP_UNICODE: Escapes = { slash: true, lines: true }
/** Escapes of Rails, with slashes. */
const RAILS: Escapes = { ...GO, slash: true }

const GITEA = " with Go's escapes, as Gitea writes it"
const GITEA_LONG = " with Go's older escapes, as Gitea writes it"
const GITEA_REPLACED = " with Go's escapes for bytes that are not UTF-8, as Gitea writes it"
const GITEA_1_15 = ', as Gitea 1.15 writes it'

/**
 * An encoding of JSON. `name` follows the name of the layout. `newline` is set if programs are known to end this
 * encoding with a newline.
 */
type Style<Id = string> = readonly [id: Id, Layout, Escapes, name: string, newline?: 'newline']

/**
 * Encodings in which code hosts, other senders, and people who test webhooks write the JSON that they sign. The
 * likeliest come first.
 *
 * Gitea indents every payload by two spaces, except `repository` and `wiki` events, which it indents by one
 * (RepositoryPayload and WikiPayload in modules/structs/hook.go, from v1.15 to main, and Forgejo). 1.15 writes users in
 * one line, since json-iterator copies what User.MarshalJSON returns (modules/structs/user.go); later versions indent
 * the finished text, users too. Both use json-iterator. Gitea since 1.26 uses Go's own package, or `encoding/json/v2`,
 * which escapes no HTML (modules/json/jsonv2.go).
 *
 * Stripe indents by two spaces, with no newline at the end. Until 2025 or so it used older Ruby's
 * `JSON.pretty_generate`, which puts line breaks into empty values (docs.stripe.com/webhooks shows such events). GitLab
 * writes compact JSON with Yajl, whose escapes are in upper case (app/services/web_hook_service.rb,
 * lib/gitlab/json.rb). Sentry writes compact ASCII with simplejson (src/sentry/utils/json.py). Shopify escapes HTML and
 * slashes (shopify.dev/docs/api/admin-rest: `\u003cstrong\u003eGood snowboard!\u003c\/strong\u003e`), Slack slashes and
 * all non-ASCII characters (docs.slack.dev/interactivity: `https:\/\/hooks.slack.com\/actions\/…`). PagerDuty, Linear
 * and Bitbucket write compact JSON (go-pagerduty webhookv3_test.go; @linear/sdk and Atlassian's plugins in their
 * tests).
 */
const STYLES = [
  ['compact', COMPACT, NONE, '', 'newline'],
  ['compact-upper', COMPACT, UPPER, ' with upper-case escapes, as GitHub writes it'],
  ['compact-go', COMPACT, GO, " with Go's escapes", 'newline'],
  ['compact-ascii', COMPACT, ASCII, ' in ASCII', 'newline'],
  ['compact-php', COMPACT, PHP, ' in ASCII with escaped slashes, as PHP writes it'],
  ['compact-php-unicode', COMPACT, PHP_UNICODE, ' with escaped slashes, as PHP writes it'],
  ['compact-rails', COMPACT, RAILS, ' with escapes of HTML and slashes, as Shopify writes it'],
  ['indented-go', TWO, GO, GITEA, 'newline'],
  ['indented', TWO, NONE, '', 'newline'],
  ['indented-open', TWO_OPEN, NONE, ', as older Ruby writes it'],
  ['gitea-users', TWO_USERS, GO_LONG, GITEA_1_15],
  ['one-space-go', ONE, GO, GITEA],
  ['one-space', ONE, NONE, ', as newer Gitea writes it'],
  ['one-space-users', ONE_USERS, GO_LONG, GITEA_1_15],
  ['compact-html-upper', COMPACT, GO_UPPER, ' with upper-case escapes of HTML'],
  ['spaced-ascii', SPACED, ASCII, ' and in ASCII, as Python writes it', 'newline'],
  ['spaced', SPACED, NONE, ', as Python writes it without ensure_ascii', 'newline'],
  ['indented-go-long', TWO, GO_LONG, GITEA_LONG],
  ['indented-go-replaced', TWO, GO_REPLACED, GITEA_REPLACED],
  ['one-space-go-long', ONE, GO_LONG, GITEA_LONG],
  ['one-space-go-replaced', ONE, GO_REPLACED, GITEA_REPLACED],
  ['four-spaces', FOUR, NONE, '', 'newline'],
  ['four-spaces-ascii', FOUR, ASCII, ' in ASCII, as Python writes it', 'newline'],
  ['four-spaces-php', FOUR, PHP, ' in ASCII with escaped slashes, as PHP writes it'],
  ['tab', TAB, NONE, '', 'newline'],
  ['tab-go', TAB, GO, " with Go's escapes"],
] as const satisfies readonly Style[]

/** Name of one of the 26 encodings. */
export type EncodingId = (typeof STYLES)[number][0]

const ALL: readonly Style<EncodingId>[] = STYLES

/** Encodings of all versions of Gitea and Forgejo. A payload that one of them signed is written in these first. */
const GITEA_IDS: ReadonlySet<EncodingId> = new Set([
  'indented-go',
  'indented',
  'gitea-users',
  'one-space-go',
  'one-space',
  'one-space-users',
  'indented-go-long',
  'indented-go-replaced',
  'one-space-go-long',
  'one-space-go-replaced',
])
export const ENCODING_IDS: readonly EncodingId[] = ALL.map(([id]) => id)

/** Writes a JSON value in an encoding. `indent`, at most 10 characters, replaces its layout; '' is compact. */
export function writeJson(id: EncodingId, value: unknown, indent?: string): string {
  const [, layout = COMPACT, escapes = NONE] = ALL.find(([each]) => each === id) ?? []
  const compact = Buffer.from(JSON.stringify(value))
  const shape = shapeOf(compact)
  return escape(
    layOut(compact, shape, indent === undefined ? layout : { ...COMPACT, indent }),
    escapes,
    shape,
  ).toString()
}

/** A text that is written only when needed. */
export interface DeferredText {
  /** Size of the text in bytes, or a lower bound unless `isExact`. */
  readonly size: number
  readonly isExact: boolean
  readonly write: () => Buffer
}

interface EncodingName {
  readonly id: EncodingId
  /** Name for a sentence: `compact JSON with Go's escapes`. */
  readonly name: string
  readonly newline: boolean
}

/** An encoding in which a value may have been written. */
export interface Way extends EncodingName, DeferredText {}

/**
 * Yields the encodings that differ for a JSON value, the likeliest first: compact, then those of the sender. Each is
 * written only on request: layouts are made of the compact text, and the escapes of a layout, each in one pass over
 * bytes.
 * @param own the sender's usual encoding
 * @throws RangeError for more than {@link MAX_DEPTH} nested arrays and objects
 */
export function waysOf(value: unknown, own?: EncodingId): Generator<Way> {
  return waysOfJson(JSON.stringify(value), own)
}

/** {@link waysOf} for JSON as `JSON.stringify` writes it, whose numbers may be written otherwise. @throws RangeError */
export function* waysOfJson(json: string, own: EncodingId = 'compact'): Generator<Way> {
  const compact = Buffer.from(json)
  const isOwn = ([id]: Style<EncodingId>): boolean => id === own || (GITEA_IDS.has(own) && GITEA_IDS.has(id))
  const [first, ...rest] = ALL
  const others = [...rest.filter(isOwn), ...rest.filter((style) => !isOwn(style))]
  // The first encoding is nearly always the right one, and needs no pass of its own.
  if (first) yield wayOf(first, { size: compact.length, isExact: true, write: () => compact })
  const shape = shapeOf(compact)
  if (shape.depth > MAX_DEPTH) throw new RangeError(`JSON is nested more than ${MAX_DEPTH} deep`)
  /** The last layout that was made. Encodings that share a costly layout follow each other. */
  let made: { readonly layout: Layout; readonly text: Buffer } | undefined
  const seen = new Set([keyOf(COMPACT, NONE, shape)])
  for (const style of others) {
    const [, layout, escapes] = style
    const laidOut = sizeOf(layout, shape)
    const key = keyOf(laidOut === shape.size ? COMPACT : layout, escapes, shape)
    if (seen.has(key)) continue
    seen.add(key)
    if (layout.openEmpties && laidOut === sizeOf(TWO, shape)) continue
    if (layout.compactUsers && !USER_START.test(json)) continue
    const size = laidOut + growthOf(escapes, shape)
    yield wayOf(style, {
      // In one line, users take more than half of the indented size.
      size: layout.compactUsers ? Math.floor(size / 2) : size,
      isExact: layout.compactUsers !== true,
      write() {
        if (made?.layout !== layout) made = { layout, text: layOut(compact, shape, layout) }
        return escape(made.text, escapes, shape)
      },
    })
  }
}

function wayOf([id, layout, , end, newline]: Style<EncodingId>, written: DeferredText): Way {
  return { id, name: layout.name + end, newline: newline !== undefined, ...written }
}

/**
 * Computes a key that is equal for two encodings with the same text: a number for the layout, and a bit for each escape
 * that makes a difference.
 */
function keyOf(layout: Layout, escapes: Escapes, { count, present }: Shape): number {
  const there = escapes.html && count.html > 0 ? present | UPPER_BIT : present
  return ((LAYOUT_NUMBERS.get(layout) ?? 0) << SPECIAL.length) | ((MASKS.get(escapes) ?? 0) & there)
}

/** Counts over a value's compact text, from which sizes are computed. */
interface Shape {
  readonly size: number
  /** Depth of the deepest array or object. */
  readonly depth: number
  readonly colons: number
  readonly commas: number
  /** Line breaks of the indented text, and the sum of the levels of all lines. */
  readonly breaks: number
  readonly levels: number
  /** Additional line breaks and levels if empty values have line breaks. */
  readonly openBreaks: number
  readonly openLevels: number
  /** Number of occurrences. */
  readonly count: Readonly<Record<Special, number>>
  /** A bit for each part with a count over 0. */
  readonly present: number
  /** Bytes added by escaping all occurrences. */
  readonly growth: Readonly<Record<Special, number>>
}

const SPECIAL = [
  'html',
  'slash',
  'delete',
  'lines',
  'replacement',
  'nonAscii',
  'long',
  'upper',
] as const satisfies Special[]

/** Makes a bit mask over {@link SPECIAL}. */
function bitsOf(isIn: (each: Special) => boolean): number {
  return SPECIAL.reduce((bits, each, at) => (isIn(each) ? bits | (1 << at) : bits), 0)
}

const UPPER_BIT = bitsOf((each) => each === 'upper')
const MASKS = new Map(ALL.map(([, , escapes]) => [escapes, bitsOf((each) => escapes[each] === true)]))
const LAYOUT_NUMBERS = new Map(ALL.map(([, layout], number) => [layout, number]))

function shapeOf(compact: Buffer): Shape {
  const special = specialIn(compact)
  return { ...layoutOf(compact), ...special, present: bitsOf((each) => special.count[each] > 0) }
}

function layoutOf(compact: Buffer): Omit<Shape, 'count' | 'growth' | 'present'> {
  let [depth, deepest, colons, commas, breaks, levels] = [0, 0, 0, 0, 0, 0]
  let [openBreaks, openLevels, isInString] = [0, 0, false]
  const breakLine = (): void => {
    breaks++
    levels += depth
  }
  for (let at = 0; at < compact.length; at++) {
    const byte = compact[at] ?? 0
    if (byte === QUOTE) isInString = !isInString
    else if (isInString) {
      if (byte === BACKSLASH) at++
    } else if (byte === COLON) colons++
    else if (byte === COMMA) {
      commas++
      breakLine()
    } else if (byte === BRACE || byte === BRACKET) {
      deepest = Math.max(deepest, ++depth)
      // A closing bracket's code is two higher than the opening one's. An empty pair stays on one line.
      if (compact[at + 1] !== byte + 2) breakLine()
      else {
        openBreaks += byte === BRACE ? 1 : 2
        openLevels += depth - 1
      }
    } else if (byte === BRACE + 2 || byte === BRACKET + 2) {
      depth--
      if (compact[at - 1] !== byte - 2) breakLine()
    }
  }
  return { size: compact.length, depth: deepest, colons, commas, breaks, levels, openBreaks, openLevels }
}

/** Counts the special parts of a text. None occurs outside strings. */
function specialIn(compact: Buffer): Pick<Shape, 'count' | 'growth'> {
  let [html, slash, deleted, long, upper] = [0, 0, 0, 0, 0]
  let [lines, replacement, nonAscii, bytesOver] = [0, 0, 0, 0]
  for (let at = 0; at < compact.length; at++) {
    const byte = compact[at] ?? 0
    if (byte === BACKSLASH) {
      const next = compact[++at]
      if (next === SMALL_B || next === SMALL_F) long++
      else if (next === SMALL_U && compact[at + 1] === ZERO) upper++
    } else if (byte === SLASH) slash++
    else if (byte === DELETE) deleted++
    else if (byte < DELETE) {
      if (byte === AND || byte === LESS || byte === GREATER) html++
    } else {
      const bytes = bytesFrom(byte)
      nonAscii++
      // A character of four bytes is written as two units.
      bytesOver += (bytes === 4 ? 2 * ESCAPE : ESCAPE) - bytes
      if (isLineEnd(compact, at)) lines++
      else if (isReplacement(compact, at)) replacement++
      at += bytes - 1
    }
  }
  return {
    count: { html, slash, delete: deleted, lines, replacement, nonAscii, long, upper },
    growth: {
      html: (ESCAPE - 1) * html,
      slash,
      delete: (ESCAPE - 1) * deleted,
      lines: (ESCAPE - 3) * lines,
      replacement: (ESCAPE - 3) * replacement,
      nonAscii: bytesOver,
      long: (ESCAPE - 2) * long,
      upper: 0,
    },
  }
}

/** Bytes of an escape such as `\u003c`. */
const ESCAPE = 6

/** Returns the number of bytes of a character, by its first byte over 0x7f. */
function bytesFrom(first: number): 2 | 3 | 4 {
  if (first < 0xe0) return 2
  return first < 0xf0 ? 3 : 4
}

/** Decodes the character of several bytes at an index. */
function codePointAt(text: Buffer, at: number): number {
  const first = text[at] ?? 0
  const second = (text[at + 1] ?? 0) & 0x3f
  if (first < 0xe0) return ((first & 0x1f) << 6) | second
  const third = (text[at + 2] ?? 0) & 0x3f
  if (first < 0xf0) return ((first & 0x0f) << 12) | (second << 6) | third
  return ((first & 0x07) << 18) | (second << 12) | (third << 6) | ((text[at + 3] ?? 0) & 0x3f)
}

/** True for U+2028 and U+2029. */
function isLineEnd(text: Buffer, at: number): boolean {
  return text[at] === 0xe2 && text[at + 1] === 0x80 && (text[at + 2] === 0xa8 || text[at + 2] === 0xa9)
}

function isReplacement(text: Buffer, at: number): boolean {
  return text[at] === 0xef && text[at + 1] === 0xbf && text[at + 2] === 0xbd
}

/** Computes the size of compact text in a layout, before escapes. Users count as if they were indented. */
function sizeOf({ indent, spaced, openEmpties }: Layout, shape: Shape): number {
  const { size, colons, commas, breaks, levels, openBreaks, openLevels } = shape
  if (spaced) return size + colons + commas
  if (indent === '') return size
  const indented = size + colons + breaks + levels * indent.length
  return openEmpties ? indented + openBreaks + openLevels * indent.length : indented
}

function growthOf(escapes: Escapes, { growth }: Shape): number {
  return SPECIAL.reduce((sum, each) => (escapes[each] ? sum + growth[each] : sum), 0)
}

/**
 * Pattern of a user of Gitea: the only object that begins with an id (a deleted user has -1) and a login, nests
 * nothing, and ends with the login. Matched at the beginning of an object, in compact text.
 */
const TEXT = String.raw`"(?:[^"\\]|\\.){0,2000}"`
const USER = new RegExp(
  String.raw`\{"id":-?\d+,"login":"([^"\\]+)",(?:${TEXT}:(?:${TEXT}|[^"[\]{},]{1,30}|\{\}|\[\]),){0,99}?"username":"\1"\}`,
  'y',
)
const USER_START = /\{"id":-?\d+,"login":"/

/** Converts compact text to a layout. */
function layOut(compact: Buffer, shape: Shape, layout: Layout): Buffer {
  const { indent, spaced = false, openEmpties = false, compactUsers } = layout
  if (indent === '' && !spaced) return compact
  const to = Buffer.allocUnsafe(sizeOf(layout, shape))
  const level = Buffer.from(indent)
  // Latin-1, so that each byte is one character.
  const text = compactUsers ? compact.toString('latin1') : ''
  let [length, depth, isInString] = [0, 0, false]
  for (let at = 0; at < compact.length; at++) {
    const byte = compact[at] ?? 0
    if (byte === QUOTE) isInString = !isInString
    if (isInString || byte === QUOTE) {
      to[length++] = byte
      if (byte === BACKSLASH) to[length++] = compact[++at] ?? 0
    } else if (byte === COLON || byte === COMMA) {
      to[length++] = byte
      if (byte === COLON || spaced) to[length++] = SPACE
      else length = breakLine(to, length, level, depth)
    } else if (byte === BRACE || byte === BRACKET) {
      const user = compactUsers && byte === BRACE ? endOfUser(text, at) : at
      if (user > at) {
        length += compact.copy(to, length, at, user)
        at = user - 1
        continue
      }
      to[length++] = byte
      if (spaced) continue
      const isEmpty = compact[at + 1] === byte + 2
      if (isEmpty && !openEmpties) continue
      if (isEmpty && byte === BRACKET) to[length++] = LINE_END
      if (!isEmpty) depth++
      length = breakLine(to, length, level, depth)
    } else {
      const isEnd = byte === BRACE + 2 || byte === BRACKET + 2
      if (isEnd && !spaced && compact[at - 1] !== byte - 2) length = breakLine(to, length, level, --depth)
      to[length++] = byte
    }
  }
  return to.subarray(0, length)
}

/** Returns the index after a user of Gitea at `at`; `at` if there is none. */
function endOfUser(text: string, at: number): number {
  USER.lastIndex = at
  return USER.test(text) ? USER.lastIndex : at
}

/** Writes a line break with indentation. Returns the index after it. */
function breakLine(to: Buffer, length: number, level: Uint8Array, depth: number): number {
  to[length++] = LINE_END
  for (let left = depth; left > 0; left--)
    for (let at = 0; at < level.length; at++) to[length++] = level[at] ?? 0
  return length
}

/** Adds escapes to JSON text with those of JSON.stringify. */
function escape(text: Buffer, escapes: Escapes, shape: Shape): Buffer {
  if (!SPECIAL.some((each) => escapes[each] && shape.count[each] > 0)) return text
  const { html, slash, delete: isDelete, lines, replacement, nonAscii, long, upper } = escapes
  /** Bytes that may begin a part to escape. */
  const isLookedAt = new Uint8Array(256)
  if (long || upper) isLookedAt[BACKSLASH] = 1
  if (html) for (const byte of [AND, LESS, GREATER]) isLookedAt[byte] = 1
  if (slash) isLookedAt[SLASH] = 1
  if (isDelete) isLookedAt[DELETE] = 1
  if (nonAscii) isLookedAt.fill(1, DELETE + 1)
  if (lines) isLookedAt[0xe2] = 1
  if (replacement) isLookedAt[0xef] = 1
  const digits = upper ? UPPER_DIGITS : LOWER_DIGITS
  const to = Buffer.allocUnsafe(text.length + growthOf(escapes, shape))
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] ?? 0
    if (isLookedAt[byte] === 0) to[length++] = byte
    else if (byte === BACKSLASH) {
      // An escape is read as a whole: `\\b` is an escaped backslash, not `\b`.
      const next = text[++at] ?? 0
      if (long && next === SMALL_B) length = writeUnit(to, length, 0x08, digits)
      else if (long && next === SMALL_F) length = writeUnit(to, length, 0x0c, digits)
      else if (upper && next === SMALL_U && text[at + 1] === ZERO) {
        // Only escapes of control characters get digits in upper case.
        to[length++] = byte
        to[length++] = next
        for (const end = at + 4; at < end;) {
          const digit = text[++at] ?? 0
          to[length++] = digit > NINE ? digit & UPPER_CASE : digit
        }
      } else {
        to[length++] = byte
        to[length++] = next
      }
    } else if (byte === SLASH) {
      to[length++] = BACKSLASH
      to[length++] = byte
    } else if (byte <= DELETE) length = writeUnit(to, length, byte, digits)
    else if (nonAscii || (lines && isLineEnd(text, at)) || (replacement && isReplacement(text, at))) {
      const code = codePointAt(text, at)
      if (code > 0xffff) length = writeUnit(to, length, 0xd800 + ((code - 0x10000) >> 10), digits)
      const unit = code > 0xffff ? 0xdc00 + ((code - 0x10000) & 0x3ff) : code
      length = writeUnit(to, length, unit, digits)
      at += bytesFrom(byte) - 1
    } else to[length++] = byte
  }
  return to
}

const [LOWER_DIGITS, UPPER_DIGITS] = [Buffer.from('0123456789abcdef'), Buffer.from('0123456789ABCDEF')]

/** Mask that turns a letter of ASCII into upper case. */
const UPPER_CASE = 0xdf

/** Writes `\u` and four digits. Returns the index after them. */
function writeUnit(to: Buffer, length: number, unit: number, digits: Uint8Array): number {
  to[length] = BACKSLASH
  to[length + 1] = SMALL_U
  to[length + 2] = digits[unit >> 12] ?? 0
  to[length + 3] = digits[(unit >> 8) & 15] ?? 0
  to[length + 4] = digits[(unit >> 4) & 15] ?? 0
  to[length + 5] = digits[unit & 15] ?? 0
  return length + ESCAPE
}

/** A value written in an encoding. */
interface Written extends EncodingName {
  /** Undefined if it is longer than the limit. */
  readonly text: string | undefined
}

/**
 * Writes a JSON value in all encodings that differ, `own` and the likeliest first. `limit` is in bytes: deeply nested text
 * becomes hundreds of times as long when it is indented.
 * @throws RangeError as {@link waysOf}
 */
export function* writings(value: unknown, limit: number, own?: EncodingId): Generator<Written> {
  for (const { id, name, newline, size, write } of waysOf(value, own))
    yield { id, name, newline, text: size > limit ? undefined : write().toString() }
}

/**
 * Growth that no real payload reaches, and length that any may have, in characters. Indenting deeply nested JSON could
 * fill the memory.
 */
const MAX_GROWTH = 8
const MIN_LIMIT = 65_536
export const AS_FORM = 'as a form'

/**
 * Yields texts that a body, or the payload of a form, may have been before it was changed, each with a description. The
 * smallest changes come first.
 */
export function* originals(
  bytes: Buffer,
  inForm: boolean,
  own?: EncodingId,
): Generator<readonly [original: string, how: string]> {
  const text = bytes.toString()
  yield [`${text}\n`, 'with a newline at its end']
  yield [text.trimEnd(), 'without white space at its end']
  yield [text.replaceAll('\r\n', '\n'), 'with LF line ends']
  yield [text.replaceAll(/\r?\n/g, '\r\n'), 'with CRLF line ends']
  yield [text.replace(/^\uFEFF/, ''), 'without a byte order mark']
  yield [`\uFEFF${text}`, 'with a byte order mark']
  yield [Buffer.from(text, 'latin1').toString(), 'as UTF-8 but was read as Latin-1']
  // Programs that send forms write their JSON compact.
  const inForms = new Set([text])
  try {
    const value = parseJson(bytes)
    for (const written of writings(value, Math.max(MAX_GROWTH * text.length, MIN_LIMIT), own)) {
      if (written.text === undefined) continue
      yield [written.text, `as ${written.name}`]
      yield [`${written.text}\n`, `as ${written.name}, with a newline at its end`]
      if (written.id === 'compact' || written.id === 'compact-upper') inForms.add(written.text)
    }
  } catch {
    // The text is no JSON, so it has no other encodings.
  }
  const form = inForm ? `${AS_FORM} in another encoding` : AS_FORM
  for (const json of inForms)
    for (const { write } of formsOf(Buffer.from(json))) yield [write().toString(), form]
}
