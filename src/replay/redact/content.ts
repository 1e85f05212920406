import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../json/parse.js'
import { jsonTokens } from '../../json/text.js'
import { isHolding, isNameOfSecret, isNaming, isSecretName, isSecretParameter } from './names.js'
import type { TextRange } from './span.js'

/** A text within structured content. Parts are in order; the bytes between them stay unchanged. */
export interface Part extends TextRange {
  /** Decoded value, without escapes. */
  readonly value: string
  /** Name of the value. Empty for a name itself, or if there is none. */
  readonly name: string
  readonly isSecret: boolean
  /** Encodes another value for this position. */
  readonly encode: (value: string) => string
}

/** Splits structured content into its parts. A form must be announced as such. Undefined for plain text. */
export function partsOf(text: string, isForm: boolean): Iterable<Part> | undefined {
  if (isJson(text)) return jsonParts(text)
  return jsonLines(text) ?? multipartParts(text) ?? (isForm ? formParts(text) : base64Part(text))
}

const asItIs = (value: string): string => value

function isJson(text: string): boolean {
  if (!/^\s*[[{"]/.test(text)) return false
  try {
    parseJson(text)
    return true
  } catch {
    return false
  }
}

/** Decodes a JSON string. Most have no escapes, and need no parser. */
const textOf = (raw: string): string => (raw.includes('\\') ? String(JSON.parse(raw)) : raw.slice(1, -1))

/** A name or value in JSON, with the array or object around it. */
interface Item extends TextRange {
  readonly raw: string
  readonly isName: boolean
  readonly around: Container | undefined
}

interface Container {
  readonly start: number
  readonly isObject: boolean
  readonly isSecret: boolean
  /** Name of the current member. */
  name: string
  isName: boolean
  /** Index of the current item, from 0. */
  index: number
  /** Previous text in a list. */
  previous: string
  /** True if a member of the object, or the first item of the list, names a secret. */
  namesSecret: boolean
}

/**
 * Yields names and values. `named` has the starts of containers in which one member or item names the secret that
 * another one holds.
 */
function* jsonItems(
  text: string,
  named: ReadonlySet<number>,
  onEnd?: (ended: Container) => void,
): Generator<Item> {
  const open: Container[] = []
  for (const { start, end } of jsonTokens(text, Infinity)) {
    const raw = text.slice(start, end)
    const around = open.at(-1)
    if (raw === '{' || raw === '[') {
      const isSecret = around !== undefined && isSecretItem(around, named)
      const name = around?.name ?? ''
      const isObject = raw === '{'
      open.push({
        start,
        isObject,
        isSecret,
        name,
        isName: isObject,
        index: 0,
        previous: '',
        namesSecret: false,
      })
    } else if (raw === '}' || raw === ']') {
      const ended = open.pop()
      if (ended) onEnd?.(ended)
    } else if (raw === ',' && around) {
      around.index++
      around.isName = around.isObject
    } else if (raw === ':' && around) around.isName = false
    else yield { start, end, raw, isName: around?.isName === true, around }
  }
}

function isSecretItem(around: Container, named: ReadonlySet<number>): boolean {
  const { isObject, name, index, previous } = around
  if (around.isSecret) return true
  if (isObject) return isSecretName(name) || (named.has(around.start) && isHolding(name))
  // A list of headers has names and values in turn. Such names contain a dash, or are well known.
  return (
    (index === 1 && named.has(around.start)) ||
    (previous !== '' && isHeader(previous) && isNameOfSecret(previous))
  )
}

const isHeader = (text: string): boolean =>
  /^(?:authorization|cookie|[a-z\d]{1,32}(?:-[a-z\d]{1,32}){1,8})$/i.test(text)

/** Texts of JSON, and numbers that are secret. All other bytes stay. */
function* jsonParts(text: string): Generator<Part> {
  const named = new Set<number>()
  const end = (ended: Container): void => {
    if (ended.namesSecret && (ended.isObject || ended.index === 1)) named.add(ended.start)
  }
  for (const { raw, isName, around } of jsonItems(text, named, end)) {
    if (!around || !raw.startsWith('"')) continue
    if (isName) around.name = textOf(raw)
    else if (around.isObject ? isNaming(around.name) : around.index === 0)
      around.namesSecret ||= isNameOfSecret(textOf(raw))
  }
  for (const { start, end: past, raw, isName, around } of jsonItems(text, named)) {
    const place = { start, end: past, name: isName ? '' : (around?.name ?? '') }
    const isSecret = !isName && around !== undefined && isSecretItem(around, named)
    if (raw.startsWith('"')) {
      const value = textOf(raw)
      if (isName && around) around.name = value
      else if (around) around.previous = value
      yield { ...place, value, isSecret, encode: JSON.stringify }
    } else {
      if (around) around.previous = ''
      if (isSecret && /^-?\d/.test(raw)) yield { ...place, value: raw, isSecret, encode: () => '0' }
    }
  }
}

/** Parts of JSON lines, each with its own value. */
function jsonLines(text: string): Iterable<Part> | undefined {
  if (!/^\s*[[{]/.test(text) || !text.includes('\n')) return undefined
  const lines = [...placesOf(text, '\n')].filter(({ start, end }) => text.slice(start, end).trim() !== '')
  if (!lines.every(({ start, end }) => isJson(text.slice(start, end)))) return undefined
  return within(text, lines, jsonParts)
}

function* within(
  text: string,
  places: Iterable<TextRange>,
  read: (text: string) => Iterable<Part>,
): Generator<Part> {
  for (const { start, end } of places)
    for (const part of read(text.slice(start, end)))
      yield { ...part, start: start + part.start, end: start + part.end }
}

/** Pieces of a text between separators. */
function* placesOf(text: string, separator: string): Generator<TextRange> {
  let start = 0
  for (let end = text.indexOf(separator); end !== -1; end = text.indexOf(separator, start)) {
    yield { start, end }
    start = end + separator.length
  }
  yield { start, end: text.length }
}

/** Names and values of a form. Each is encoded again only if it changes. */
function* formParts(text: string): Generator<Part> {
  for (const { start, end } of placesOf(text, '&')) {
    const field = text.slice(start, end)
    const nameEnd = field.includes('=') ? start + field.indexOf('=') : end
    const name = formDecoded(text.slice(start, nameEnd))
    yield { start, end: nameEnd, value: name, name: '', isSecret: false, encode: formEncoded }
    if (nameEnd === end) continue
    const value = formDecoded(text.slice(nameEnd + 1, end))
    yield { start: nameEnd + 1, end, value, name, isSecret: isSecretParameter(name), encode: formEncoded }
  }
}

/** Decodes a field of a form, which here may contain the field separator. */
const formDecoded = (text: string): string =>
  new URLSearchParams(`a=${text.replaceAll('&', '%26')}`).get('a') ?? ''
const formEncoded = (value: string): string => new URLSearchParams({ a: value }).toString().slice('a='.length)

const PART_NAME =
  /^content-disposition:[^\r\n]{0,256}?;\s{0,8}name\*?=(?:"([^"\r\n]{0,256})"|([^\s;]{1,256}))/im
const IN_BASE64 = /^content-transfer-encoding:\s{0,8}base64/im

/**
 * Parts of multipart content. The boundary is taken from the first line of dashes that headers follow, since the
 * Content-Type may belong to other content.
 * @see RFC 2046 section 5.1
 */
function multipartParts(text: string): Iterable<Part> | undefined {
  const first = /^--([^\r\n]{1,70}?)[ \t]{0,8}\r?\n(?=content-[\w-]{1,64}:)/im.exec(text)
  if (!first) return undefined
  return partsBetween(text, first.index, `\n--${first[1]}`)
}

function* partsBetween(text: string, begin: number, boundary: string): Generator<Part> {
  const plain = { name: '', isSecret: false, encode: asItIs }
  if (begin > 0) yield { ...plain, start: 0, end: begin, value: text.slice(0, begin) }
  for (const { start, end } of placesOf(text.slice(begin), boundary)) {
    const part = text.slice(begin + start, begin + end)
    const [gap = '', line = ''] = /(\r?\n)\r?\n/.exec(part) ?? []
    const head = gap === '' ? part : part.slice(0, part.indexOf(gap) + line.length)
    yield { ...plain, start: begin + start, end: begin + start + head.length, value: head }
    if (gap === '') continue
    const from = head.length - line.length + gap.length
    const content = part.slice(from).replace(/\r$/, '')
    const [, inQuotes, bare = ''] = PART_NAME.exec(head) ?? []
    const name = inQuotes ?? bare
    const place = { start: begin + start + from, end: begin + start + from + content.length }
    const encoded = IN_BASE64.test(head) ? decodedBase64(content) : undefined
    yield {
      ...place,
      value: encoded ?? content,
      name,
      isSecret: isSecretParameter(name),
      encode: encoded === undefined ? asItIs : toBase64,
    }
  }
}

/** JSON in base64, as in messages of Pub/Sub. */
function base64Part(text: string): Part[] | undefined {
  const value = /^(?:ey|ew|W[1-9]|Il|WyJ)/.test(text) ? decodedBase64(text) : undefined
  if (value === undefined || !isJson(value)) return undefined
  return [{ start: 0, end: text.length, value, name: '', isSecret: false, encode: toBase64 }]
}

/** Decodes base64 of text. Undefined for anything else. */
function decodedBase64(text: string): string | undefined {
  const bytes = /^[\w+/=\s-]+$/.test(text) ? Buffer.from(text, 'base64') : Buffer.of()
  return bytes.byteLength > 0 && isUtf8(bytes) && !bytes.includes(0) ? bytes.toString() : undefined
}

const toBase64 = (value: string): string => Buffer.from(value).toString('base64')
