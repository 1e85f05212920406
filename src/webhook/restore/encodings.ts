import { ByteWriter } from '../../json/byte-writer.js'
import { ESCAPES, escapesIn, GO_ESCAPES } from '../../json/escapes.js'
import { COMPACT, encode, type Layout, PRETTY, type Style } from '../../json/format.js'
import { minify } from '../../json/minify.js'
import { endOfGiteaUser, hasGiteaUser } from './gitea-user.js'

/** One way in which programs write JSON. */
export interface Encoding {
  /** For a record: `compact-go`. */
  readonly id: EncodingId
  /** For a sentence: `compact JSON`. */
  readonly name: string
  /** Whether programs that write JSON so are known to end it with a newline. */
  readonly newline: boolean
  /**
   * Rewrites a valid JSON text in this encoding. Numbers, key order and repeated keys stay as they are; of strings only
   * the escapes change. Undefined if the result exceeds {@link MAX_GROWTH} times the text's length and 64 KiB.
   */
  readonly write: (json: string) => string | undefined
}

export type EncodingId = (typeof SPECS)[number]['id']

/** Growth that no real payload reaches. Indenting deeply nested JSON could otherwise fill the memory. */
const MAX_GROWTH = 8
/** Bytes. Shorter texts may grow as much as a text of this length. */
const MIN_GROWTH_BASE = 8192

const ONE_SPACE: Layout = { indent: ' ', space: true }
const FOUR_SPACES: Layout = { indent: '    ', space: true }
const TAB: Layout = { indent: '\t', space: true }
const SPACED: Layout = { indent: '', space: true }

/** Go's `encoding/json` before 1.22, and json-iterator. */
const GO_LONG = GO_ESCAPES | ESCAPES.long
/** The same for text with bytes that are not UTF-8. */
const GO_REPLACED = GO_LONG | ESCAPES.replacement
const ASCII = ESCAPES.nonAscii | ESCAPES.delete
const PHP = ESCAPES.nonAscii | ESCAPES.slash
/** With JSON_UNESCAPED_UNICODE. */
const PHP_UNICODE = ESCAPES.slash | ESCAPES.lines

interface Spec extends Omit<Style, 'endOfCompact'> {
  readonly escapes: number
  readonly id: string
  readonly name: string
  readonly newline?: true
  /** Whether users of Gitea are compact inside indented text. */
  readonly compactUsers?: true
}

/**
 * The encodings in which code hosts, and people who test webhooks, sign JSON. The likeliest come first.
 *
 * Gitea indents every payload by two spaces, except `repository` and `wiki` events, which it indents by one (RepositoryPayload
 * and WikiPayload in modules/structs/hook.go, from v1.15 to main, and Forgejo). 1.15 writes users compact
 * ({@link endOfGiteaUser}); later versions indent the finished text, users too. Both use json-iterator, and Gitea since 1.26 Go's own package, or
 * `encoding/json/v2`, which escapes no HTML (modules/json/jsonv2.go).
 */
const SPECS = [
  { id: 'compact', name: 'compact JSON', layout: COMPACT, escapes: 0, newline: true },
  {
    id: 'compact-upper',
    name: 'compact JSON with upper-case escapes, as GitHub writes it',
    layout: COMPACT,
    escapes: ESCAPES.upperControl,
  },
  {
    id: 'indented-go',
    name: "two-space indented JSON with Go's escapes, as Gitea writes it",
    layout: PRETTY,
    escapes: GO_ESCAPES,
    newline: true,
  },
  {
    id: 'indented-go-long',
    name: "two-space indented JSON with Go's older escapes, as Gitea writes it",
    layout: PRETTY,
    escapes: GO_LONG,
  },
  {
    id: 'indented-go-replaced',
    name: "two-space indented JSON with Go's escapes for bytes that are not UTF-8, as Gitea writes it",
    layout: PRETTY,
    escapes: GO_REPLACED,
  },
  {
    id: 'indented',
    name: 'two-space indented JSON',
    layout: PRETTY,
    escapes: 0,
    newline: true,
  },
  {
    id: 'gitea-users',
    name: 'two-space indented JSON with compact users, as Gitea 1.15 writes it',
    layout: PRETTY,
    escapes: GO_LONG,
    compactUsers: true,
  },
  {
    id: 'gitea-users-replaced',
    name: 'two-space indented JSON with compact users, as Gitea 1.15 writes it for bytes that are not UTF-8',
    layout: PRETTY,
    escapes: GO_REPLACED,
    compactUsers: true,
  },
  {
    id: 'one-space-go',
    name: "one-space indented JSON with Go's escapes, as Gitea writes it",
    layout: ONE_SPACE,
    escapes: GO_ESCAPES,
  },
  {
    id: 'one-space-go-long',
    name: "one-space indented JSON with Go's older escapes, as Gitea writes it",
    layout: ONE_SPACE,
    escapes: GO_LONG,
  },
  {
    id: 'one-space-go-replaced',
    name: "one-space indented JSON with Go's escapes for bytes that are not UTF-8, as Gitea writes it",
    layout: ONE_SPACE,
    escapes: GO_REPLACED,
  },
  {
    id: 'one-space',
    name: 'one-space indented JSON, as newer Gitea writes it',
    layout: ONE_SPACE,
    escapes: 0,
  },
  {
    id: 'one-space-users',
    name: 'one-space indented JSON with compact users, as Gitea 1.15 writes it',
    layout: ONE_SPACE,
    escapes: GO_LONG,
    compactUsers: true,
  },
  {
    id: 'one-space-users-replaced',
    name: 'one-space indented JSON with compact users, as Gitea 1.15 writes it for bytes that are not UTF-8',
    layout: ONE_SPACE,
    escapes: GO_REPLACED,
    compactUsers: true,
  },
  {
    id: 'compact-go',
    name: "compact JSON with Go's escapes",
    layout: COMPACT,
    escapes: GO_ESCAPES,
    newline: true,
  },
  {
    id: 'compact-html-upper',
    name: 'compact JSON with upper-case escapes of HTML',
    layout: COMPACT,
    escapes: GO_ESCAPES | ESCAPES.upperHtml | ESCAPES.upperControl,
  },
  {
    id: 'compact-ascii',
    name: 'compact JSON in ASCII',
    layout: COMPACT,
    escapes: ASCII,
    newline: true,
  },
  {
    id: 'compact-php',
    name: 'compact JSON in ASCII with escaped slashes, as PHP writes it',
    layout: COMPACT,
    escapes: PHP,
  },
  {
    id: 'compact-php-unicode',
    name: 'compact JSON with escaped slashes, as PHP writes it',
    layout: COMPACT,
    escapes: PHP_UNICODE,
  },
  {
    id: 'spaced-ascii',
    name: 'JSON with spaces and in ASCII, as Python writes it',
    layout: SPACED,
    escapes: ASCII,
    newline: true,
  },
  {
    id: 'spaced',
    name: 'JSON with spaces, as Python writes it without ensure_ascii',
    layout: SPACED,
    escapes: 0,
    newline: true,
  },
  {
    id: 'four-spaces',
    name: 'four-space indented JSON',
    layout: FOUR_SPACES,
    escapes: 0,
    newline: true,
  },
  {
    id: 'four-spaces-ascii',
    name: 'four-space indented JSON in ASCII, as Python writes it',
    layout: FOUR_SPACES,
    escapes: ASCII,
    newline: true,
  },
  {
    id: 'four-spaces-php',
    name: 'four-space indented JSON in ASCII with escaped slashes, as PHP writes it',
    layout: FOUR_SPACES,
    escapes: PHP,
  },
  { id: 'tab', name: 'tab-indented JSON', layout: TAB, escapes: 0, newline: true },
  { id: 'tab-go', name: "tab-indented JSON with Go's escapes", layout: TAB, escapes: GO_ESCAPES },
] as const satisfies readonly Spec[]

export const ENCODINGS: readonly Encoding[] = SPECS.map((spec: Spec & { id: EncodingId }) => ({
  id: spec.id,
  name: spec.name,
  newline: spec.newline ?? false,
  write(json) {
    const text = minify(json, { normalize: true })
    return encode(text, styleOf(spec), writerFor(text))?.toString()
  },
}))

/** A way to write one JSON text. */
export interface Candidate {
  readonly encoding: Encoding
  /** Undefined if it exceeds the writer's limit. The bytes are valid until the writer is used again. */
  readonly write: (out: ByteWriter) => Buffer | undefined
}

/**
 * The {@link ENCODINGS} of a JSON text, in their order, as output of `minify` with normalized strings. Leaves out an encoding
 * that writes this text as an earlier one does.
 */
export function* candidateEncodings(text: Buffer): Generator<Candidate> {
  // Not needed for the first one, which most deliveries match.
  let escapes: number | undefined
  let users: boolean | undefined
  const seen = new Set<string>()
  for (const [i, encoding] of ENCODINGS.entries()) {
    const spec: Spec | undefined = SPECS[i]
    if (!spec) return
    const effective = [
      spec.layout.indent,
      spec.layout.space,
      spec.escapes && spec.escapes & (escapes ??= escapesIn(text)),
      spec.compactUsers === true && (users ??= hasGiteaUser(text)),
    ]
    const key = JSON.stringify(effective)
    if (seen.has(key)) continue
    seen.add(key)
    yield { encoding, write: (out) => encode(text, styleOf(spec), out) }
  }
}

/** A writer for texts in any encoding that a real payload may have. */
export function writerFor(text: Buffer): ByteWriter {
  return new ByteWriter(2 * text.length, MAX_GROWTH * Math.max(text.length, MIN_GROWTH_BASE))
}

function styleOf({ layout, escapes, compactUsers }: Spec): Style {
  return { layout, escapes, endOfCompact: compactUsers && endOfGiteaUser }
}
