import { isUtf8 } from 'node:buffer'
import { RelayError } from '../../base/errors.js'
import { isObject, isRootName, withoutRoot } from '../../json/parse.js'
import { jsonTokens, valueText } from '../../json/text.js'
import { lackingPaths, readPath } from '../../replay/edit.js'
import { readContent } from '../../senders/content.js'
import { isFormBody } from '../../http/forms.js'

/** Largest part of a body in one result: some 4,000 tokens, which leaves room for work. Bytes. */
const PAGE_BYTES = 16_384
/** Largest body that is shown without a request for it: it takes no more room than its outline. Bytes. */
const SMALL_BYTES = 300

/** Part of a body to show. */
export interface Wanted {
  readonly path?: string | undefined
  readonly page?: number | undefined
}

/**
 * Makes the field `body` of a result: a page of the body, or of the JSON at a path; without either, the outline of the
 * body, or all of it if it is small. `next` is the page after it, or null.
 * @throws RelayError `usage` for a path that the body lacks, with the nearest, or for a page that it lacks
 */
export function bodyPart(body: Uint8Array, wanted: Wanted): object {
  const bytes = body.byteLength
  const content = readContent(body)
  const { path, page }: Wanted = isRootName(content.value, wanted.path) ? { page: wanted.page ?? 1 } : wanted
  const isJson = content.value !== undefined
  if (path === undefined && page === undefined && isJson && bytes > SMALL_BYTES)
    return { bytes, outline: outlineOf(content.value) }
  const json = content.kind === 'json' ? content.text : JSON.stringify(content.value)
  if (path === undefined && !isJson) return { ...pageOf([...bytePages(body)], page), bytes }
  if (path === undefined) return { ...pageOf([...jsonPages(json)], page), bytes }
  return { ...pageOf([...jsonPages(textAt(body, isJson ? json : undefined, path))], page), path, bytes }
}

function pageOf(pages: readonly Piece[], page = 1): object {
  const found = pages[page - 1]
  if (!found) throw new RelayError('usage', `page: the last one is ${pages.length}`)
  return { ...found, page, next: page < pages.length ? page + 1 : null }
}

/** The text of the value at a path. @throws RelayError `usage` */
function textAt(body: Uint8Array, json: string | undefined, text: string): string {
  const path = readPath(text)
  if (!path)
    throw new RelayError('usage', 'path: must be names joined by dots, such as commits[0].author.name')
  if (json === undefined)
    throw new RelayError('usage', 'path: the body is not JSON. page: 1 shows it as it is')
  const found = valueText(json, withoutRoot(readContent(body).value, path))
  if (found !== undefined) return found
  const [lacking] = lackingPaths(body, [{ path, value: null }], { form: isFormBody(body) })
  const nearest = lacking?.nearest
  throw new RelayError(
    'usage',
    `path: the payload has no ${text}${nearest === undefined ? '' : ` (did you mean ${nearest}?)`}`,
    { quotesOutside: nearest !== undefined },
  )
}

/** Most members of an outline, and characters of a value in it. */
const MAX_OUTLINED = 40
const MAX_VALUE = 40

/** Top level of a payload: short values as they are, and the number of members of each object or list. */
function outlineOf(value: unknown): object {
  if (Array.isArray(value)) return { list: value.length }
  if (!isObject(value)) return {}
  const members = Object.entries(value)
  const shown = members.slice(0, MAX_OUTLINED).map(([name, each]) => [name, shortOf(each)] as const)
  const rest = members.length - shown.length
  return Object.fromEntries([...shown, ...(rest > 0 ? [['…', rest] as const] : [])])
}

function shortOf(value: unknown): unknown {
  if (Array.isArray(value)) return `[${value.length}]`
  if (isObject(value)) return `{${Object.keys(value).length}}`
  return typeof value === 'string' && value.length > MAX_VALUE ? `${value.slice(0, MAX_VALUE)}…` : value
}

/** A part of a body: its text, or `textBase64`. `from` is the path at which it begins. */
type Piece = object

/** Cuts bytes into pages, between characters if they are text. */
function* bytePages(body: Uint8Array): Generator<Piece> {
  const bytes = Buffer.from(body)
  const isText = isUtf8(bytes)
  for (let at = 0; at < bytes.length || at === 0;) {
    let end = Math.min(bytes.length, at + PAGE_BYTES)
    // Ends at a character, whose further bytes begin with the bits 10.
    if (isText) while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
    const piece = bytes.subarray(at, end)
    yield isText ? { text: piece.toString() } : { textBase64: piece.toString('base64') }
    if (end === bytes.length) return
    at = end
  }
}

/**
 * Cuts JSON into pages that are JSON themselves. A page ends after a value or within a long text; the next one repeats the
 * objects and lists around what follows. JSON of one page is unchanged.
 */
function* jsonPages(json: string): Generator<Piece> {
  if (Buffer.byteLength(json) <= PAGE_BYTES) {
    yield { text: json }
    return
  }
  const page = new Page()
  let before = ''
  for (const { start, end } of jsonTokens(json)) {
    const raw = json.slice(start, end)
    if (raw === ':') page.name(before)
    else if (raw === ',') page.next()
    else if (raw === '}' || raw === ']') page.close()
    // The name of a member is written with its value.
    else if (!page.isInObject || before === ':') {
      // A long text begins in what is left of a page.
      const begins = isLong(raw) && page.room > 2 * MIN_PIECE
      if (!page.hasRoom(raw) && !page.isEmpty && !begins) yield page.turn()
      let rest = raw
      while (isLong(rest) && !page.hasRoom(rest)) {
        const cut = cutWithin(rest, Math.max(page.room, MIN_PIECE))
        page.value(`${rest.slice(0, cut)}"`)
        yield page.turn()
        rest = `"${rest.slice(cut)}`
      }
      page.value(rest)
    }
    before = raw
  }
  yield page.turn()
}

/** An object or a list around the next value. */
interface Level {
  readonly bracket: '{' | '['
  /** Name of the current member, as written. */
  name: string
  /** Place of the current element. */
  index: number
  /** Number of values in the current page. */
  written: number
}

/** A page of JSON that is being written. */
class Page {
  readonly #levels: Level[] = []
  #text = ''
  #bytes = 0
  /** Path at which it begins. Undefined for the first page. */
  #from: string | undefined
  /** True if it has no value yet. */
  isEmpty = true

  get isInObject(): boolean {
    return this.#levels.at(-1)?.bracket === '{'
  }

  /** Room for a value, after its name and the closing brackets. Bytes. */
  get room(): number {
    const level = this.#levels.at(-1)
    const named = level?.bracket === '{' ? Buffer.byteLength(level.name) : 0
    return PAGE_BYTES - this.#bytes - this.#levels.length - named - 5
  }

  hasRoom(raw: string): boolean {
    return raw.length <= this.room && Buffer.byteLength(raw) <= this.room
  }

  /** Names the next value. */
  name(raw: string): void {
    const level = this.#levels.at(-1)
    if (level) level.name = raw
  }

  /** Moves to the next element. */
  next(): void {
    const level = this.#levels.at(-1)
    if (level) level.index += 1
  }

  /** Writes a value, or the bracket that begins one. */
  value(raw: string): void {
    this.#write(this.#lead(this.#levels.at(-1)) + raw)
    this.isEmpty = false
    if (raw === '{' || raw === '[') this.#levels.push({ bracket: raw, name: '', index: 0, written: 0 })
  }

  /** Ends an object or a list. */
  close(): void {
    this.#write(this.#levels.pop()?.bracket === '{' ? '}' : ']')
  }

  /** Returns the page, and begins the next one inside the same objects and lists. */
  turn(): Piece {
    const ends = this.#levels.map(({ bracket }) => (bracket === '{' ? '}' : ']')).toReversed()
    const piece = { text: this.#text + ends.join(''), ...(this.#from !== undefined && { from: this.#from }) }
    ;[this.#text, this.#bytes, this.isEmpty] = ['', 0, true]
    this.#from = pathOf(this.#levels)
    for (const level of this.#levels) level.written = 0
    for (const [at, { bracket }] of this.#levels.entries())
      this.#write(this.#lead(this.#levels[at - 1]) + bracket)
    return piece
  }

  #write(text: string): void {
    this.#text += text
    this.#bytes += Buffer.byteLength(text)
  }

  /** Text before a value: a comma, and the name of the member. */
  #lead(level: Level | undefined): string {
    if (!level) return ''
    level.written += 1
    return (level.written > 1 ? ',' : '') + (level.bracket === '{' ? `${level.name}:` : '')
  }
}

/** Formats `commits[3].author`: the value that is written next. */
function pathOf(levels: readonly Level[]): string {
  const steps = levels.map(({ bracket, name, index }) =>
    bracket === '[' ? `[${index}]` : `.${String(JSON.parse(name || '""'))}`,
  )
  return steps.join('').replace(/^\./, '')
}

/** Least part of a long text in a page. Bytes. */
const MIN_PIECE = 1024
/** Longest character of a JSON string: two surrogates as escapes. */
const LONGEST = 12

function isLong(raw: string): boolean {
  return raw.startsWith('"') && raw.length > MIN_PIECE
}

/** Position between two characters of a JSON string, at most `limit` bytes after its start. */
function cutWithin(raw: string, limit: number): number {
  const window = raw.slice(1, Math.min(limit + LONGEST, raw.length - 1))
  const units = window.match(/\\ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|\\u[\da-f]{4}|\\.|[\s\S]/giu) ?? []
  let [size, length] = [1, 1]
  for (const unit of units) {
    size += Buffer.byteLength(unit)
    if (size > limit) break
    length += unit.length
  }
  return Math.max(length, 2)
}
