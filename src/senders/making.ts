// Makes requests as a sender does: from a recording, or from a body.
import { createHmac, randomUUID } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { canonicalHeaderName, type Header, type HeaderLines, indexHeaders } from '../http/headers.js'
import { isFormBody } from '../http/forms.js'
import { boundaryOf } from '../http/multipart.js'
import { isObject } from '../json/parse.js'
import { type Content, readContent } from './content.js'
import { textsAt } from './hidden.js'
import { noticeOf, UNNAMED } from './identity.js'
import { type BodyKind, type JsonMember, setMembers } from './members.js'
import { type Placed, proofsFor, proofToMake, proofValues, withParameter } from './proof.js'
import type { Tamper, WebhookRequest } from './request.js'
import {
  headerOf,
  isInBody,
  isInPath,
  nameText,
  stepsOf,
  type ValueLocation,
  valueAt,
  type WebhookScheme,
} from './scheme.js'
import { timeText } from './time.js'
import { isForm, signedBytes } from './proving.js'

/** Style of a body of this event. */
export function kindOf(body: Uint8Array, event: string, scheme: WebhookScheme): BodyKind {
  return { form: isFormBody(body) || boundaryOf(body) !== undefined, style: scheme.style(event) }
}

/** Adds the headers that a hand-written recording lacks: the type of the body, the event, and an id that the sender gave. */
export function completeHeaders(
  headers: readonly Header[],
  {
    event,
    deliveryId,
    body,
  }: { readonly event: string; readonly deliveryId: string | undefined; readonly body: Uint8Array },
  scheme: WebhookScheme,
): Header[] {
  const lines = indexHeaders(headers)
  const isInPayload = (places: readonly ValueLocation[]): boolean => {
    const payload = places.some(isInBody) ? readContent(body).value : undefined
    return places.some((place) => isInBody(place) && valueAt(place, lines, payload) !== undefined)
  }
  const lacking = (
    places: readonly ValueLocation[],
    known: RegExp | undefined,
    value: string | undefined,
  ): Header[] => {
    const first = places.find((place) => !isInBody(place))
    const isThere = headers.some(([name]) => known?.test(name) ?? places.includes(name.toLowerCase()))
    if (value === undefined || first === undefined || isThere || isInPayload(places)) return []
    return [[canonicalHeaderName(first), value]]
  }
  const type = lines.has('content-type') ? [] : [['Content-Type', 'application/json'] as const]
  return [
    ...headers,
    ...type,
    ...lacking(scheme.event, scheme.family?.event, scheme.eventName?.write(event) ?? event),
    ...lacking(scheme.id, scheme.family?.id, deliveryId),
  ]
}

/** Reads the sender's id of a delivery. Undefined if it gives none. */
export function givenId({ headers, body }: WebhookRequest, scheme: WebhookScheme): string | undefined {
  const ofHeader = headers.find(([name]) => isIdHeader(name, scheme))?.[1]
  const [[, ofBody] = []] = idsIn(body, indexHeaders(headers), scheme)
  return ofHeader ?? (ofBody === undefined ? undefined : String(ofBody))
}

function isIdHeader(name: string, { id, family }: WebhookScheme): boolean {
  return family ? family.id.test(name) : id.includes(name.toLowerCase())
}

/** Ids in a body. */
function idsIn(
  body: Uint8Array,
  lines: HeaderLines,
  { id }: WebhookScheme,
): [path: string[], id: string | number][] {
  const places = id.filter(isInBody)
  const payload = places.length > 0 ? readContent(body).value : undefined
  return places.flatMap((place): [string[], string | number][] => {
    const known = valueAt(place, lines, payload)
    const isId = typeof known === 'string' || typeof known === 'number'
    return isId ? [[place.slice(2).split('.'), known]] : []
  })
}

/** Creates an id in the form of a known one, whose text up to the last `_` is preserved, as in Stripe's `evt_`. */
function likeId(known: string, fresh: string): string {
  const start = known.slice(0, known.lastIndexOf('_') + 1)
  return start === '' ? fresh : start + fresh.replaceAll('-', '')
}

/** Gives a request this id in its headers. */
export function withIdHeaders(headers: readonly Header[], fresh: string, scheme: WebhookScheme): Header[] {
  return headers.map(([name, value]) => [name, isIdHeader(name, scheme) ? likeId(value, fresh) : value])
}

/** Gives a body this id. */
export function withIdMembers(
  { headers, body }: WebhookRequest,
  fresh: string,
  kind: BodyKind,
  scheme: WebhookScheme,
): Uint8Array {
  const ids = idsIn(body, indexHeaders(headers), scheme).map(([path, known]): JsonMember => [
    path,
    // A number derived from the new id alone.
    typeof known === 'number'
      ? Number.parseInt(fresh.replaceAll('-', '').slice(0, 13), 16)
      : likeId(known, fresh),
  ])
  return setMembers(body, ids, kind)
}

/**
 * Signs a request, with the current time if the sender signs a time. All signature headers that were present are made
 * again.
 */
export function signRequest(
  request: WebhookRequest,
  secrets: WebhookSecrets,
  now: number,
  kind: BodyKind,
  scheme: WebhookScheme,
): WebhookRequest {
  const { headers, query, payloadUrl, path } = request
  const { current: secret } = secrets
  const lines = indexHeaders(headers)
  const timed = setMembers(request.body, timeIn(request, secret, scheme, now), kind)
  const bytes = signedBytes(lines, timed, scheme) ?? timed
  const { value } = readContent(timed)
  const id =
    scheme.id.map((place) => valueAt(place, lines, value)).find((each) => typeof each === 'string') ?? ''
  const values = proofValues(
    secrets,
    { id, body: bytes, now, lines, query, payloadUrl, path, payload: () => value },
    scheme,
  )
  const members = values.flatMap(([place, own]): JsonMember[] =>
    isInBody(place) ? [[stepsOf(place), own]] : [],
  )
  return {
    ...request,
    headers: withSignatures(headers, values, bytes, secret, scheme),
    body: members.length > 0 ? setMembers(timed, members, kind) : timed,
    query: values.reduce((all, [place, own]) => withParameter(all, place, own), query),
    ...(path !== undefined && { path }),
    ...pathOf(values),
  }
}

/** Path behind the source's address, with a proof in it. No other part of the path is known. */
function pathOf(values: readonly Placed[]): Pick<WebhookRequest, 'path'> {
  const segments: (string | undefined)[] = []
  for (const [place, value] of values)
    if (isInPath(place)) segments[Number(place.slice(1)) - 1] = encodeURIComponent(value)
  return segments.length === 0 ? {} : { path: `/${Array.from(segments, (each = '') => each).join('/')}` }
}

/** Member of the body with the signed time, set to now, as a text if it was one. */
function timeIn(
  { headers, body }: WebhookRequest,
  secret: Secret,
  scheme: WebhookScheme,
  now: number,
): JsonMember[] {
  const places = proofsFor(secret, scheme).flatMap(({ time }) => time?.place ?? [])
  if (!places.some(isInBody)) return []
  const lines = indexHeaders(headers)
  const payload = readContent(body).value
  const { time } = proofToMake(secret, { lines, signed: body, payload: () => payload }, scheme) ?? {}
  // If any time is accepted, it is a signed value of its own, such as the time of the event.
  if (
    !time ||
    !isInBody(time.place) ||
    (time.tolerance === Infinity && valueAt(time.place, lines, payload) !== undefined)
  )
    return []
  const known = valueAt(time.place, lines, payload)
  const text = timeText(now, time.unit)
  const isText = time.unit === 'rfc3339' || typeof known === 'string'
  return [[stepsOf(time.place), isText ? text : Number(text)]]
}

/**
 * Puts signatures into headers: all that were present, and those that the sender always sends. SHA-1 only if it was
 * present.
 */
function withSignatures(
  headers: readonly Header[],
  values: readonly (readonly [place: ValueLocation, value: string])[],
  bytes: Uint8Array,
  secret: Secret,
  { family }: WebhookScheme,
): Header[] {
  const signatures = new Map<string, Header>()
  for (const [place, value] of values) {
    const name = headerOf(place)
    if (name !== undefined) signatures.set(name, [canonicalHeaderName(name), value])
  }
  for (const [name] of headers) {
    const key = name.toLowerCase()
    if (!family?.signature.test(key) || signatures.has(key)) continue
    const isSha1 = key === family.sha1
    const digest = createHmac(isSha1 ? 'sha1' : 'sha256', secret.reveal())
      .update(bytes)
      .digest('hex')
    signatures.set(key, [name, isSha1 ? `sha1=${digest}` : digest])
  }
  // Each signature replaces the first line with its name, in position and spelling. Further lines with the name are
  // removed, and new ones are appended.
  const names = new Set(signatures.keys())
  const lines = headers.flatMap(([name, value]): Header[] => {
    const key = name.toLowerCase()
    if (!names.has(key) && !family?.signature.test(key)) return [[name, value]]
    const signature = signatures.get(key)
    signatures.delete(key)
    return signature ? [[name, signature[1]]] : []
  })
  return [...lines, ...signatures.values()]
}

/** Corrupts a signed request, so that its receiver must refuse it. */
export function tampered(
  request: WebhookRequest,
  part: Tamper | undefined,
  scheme: WebhookScheme,
  isSignature: (header: string) => boolean,
): WebhookRequest {
  const { headers, body } = request
  const corrupted = ([name, value]: Header): Header => [
    name,
    isSignature(name) ? corruptedSignature(value) : value,
  ]
  if (part === 'signature') return withoutProof({ ...request, headers: headers.map(corrupted) }, scheme)
  return part === 'body' ? { ...request, body: corruptedBody(body) } : request
}

/** Corrupts the proofs of a request that are in no header. */
function withoutProof(request: WebhookRequest, scheme: WebhookScheme): WebhookRequest {
  const { headers, body, query, path } = request
  const lines = indexHeaders(headers)
  const { value } = readContent(body)
  const places = scheme.proofs.map(({ each, place }) =>
    each === undefined || !isInBody(place) ? place : `${each}.*.${stepsOf(place).join('.')}`,
  )
  const members = textsAt(body, places.filter(isInBody)).map(([at, text]): JsonMember => [
    at,
    corruptedSignature(text),
  ])
  const token = valueAt('$', lines, value)
  const whole: readonly JsonMember[] =
    places.includes('$') && typeof token === 'string' ? [[[], corruptedSignature(token)]] : []
  let changed = query
  const segments = path?.split('/')
  for (const place of places) {
    const text = isInBody(place) ? undefined : valueAt(place, lines, value, query, path)
    if (typeof text !== 'string') continue
    if (place.startsWith('?')) changed = withParameter(changed, place, corruptedSignature(text))
    if (isInPath(place) && segments)
      segments[Number(place.slice(1))] = encodeURIComponent(corruptedSignature(text))
  }
  const all = [...members, ...whole]
  return {
    ...request,
    query: changed,
    ...(segments && { path: segments.join('/') }),
    body: all.length === 0 ? body : setMembers(body, all, kindOf(body, '', scheme)),
  }
}

/** Changes the last significant digit of a signature. */
function corruptedSignature(value: string): string {
  let end = value.length
  while (value[end - 1] === '=') end--
  const at = end - 2
  return value.slice(0, at) + (value[at] === '0' ? '1' : '0') + value.slice(at + 1)
}

/** Changes the last decimal digit, so that JSON stays JSON. Without a digit, adds a space. */
function corruptedBody(body: Uint8Array): Uint8Array {
  const at = body.findLastIndex((byte) => byte >= 0x30 && byte <= 0x39)
  if (at === -1) return Buffer.concat([body, Buffer.from(' ')])
  const other = Uint8Array.from(body)
  other[at] = other[at] === 0x31 ? 0x32 : 0x31
  return other
}

/** An unsigned request that was made from a body. */
export interface Made extends WebhookRequest {
  readonly event: string
  readonly deliveryId: string
  /** Members for the event and the id that the body lacked. */
  readonly added: readonly string[]
}

export interface MakeOptions {
  /** True if a body that lacks an id stays without. */
  readonly keepId: boolean
  /** The place where the user gives the event, for errors. Default: that of the command line. */
  readonly words?: { readonly event: string; readonly give: string } | undefined
}

const OF_COMMAND = { event: '--event', give: 'Give it with --event' }

/**
 * Makes an unsigned request of these bytes.
 * @throws RelayError `usage` if the event is neither given nor in the body, the body has another one, or the scheme has
 * no location for it
 */
export function makeRequest(
  body: Uint8Array,
  given: string | undefined,
  { keepId, text, words = OF_COMMAND }: MakeOptions & { readonly text: string },
  scheme: WebhookScheme,
): Made {
  const content = readContent(body)
  const type = contentTypeOf(body, content, scheme)
  const lines = indexHeaders([['content-type', type]])
  const { value: payload } = content
  const textAt = (places: readonly ValueLocation[]): string | undefined =>
    places.map((place) => nameText(valueAt(place, lines, payload))).find((value) => typeof value === 'string')
  const [place] = scheme.event
  // Without its slash, as intake names a slash command.
  const known = noticeOf(scheme, lines, payload) ?? textAt(scheme.event)?.replace(/^\//, '')
  // Event and action together, in the form of the journal: `Merge Request Hook.open`.
  const action = textAt(scheme.action)
  const wanted =
    action !== undefined && given?.endsWith(`.${action}`)
      ? given.slice(0, -action.length - 1)
      : given?.replace(/^\//, '')
  const event = wanted ?? known ?? (place === undefined ? UNNAMED : undefined)
  if (event === undefined) throw new RelayError('usage', `The body names no event. ${words.give}`)
  if (place === undefined && wanted !== undefined && wanted !== UNNAMED)
    throw new RelayError(
      'usage',
      `The scheme ${text} has no place for an event: write ${UNNAMED} in place of ${wanted}`,
    )
  const isOfBody = place !== undefined && isInBody(place)
  if (isOfBody && known !== undefined && known !== event)
    throw new RelayError(
      'usage',
      `${words.event} is ${event}, but the body is of ${known}: change one of them`,
    )
  const kind = { form: isForm(lines) || boundaryOf(body) !== undefined, style: scheme.style(event) }
  const id = randomUUID()
  const [idPlace] = scheme.id
  const lacksId = isObject(payload) && !kind.form && !keepId && textAt(scheme.id) === undefined
  const added: JsonMember[] = [
    ...(isOfBody && known === undefined ? [[place.slice(2).split('.'), event] as const] : []),
    ...(lacksId && idPlace !== undefined && isInBody(idPlace)
      ? [[idPlace.slice(2).split('.'), id] as const]
      : []),
  ]
  return {
    // One name of a code host's event and action is the event alone.
    event: action === undefined || scheme.family ? event : `${event}.${action}`,
    deliveryId: id,
    headers: Object.entries({ ...scheme.headers(event, id), 'Content-Type': type }),
    body: setMembers(body, added, kind),
    added: added.map(([path]) => path.join('.')),
  }
}

function contentTypeOf(body: Uint8Array, content: Content, scheme: WebhookScheme): string {
  if (content.kind === 'json' && !content.isForm) return 'application/json'
  const boundary = boundaryOf(body)
  if (boundary !== undefined) return `multipart/form-data; boundary=${boundary}`
  const isFields = /^[^\s=&]+=[^\s]*$/.test(Buffer.from(body).toString().trimEnd())
  if (isFields) return 'application/x-www-form-urlencoded'
  return scheme.content === 'any' ? 'text/plain' : 'application/json'
}
