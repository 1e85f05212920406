import { parseJson } from '../json/parse.js'
import { endOfString, MAX_DEPTH } from '../json/text.js'

const [SPACE, QUOTE, COMMA, COLON, BRACKET, BACKSLASH, BRACE] = [0x20, 0x22, 0x2c, 0x3a, 0x5b, 0x5c, 0x7b]

interface Layout {
  readonly name: string
  /** Of one level; none for one line. */
  readonly indent: string
  /** A space after each colon and comma of the one line. */
  readonly spaced?: true
  /** Users of Gitea in one line. */
  readonly compactUsers?: true
  /** Empty objects and arrays with line breaks in them. */
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

/** What a program escapes otherwise than JSON.stringify does. */
interface Escapes {
  /** Characters that it writes as `\u003c`, and the slash as `\/`, as classes of a regular expression. */
  readonly chars?: readonly string[]
  /** `\b` and `\f` as `\u0008` and `\u000c`. */
  readonly long?: boolean | undefined
  /** Digits in upper case: `\u001B`. */
  readonly upper?: boolean | undefined
}

const HTML = '<>&'
const SLASH = '/'
const DELETE = '\u007f'
const NON_ASCII = '\u0080-\uffff'
/** The line ends that JavaScript strings once could not hold. */
const LINES = '\u2028\u2029'
/** What stands for bytes that are not UTF-8. */
const REPLACEMENT = '\ufffd'

const NONE: Escapes = {}
const UPPER: Escapes = { upper: true }
/** Go's `encoding/json`, and Rails. */
const GO: Escapes = { chars: [HTML, LINES] }
const GO_UPPER: Escapes = { ...GO, upper: true }
/** Go before 1.22, and json-iterator. */
const GO_LONG: Escapes = { ...GO, long: true }
const GO_REPLACED: Escapes = { chars: [HTML, LINES, REPLACEMENT], long: true }
const ASCII: Escapes = { chars: [DELETE, NON_ASCII] }
const PHP: Escapes = { chars: [SLASH, NON_ASCII] }
/** With JSON_UNESCAPED_UNICODE. */
const PHP_UNICODE: Escapes = { chars: [SLASH, LINES] }
/** Rails, with slashes. */
const RAILS: Escapes = { chars: [HTML, SLASH, LINES] }

const GITEA = " with Go's escapes, as Gitea writes it"
const GITEA_LONG = " with Go's older escapes, as Gitea writes it"
const GITEA_REPLACED = " with Go's escapes for bytes that are not UTF-8, as Gitea writes it"
const GITEA_1_15 = ', as Gitea 1.15 writes it'
const GITEA_1_15_REPLACED = ', as Gitea 1.15 writes it for bytes that are not UTF-8'

/** The end of its name; whether programs that write so are known to end it with a newline. */
type Style<Id = string> = readonly [id: Id, Layout, Escapes, name: string, newline?: 'newline']

/**
 * The ways in which code hosts and other senders, and people who test webhooks, write the JSON that they sign. The likeliest come first.
 *
 * Gitea indents every payload by two spaces, except `repository` and `wiki` events, which it indents by one (RepositoryPayload
 * and WikiPayload in modules/structs/hook.go, from v1.15 to main, and Forgejo). 1.15 writes users in one line, since
 * json-iterator copies what User.MarshalJSON returns (modules/structs/user.go); later versions indent the finished text, users
 * too. Both use json-iterator, and Gitea since 1.26 Go's own package, or `encoding/json/v2`, which escapes no HTML
 * (modules/json/jsonv2.go).
 *
 * Stripe indents by two spaces, with no newline at the end; until 2025 or so as older Ruby's `JSON.pretty_generate`, which has line breaks
 * in what is empty (docs.stripe.com/webhooks shows such events). GitLab writes compact JSON with Yajl, whose escapes are in upper case
 * (app/services/web_hook_service.rb, lib/gitlab/json.rb). Sentry writes compact ASCII with simplejson (src/sentry/utils/json.py). Shopify
 * escapes HTML and slashes (shopify.dev/docs/api/admin-rest: `\u003cstrong\u003eGood snowboard!\u003c\/strong\u003e`), Slack slashes and
 * all that is not ASCII (docs.slack.dev/interactivity: `https:\/\/hooks.slack.com\/actions\/…`). PagerDuty's, Linear's and Bitbucket's are
 * compact (go-pagerduty webhookv3_test.go; @linear/sdk and Atlassian's plugins in their tests).
 */
const STYLES = [
  ['compact', COMPACT, NONE, '', 'newline'],
  ['compact-upper', COMPACT, UPPER, ' with upper-case escapes, as GitHub writes it'],
  ['indented-go', TWO, GO, GITEA, 'newline'],
  ['indented-go-long', TWO, GO_LONG, GITEA_LONG],
  ['indented-go-replaced', TWO, GO_REPLACED, GITEA_REPLACED],
  ['indented', TWO, NONE, '', 'newline'],
  ['indented-open', TWO_OPEN, NONE, ', as older Ruby writes it'],
  ['gitea-users', TWO_USERS, GO_LONG, GITEA_1_15],
  ['gitea-users-replaced', TWO_USERS, GO_REPLACED, GITEA_1_15_REPLACED],
  ['one-space-go', ONE, GO, GITEA],
  ['one-space-go-long', ONE, GO_LONG, GITEA_LONG],
  ['one-space-go-replaced', ONE, GO_REPLACED, GITEA_REPLACED],
  ['one-space', ONE, NONE, ', as newer Gitea writes it'],
  ['one-space-users', ONE_USERS, GO_LONG, GITEA_1_15],
  ['one-space-users-replaced', ONE_USERS, GO_REPLACED, GITEA_1_15_REPLACED],
  ['compact-go', COMPACT, GO, " with Go's escapes", 'newline'],
  ['compact-html-upper', COMPACT, GO_UPPER, ' with upper-case escapes of HTML'],
  ['compact-ascii', COMPACT, ASCII, ' in ASCII', 'newline'],
  ['compact-php', COMPACT, PHP, ' in ASCII with escaped slashes, as PHP writes it'],
  ['compact-php-unicode', COMPACT, PHP_UNICODE, ' with escaped slashes, as PHP writes it'],
  ['compact-rails', COMPACT, RAILS, ' with escapes of HTML and slashes, as Shopify writes it'],
  ['spaced-ascii', SPACED, ASCII, ' and in ASCII, as Python writes it', 'newline'],
  ['spaced', SPACED, NONE, ', as Python writes it without ensure_ascii', 'newline'],
  ['four-spaces', FOUR, NONE, '', 'newline'],
  ['four-spaces-ascii', FOUR, ASCII, ' in ASCII, as Python writes it', 'newline'],
  ['four-spaces-php', FOUR, PHP, ' in ASCII with escaped slashes, as PHP writes it'],
  ['tab', TAB, NONE, '', 'newline'],
  ['tab-go', TAB, GO, " with Go's escapes"],
] as const satisfies readonly Style[]

/** One of the 28 ways to write JSON. */
export type EncodingId = (typeof STYLES)[number][0]

const ALL: readonly Style<EncodingId>[] = STYLES
export const ENCODING_IDS: readonly EncodingId[] = ALL.map(([id]) => id)

/** Writes a JSON value in one of the ways. `indent`, at most 10 characters, replaces its own layout; '' is compact. */
export function writeJson(id: EncodingId, value: unknown, indent?: string): string {
  const [, layout = COMPACT, escapes = NONE] = ALL.find(([each]) => each === id) ?? []
  return escape(layOut(value, indent === undefined ? layout : { ...COMPACT, indent }), escapes)
}

/** A value in one of the ways. */
interface Written {
  readonly id: EncodingId
  /** For a sentence: `compact JSON with Go's escapes`. */
  readonly name: string
  readonly newline: boolean
  /** Undefined if it is longer than the limit. */
  readonly text: string | undefined
}

/**
 * A JSON value in all ways in which it differs, the likeliest first. Each is written when it is asked for. `limit` is in
 * characters: deeply nested text becomes hundreds of times as long when it is indented.
 * @throws RangeError for more than {@link MAX_DEPTH} nested arrays and objects.
 */
export function* writings(value: unknown, limit: number): Generator<Written> {
  const compact = JSON.stringify(value)
  // The first way is nearly always the right one, and needs no pass of its own.
  let measured: ReturnType<typeof measure> | undefined
  const length = (layout: Layout): number =>
    layout === COMPACT ? compact.length : (measured ??= measure(compact))(layout)
  const found = new Map<string, boolean>()
  const occurs = (pattern: string): boolean => {
    const known = found.get(pattern) ?? new RegExp(pattern).test(compact)
    found.set(pattern, known)
    return known
  }
  const seen = new Set<string>()
  for (const [id, layout, escapes, end, newline] of ALL) {
    const chars = escapes.chars?.filter((each) => occurs(`[${each}]`)) ?? []
    const long = escapes.long === true && occurs(String.raw`\\[bf]`)
    const upper = escapes.upper === true && (chars.includes(HTML) || occurs(String.raw`\\u0`))
    const key = JSON.stringify([layout.name, chars, long, upper])
    if (seen.has(key)) continue
    seen.add(key)
    if (layout.compactUsers && !occurs(USER_START)) continue
    if (layout.openEmpties && length(layout) === length(TWO)) continue
    // Users are indented first, and take less than half of that in one line.
    const room = layout.compactUsers ? 2 * limit : limit
    const text =
      length(layout) > room
        ? undefined
        : escape(layout === COMPACT ? compact : layOut(value, layout), { chars, long, upper })
    yield { id, name: layout.name + end, newline: newline !== undefined, text }
  }
}

/** A user of Gitea: the only object that begins with an id (a deleted user has -1) and a login, nests nothing, and ends with the login. */
const USER_START = String.raw`\{"id":-?\d+,"login":"`
const USER =
  /\{(\n *)"id": -?\d+,\1"login": "([^"\\\n]+)",(?:\1"[^\n]{0,2000}[^{[\n]){0,99}?\1"username": "\2"\n *\}/g

function layOut(value: unknown, { indent, spaced, compactUsers, openEmpties }: Layout): string {
  const text = JSON.stringify(value, null, indent)
  if (spaced) return spaceOut(text)
  if (openEmpties) return text.split('\n').map(openEmpty).join('\n')
  return compactUsers ? text.replaceAll(USER, (user) => JSON.stringify(JSON.parse(user))) : text
}

/** A line whose value is an empty object or array, in two lines or three: a text would end in a quote. */
function openEmpty(line: string): string {
  const at = line.length - (line.endsWith(',') ? 3 : 2)
  const empty = line.slice(Math.max(0, at), at + 2)
  if (empty !== '{}' && empty !== '[]') return line
  const [spaces = ''] = /^ */.exec(line) ?? []
  return [line.slice(0, at + 1), ...(empty === '[]' ? [''] : []), spaces + line.slice(at + 1)].join('\n')
}

/** By bytes: millions of pieces of text take seconds. */
function spaceOut(compact: string): string {
  const from = Buffer.from(compact)
  const to = Buffer.allocUnsafe(2 * from.length)
  let length = 0
  let isInString = false
  for (let at = 0; at < from.length; at++) {
    const byte = from[at] ?? 0
    to[length++] = byte
    if (byte === QUOTE) isInString = !isInString
    else if (byte === BACKSLASH) to[length++] = from[++at] ?? 0
    else if (!isInString && (byte === COMMA || byte === COLON)) to[length++] = SPACE
  }
  return to.toString('utf8', 0, length)
}

/** How many characters compact text takes in each layout, before more is escaped. @throws RangeError for more than {@link MAX_DEPTH} levels */
function measure(compact: string): (layout: Layout) => number {
  let [depth, colons, commas, breaks, levels] = [0, 0, 0, 0, 0]
  /** What is empty adds these, if it has line breaks in it. */
  let [openBreaks, openLevels] = [0, 0]
  const breakLine = (): void => {
    breaks++
    levels += depth
  }
  for (let at = 0; at < compact.length; at++) {
    const code = compact.charCodeAt(at)
    if (code === QUOTE) at = endOfString(compact, at) - 1
    else if (code === COLON) colons++
    else if (code === COMMA) {
      commas++
      breakLine()
    } else if (code === BRACE || code === BRACKET) {
      if (++depth > MAX_DEPTH) throw new RangeError(`JSON is nested more than ${MAX_DEPTH} deep`)
      // The code of the closing one is two higher. With nothing in between, both stay on one line.
      if (compact.charCodeAt(at + 1) !== code + 2) breakLine()
      else {
        openBreaks += code === BRACE ? 1 : 2
        openLevels += depth - 1
      }
    } else if (code === BRACE + 2 || code === BRACKET + 2) {
      depth--
      if (compact.charCodeAt(at - 1) !== code - 2) breakLine()
    }
  }
  const { length } = compact
  return ({ indent, spaced, openEmpties }) => {
    if (spaced) return length + colons + commas
    if (indent === '') return length
    const indented = length + colons + breaks + levels * indent.length
    return openEmpties ? indented + openBreaks + openLevels * indent.length : indented
  }
}

function escape(text: string, { chars = [], long = false, upper = false }: Escapes): string {
  if (chars.length === 0 && !long && !upper) return text
  // An escape is matched as a whole: `\\b` is an escaped backslash, and no `\b`.
  const wholes = long || upper ? [String.raw`\\(?:u.{4}|.)`] : []
  const pattern = new RegExp([...wholes, ...chars.map((each) => `[${each}]`)].join('|'), 'g')
  const known = new Map([[SLASH, String.raw`\/`]])
  if (long) known.set(String.raw`\b`, String.raw`\u0008`).set(String.raw`\f`, String.raw`\u000c`)
  return text.replaceAll(pattern, (found) => {
    let written = known.get(found)
    if (written === undefined) {
      const isEscape = found.startsWith('\\')
      const digits = isEscape ? found.slice(2) : found.charCodeAt(0).toString(16).padStart(4, '0')
      // Of escapes, only those of control characters have digits in upper case.
      const isOther = isEscape && !(upper && found.startsWith(String.raw`\u0`))
      written = isOther ? found : `\\u${upper ? digits.toUpperCase() : digits}`
      known.set(found, written)
    }
    return written
  })
}

/** The ways in which programs write a form with the one field `payload`. The likeliest come first. Half surrogates become U+FFFD. */
export const FORMS: readonly ((payload: string) => string)[] = [
  // Go, Python and Faraday.
  (payload) =>
    encode(payload)
      .replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll('%20', '+'),
  (payload) => new URLSearchParams({ payload }).toString(),
  encode,
]

function encode(payload: string): string {
  return `payload=${encodeURIComponent(Buffer.from(payload).toString())}`
}

/** Growth that no real payload reaches, and characters that any may have. Indenting deeply nested JSON could fill the memory. */
const MAX_GROWTH = 8
const MIN_LIMIT = 65_536
export const AS_FORM = 'as a form'

/** What a body, or the payload of a form, may have been before it was changed, and how it was written. The smallest changes come first. */
export function* originals(
  bytes: Buffer,
  inForm: boolean,
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
    for (const written of writings(value, Math.max(MAX_GROWTH * text.length, MIN_LIMIT))) {
      if (written.text === undefined) continue
      yield [written.text, `as ${written.name}`]
      yield [`${written.text}\n`, `as ${written.name}, with a newline at its end`]
      if (written.id === 'compact' || written.id === 'compact-upper') inForms.add(written.text)
    }
  } catch {
    // It is no JSON.
  }
  const form = inForm ? `${AS_FORM} in another encoding` : AS_FORM
  for (const json of inForms) for (const write of FORMS) yield [write(json), form]
}
