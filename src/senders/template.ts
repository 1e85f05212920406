// The text that a signature covers, made of parts of a request.
import { hash } from 'node:crypto'
import { escape } from 'node:querystring'
import { isFormBody } from '../http/forms.js'
import type { HeaderLines } from '../http/headers.js'
import { headerOf, isInBody, type Proof, type Readable, type ValueLocation, valueAt } from './scheme.js'
import { findTime, parseTime, type TimeUnit } from './time.js'

/** The parts of a template, besides locations in the body and the query. */
export const PARTS = [
  '{timestamp}',
  '{id}',
  '{body}',
  '{body-sha256}',
  '{method}',
  '{url}',
  '{path}',
  '{query}',
  '{fields}',
  '{headers}',
] as const
/** A part, or a location in braces. */
export type PartName = (typeof PARTS)[number] | `{$.${string}}` | `{?${string}}`

/** All deliveries are sent with this method. */
const METHOD = 'POST'

/** The parts of a request that a signature can cover. */
export interface SignedRequest {
  readonly lines: HeaderLines
  /** The body, or a form's payload if the sender signs that. */
  readonly signed: Uint8Array
  /** Without its question mark. */
  readonly query?: string | undefined
  /** Path behind the source's address, with its slash. */
  readonly path?: string | undefined
  /** Address that the sender was given for the source, without a query. */
  readonly payloadUrl?: string | undefined
  /** Content of the body, for values that are read from it. */
  readonly payload?: (() => unknown) | undefined
}

/** Values at locations of a request. The body is read only for a location in it. */
export function readableAt(place: ValueLocation, request: Omit<SignedRequest, 'signed'>): Readable {
  const { lines, query, path, payload } = request
  return { lines, query, path, payload: isInBody(place) ? payload?.() : undefined }
}

function valueIn(place: ValueLocation, request: Omit<SignedRequest, 'signed'>): unknown {
  const { lines, payload, query, path } = readableAt(place, request)
  return valueAt(place, lines, payload, query, path)
}

/**
 * Splits a template into text and parts in turn, with text first and last: `v0:{timestamp}:{body}` becomes `v0:`,
 * `{timestamp}`, `:`, `{body}` and an empty text. `\\n` in text is a newline.
 */
export function piecesOf(signed: string): string[] {
  return signed.split(/(\{[^{}]+\})/).map((piece) => piece.replaceAll(String.raw`\n`, '\n'))
}

function isPart(piece: string): piece is PartName {
  return placeIn(piece) !== undefined || PARTS.some((part) => part === piece)
}

/** The location that a part names: `$.amount.value` of `{$.amount.value}`. Undefined for all other parts. */
export function placeIn(part: string): ValueLocation | undefined {
  return /^\{([$?][^{}]*)\}$/.exec(part)?.[1]
}

/** Parts whose length is known, wherever they begin or end. */
const FIXED: ReadonlySet<string> = new Set<PartName>(['{timestamp}', '{body-sha256}'])
/** Parts that are the same in all requests. */
const CONSTANT: ReadonlySet<string> = new Set<PartName>(['{method}', '{path}'])
/** Parts of any length and content. */
const FREE: ReadonlySet<string> = new Set<PartName>(['{body}', '{fields}'])
/** Text that no address contains (RFC 3986). */
const NOT_IN_URL = /[^\w\-.~:/?#[\]@!$&'()*+,;=%]/

/**
 * Explains why text signed with this template could be divided into its parts in more than one way. Undefined if it
 * could not. An ambiguous signature would also prove another id, time or body, as soon as a part contains the separator
 * behind it.
 */
export function ambiguity(signed: string, unit: TimeUnit): string | undefined {
  const pieces = piecesOf(signed)
  let free: string | undefined
  for (let at = 1; at < pieces.length; at += 2) {
    const [part = '', separator = '', next] = pieces.slice(at)
    if (free !== undefined && !isSolid(part) && part !== '{url}')
      return `needs ${free} at the end of signed=: ${free === '{fields}' ? 'fields' : 'a body'} may contain what stands before ${part}`
    if (FREE.has(part)) free = part
    else if (next !== undefined && !isSolid(part)) {
      const reason = openEnd(part, separator, next, unit)
      if (reason !== undefined) return reason
    }
  }
  return undefined
}

function isSolid(part: string): boolean {
  return FIXED.has(part) || CONSTANT.has(part)
}

/** Explains why the end of an id, an address or a query is not found. */
function openEnd(part: string, separator: string, next: string, unit: TimeUnit): string | undefined {
  // The beginning of a date is unmistakable, and the address is known: see isDivisible.
  if (separator === '' && part === '{id}' && next === '{timestamp}' && unit === 'rfc3339') return undefined
  if (separator === '' && part === '{url}' && FREE.has(next)) return undefined
  if (separator === '') return `needs text between ${part} and ${next} in signed=, such as a dot`
  // Ids are mostly UUIDs, also those made by relay.
  if (part === '{id}' && /^[a-z\d-]+$/i.test(separator))
    return 'needs text after {id} in signed= that no id contains, such as a dot'
  if (part === '{headers}' && !separator.startsWith('\n'))
    return String.raw`needs \n after {headers} in signed=, which no header contains`
  // The value is checked in each request.
  if (placeIn(part) !== undefined) return undefined
  if (part !== '{id}' && part !== '{headers}' && !NOT_IN_URL.test(separator))
    return `needs text after ${part} in signed= that no address contains, such as \\n`
  return undefined
}

/** A part of the signed text whose value comes from a header or the address. */
export interface TextPart {
  readonly part: PartName
  /** Where its value is. Undefined for parts of the address. */
  readonly place: ValueLocation | undefined
  /** Its value. Undefined if the request has none; a missing id, and a missing member, count as empty. */
  readonly value: string | undefined
  /** True for an object or a list, which no text can stand for. */
  readonly isStructure?: boolean
  /** Text between this part and the next. */
  readonly separator: string
  /** The next part. Undefined for the last. */
  readonly next: string | undefined
}

/** The parts of a request except its body, in the order in which they are signed. */
export function textParts(request: SignedRequest, proof: Proof): TextPart[] {
  const { signed, id, time } = proof
  if (signed === '{body}') return []
  const pieces = piecesOf(signed)
  return pieces.flatMap((part, at): TextPart[] => {
    if (!isPart(part) || FREE.has(part) || part === '{body-sha256}') return []
    const place = part === '{id}' ? id : part === '{timestamp}' ? time?.place : placeIn(part)
    const found = place === undefined ? ofRequest(part, request, proof) : valueIn(place, request)
    const isStructure = typeof found === 'object'
    const isScalar = typeof found === 'string' || typeof found === 'number' || typeof found === 'boolean'
    const value = isScalar ? String(found) : undefined
    return [{ part, place, value, isStructure, separator: pieces[at + 1] ?? '', next: pieces[at + 2] }]
  })
}

/** Address that the sender was given, with its query. Undefined if relay does not know it. */
export function givenUrl(
  { payloadUrl, query, path = '' }: Pick<SignedRequest, 'payloadUrl' | 'query' | 'path'>,
  { url, digest }: Proof,
): string | undefined {
  if (url !== undefined && digest === undefined) return url
  // The sender has added the digest to the query.
  const [base] = url?.split('?', 1) ?? (payloadUrl === undefined ? [] : [payloadUrl + path])
  return base === undefined ? undefined : base + (query ? `?${query}` : '')
}

function ofRequest(part: PartName, request: SignedRequest, proof: Proof): string | undefined {
  if (part === '{method}') return METHOD
  if (part === '{headers}') return joinedHeaders(request, proof)
  if (part === '{query}') return request.query ?? ''
  const url = givenUrl(request, proof)
  if (part !== '{path}' || url === undefined) return url
  const { pathname } = new URL(url)
  return proof.escapesPath ? escapedPath(pathname, url) : pathname
}

/** A path with the query of its address, both escaped again. Undefined if only a part of the query would be signed. */
function escapedPath(pathname: string, url: string): string | undefined {
  const [, query = '', ...others] = url.split('?')
  if (others.length > 0) return undefined
  return encodeURI(query === '' ? pathname : `${pathname}?${escape(query)}`)
}

/**
 * True if the signed text can be divided in only one way: a time has the form of its unit, and a part does not contain
 * the separator behind it. Otherwise the same signature would prove another request (see {@link ambiguity}).
 */
export function isWellFormed(
  { part, value, separator, next, isStructure = false }: TextPart,
  request: SignedRequest,
  proof: Proof,
): boolean {
  const unit = proof.time?.unit ?? 's'
  if (part === '{timestamp}') return value !== undefined && parseTime(value, unit) !== undefined
  if (part === '{method}' || part === '{path}' || part === '{headers}') return value !== undefined
  const place = placeIn(part)
  if (place !== undefined)
    return !isStructure && (place === proof.open || isEndFound(value ?? '', separator || beforeLast(proof)))
  if (part === '{id}' && separator === '' && next === '{timestamp}') {
    const time = proof.time && valueIn(proof.time.place, request)
    return findTime(`${value ?? ''}${typeof time === 'string' ? time : ''}`, unit) === (value ?? '').length
  }
  if (part === '{url}')
    return value !== undefined && hasOwnQuery(request, proof) && isEndFound(value, separator)
  return isEndFound(value ?? '', separator)
}

/**
 * Text before the last part. If another part may contain it, the last one must not, or the other part could end at several
 * places. Empty if no part may contain it.
 */
function beforeLast({ open, signed }: Proof): string {
  return open === undefined ? '' : (piecesOf(signed).at(-3) ?? '')
}

function isEndFound(value: string, separator: string): boolean {
  return (value + separator).indexOf(separator) === value.length || separator === ''
}

/**
 * True if the end of the query is known: the query is the one that the sender was given, or the text after it begins with
 * a character that no address contains. Otherwise the end of the query could be the beginning of the body.
 */
function hasOwnQuery(
  { query = '', signed }: SignedRequest,
  { url, signed: template, digest }: Proof,
): boolean {
  if (url !== undefined && digest === undefined) return query === new URL(url).search.slice(1)
  const isBefore = /\{url\}\{(?:body|fields)\}/.test(template)
  // A body with a question mark at its start could be a query.
  if (query === '') return !isBefore || signed[0] !== QUESTION_MARK
  if (NOT_IN_URL.test(query) || /\{(?:body|fields)\}.*\{url\}/.test(template)) return false
  return !isBefore || signed[0] === BRACE
}

const [BRACE, QUESTION_MARK] = [0x7b, 0x3f]

/** Most fields that are joined, as many as a form may have. */
const MAX_FIELDS = 100

/** Joins the fields of a form, sorted by name. Undefined if the body is none. */
function joinedFields(signed: Uint8Array, { fields }: Proof): string | undefined {
  const { afterName = '', between = '' } = fields ?? {}
  const text = Buffer.from(signed.buffer, signed.byteOffset, signed.byteLength).toString()
  if (!isFormBody(signed) || text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS) return undefined
  const all = [...new URLSearchParams(text)].toSorted(([one], [other]) =>
    one < other ? -1 : one > other ? 1 : 0,
  )
  return all.map(([name, value]) => name + afterName + value).join(between)
}

/** Most headers that are signed together. */
const MAX_HEADERS = 50

/**
 * Joins the headers that a header lists, sorted by name: `a:1;b:2`. Undefined if one is missing or repeated, if those that
 * divide the text or give its time are not among them, or if a value contains what stands before the next.
 */
function joinedHeaders(
  request: Omit<SignedRequest, 'signed'>,
  { headerList = '', time }: Proof,
): string | undefined {
  const list = valueIn(headerList, request)
  const names =
    typeof list === 'string'
      ? list
          .toLowerCase()
          .split(',', MAX_HEADERS + 1)
          .map((name) => name.trim())
      : []
  const needed = [headerList, time && headerOf(time.place)].filter((name) => name !== undefined)
  const isWhole = needed.every((name) => names.includes(name)) && new Set(names).size === names.length
  if (!isWhole || names.length > MAX_HEADERS) return undefined
  const sorted = names.toSorted()
  const lines = sorted.flatMap((name, at): string[] => {
    const value = valueIn(name, request)
    const next = sorted[at + 1]
    const isFound = typeof value === 'string' && (next === undefined || isEndFound(value.trim(), `;${next}:`))
    return isFound ? [`${name}:${value.trim()}`] : []
  })
  return lines.length === sorted.length ? lines.join(';') : undefined
}

/** True if the request has the digest that is signed in place of the body. */
export function hasDigest(request: SignedRequest, { digest }: Proof): boolean {
  return digest === undefined || valueIn(digest, request) === sha256Of(request.signed)
}

/** The SHA-256 of a body in hex. */
export function sha256Of(body: Uint8Array): string {
  return hash('sha256', body, 'hex')
}

/**
 * The signed text of a request, in pieces. Undefined if a part is missing or malformed, so that the text would divide in
 * several ways.
 */
export function signedText(
  request: SignedRequest,
  proof: Proof,
): readonly (string | Uint8Array)[] | undefined {
  if (proof.signed === '{body}') return [request.signed]
  const parts = textParts(request, proof)
  if (!hasDigest(request, proof) || !parts.every((part) => isWellFormed(part, request, proof)))
    return undefined
  const values = new Map(parts.map(({ part, value = '' }) => [part, value]))
  const text: (string | Uint8Array)[] = []
  for (const piece of piecesOf(proof.signed)) {
    const value = isPart(piece) ? (values.get(piece) ?? ofBody(piece, request, proof)) : piece
    if (value === undefined) return undefined
    text.push(value)
  }
  return text
}

function ofBody(part: PartName, { signed }: SignedRequest, proof: Proof): string | Uint8Array | undefined {
  if (part === '{body}') return signed
  return part === '{fields}' ? joinedFields(signed, proof) : sha256Of(signed)
}

/** True if a signature covers the whole body, in one way only. */
export function coversBody({ signed, digest }: Proof): boolean {
  // Names and values of fields are joined without what they cannot contain.
  return /\{body(?:-sha256)?\}/.test(signed) || (digest !== undefined && /\{(?:url|query)\}/.test(signed))
}
