import { createHmac, randomUUID } from 'node:crypto'
import { isFormBody } from '../http/forms.js'
import type { Secret } from '../base/secret.js'
import { schemeOf } from '../codehost/schemes.js'
import {
  type Header,
  type HeaderLines,
  indexHeaders,
  singleValue,
  endToEndHeaders,
  canonicalHeaderName,
} from '../http/headers.js'
import type { Entry } from '../journal/types.js'
import { proofsFor, signDelivery, staleness } from '../schemes/proof.js'
import { isInBody, type ValueLocation, type Proof, valueAt, type WebhookScheme } from '../schemes/scheme.js'
import { bodyDigest, parsePayload, type WebhookRequest } from '../webhook/intake.js'
import { verifySignature, signedBytes, type Source } from '../webhook/signature.js'
import { type BodyKind, type Edit, editBody, type JsonMember, setMembers } from './edit.js'
import type { RecordedDelivery, SourceScheme } from './fixture.js'

/** Part to corrupt after signing. */
export type Tamper = 'signature' | 'body'

export interface PrepareOptions {
  /** Undefined: nothing is signed. */
  readonly secret: Secret | undefined
  readonly edits?: readonly Edit[]
  readonly tamper?: Tamper | undefined
  /** Gives the delivery a new id. If the id is signed, only a changed or synthesized body gets one. */
  readonly freshId?: boolean
  /** True if the body is not as a sender sent it. */
  readonly isMade?: boolean
  /** Sends the recorded signature, however old it is. */
  readonly keepSignature?: boolean | undefined
  /** Milliseconds since 1970-01-01 UTC. Default: now. */
  readonly now?: number
}

export interface Prepared extends WebhookRequest {
  /** True if it was signed again because its signed time is too long ago. */
  readonly isRenewed: boolean
}

/** Headers of any code host with the id of a delivery, its event and a signature. */
const DELIVERY = /^x-[a-z]+-delivery$/i
const EVENT = /^x-[a-z]+-event$/i
const SIGNATURE = /^x-[a-z]+-signature(?:-256)?$/i

/**
 * Prepares the request for a recorded delivery. Keeps the recorded bytes and signature if the secret made that
 * signature and its time is within the sender's tolerance. Otherwise signs them now, as the sender does. Adds the
 * headers that a hand-written fixture lacks.
 * @throws RelayError `usage` as {@link editBody}; `settings` for a scheme with parts that relay does not know
 */
export function prepareRequest(
  recorded: RecordedDelivery,
  {
    secret,
    edits = [],
    tamper,
    freshId = false,
    isMade = edits.length > 0,
    keepSignature = false,
    now = Date.now(),
  }: PrepareOptions,
): Prepared {
  const scheme = schemeOf(recorded.scheme ?? recorded.provider)
  const isSigned = (secret ? proofsFor(secret, scheme) : []).some((proof) => proof.id !== undefined)
  const id = freshId && !keepSignature && (isMade || !isSigned) ? randomUUID() : undefined
  const headers = complete(recorded, scheme).map(([name, value]): Header => [
    name,
    id !== undefined && isIdHeader(name, scheme) ? likeId(value, id) : value,
  ])
  const index = indexHeaders(headers)
  const kind = { form: isFormBody(recorded.body), style: scheme.style(recorded.event) }
  const edited = edits.length > 0 ? editBody(recorded.body, edits, kind) : recorded.body
  const body = id === undefined || !isMade ? edited : withFreshId(edited, id, index, scheme, kind)
  const proven = secret && verifySignature(index, body, { scheme, secrets: { current: secret } })
  const isStale = isStaleNow(proven?.proof, index, body, now)
  if (!secret || keepSignature || (proven && !isStale))
    return { ...tampered({ headers, body }, scheme, tamper), isRenewed: false }
  const timed = setMembers(body, timeIn(secret, scheme, now), kind)
  const bytes = signedBytes(index, timed, scheme) ?? timed
  const lines = signAgain(headers, secret, bytes, scheme, now)
  // Corrupted after signing, so that the signature does not match.
  return { ...tampered({ headers: lines, body: timed }, scheme, tamper), isRenewed: isStale && !isMade }
}

/**
 * Prepares an entry for forwarding. It is forwarded as received, unless the sender's token is not stored, or the signed
 * time is so old that the receiver would refuse it. Then it is signed with the current secret of its source. An entry
 * that arrived without proof is never signed, since anybody may have sent it before the source had a secret. Without
 * `withToken`, a token is left out, because it is the secret itself.
 */
export function forwardedRequest(
  entry: Entry,
  source: Source | undefined,
  now: number,
  { withToken = true }: { readonly withToken?: boolean } = {},
): Prepared {
  const headers = endToEndHeaders(entry.headers)
  if (!source || entry.verifiedBy === 'none') return { headers, body: entry.body, isRenewed: false }
  const lines = indexHeaders(headers)
  const { current } = source.secrets
  const proof = proofsFor(current, source.scheme).find(
    (each) => lines.has(each.header) || each.algorithm === 'token',
  )
  const isSigned = proof?.algorithm === 'token' ? withToken : isStaleNow(proof, lines, entry.body, now)
  if (!isSigned) return { headers, body: entry.body, isRenewed: false }
  return prepareRequest({ ...entry, scheme: source.schemeText }, { secret: current, now })
}

function isStaleNow(proof: Proof | undefined, lines: HeaderLines, body: Uint8Array, now: number): boolean {
  if (!proof?.time) return false
  const payload = isInBody(proof.time.place) ? parsePayload(lines, body) : undefined
  return staleness(proof, { lines, payload }, now) !== undefined
}

/** Reads the sender's id of a delivery, as intake does. */
export function deliveryId(
  { headers, body }: WebhookRequest,
  { provider, scheme: text = provider }: SourceScheme,
): string {
  const scheme = schemeOf(text)
  const ofHeader = headers.find(([name]) => isIdHeader(name, scheme))?.[1]
  const ofBody = idsIn(body, indexHeaders(headers), scheme)[0]?.[1]
  return (
    ofHeader ??
    (ofBody === undefined ? undefined : String(ofBody)) ??
    (scheme.idOr === 'digest' ? bodyDigest(body) : '')
  )
}

function isIdHeader(name: string, { id, events }: WebhookScheme): boolean {
  return events ? DELIVERY.test(name) : id.includes(name.toLowerCase())
}

/** Ids in a body. */
function idsIn(
  body: Uint8Array,
  lines: HeaderLines,
  { id }: WebhookScheme,
): [path: string[], id: string | number][] {
  const places = id.filter(isInBody)
  const payload = places.length > 0 ? parsePayload(lines, body) : undefined
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

function withFreshId(
  body: Uint8Array,
  fresh: string,
  lines: HeaderLines,
  scheme: WebhookScheme,
  kind: BodyKind,
): Uint8Array {
  const ids = idsIn(body, lines, scheme).map(([path, known]): JsonMember => [
    path,
    // A number derived from the new id alone.
    typeof known === 'number'
      ? Number.parseInt(fresh.replaceAll('-', '').slice(0, 13), 16)
      : likeId(known, fresh),
  ])
  return setMembers(body, ids, kind)
}

/** Member of the body with the signed time, set to now. */
function timeIn(secret: Secret, scheme: WebhookScheme, now: number): JsonMember[] {
  const [time] = proofsFor(secret, scheme).flatMap((proof) => proof.time ?? [])
  return time && isInBody(time.place) ? [[time.place.slice(2).split('.'), Math.floor(now / time.unit)]] : []
}

function complete(recorded: RecordedDelivery, { event, id, events }: WebhookScheme): Header[] {
  const { body, deliveryId: own } = recorded
  const headers = endToEndHeaders(recorded.headers)
  const isInPayload = (places: readonly ValueLocation[]): boolean => {
    const lines = indexHeaders(headers)
    const payload = places.some(isInBody) ? parsePayload(lines, body) : undefined
    return places.some((place) => isInBody(place) && valueAt(place, lines, payload) !== undefined)
  }
  const lacking = (places: readonly ValueLocation[], known: RegExp, value: string): Header[] => {
    const names = places.filter((place) => !isInBody(place))
    const isThere = headers.some(([name]) => (events ? known.test(name) : names.includes(name.toLowerCase())))
    const isLacking = names[0] !== undefined && !isThere && !isInPayload(places)
    return isLacking ? [[canonicalHeaderName(names[0] ?? ''), value]] : []
  }
  return [
    ...headers,
    ...(headers.some(([name]) => /^content-type$/i.test(name))
      ? []
      : [['Content-Type', 'application/json'] as const]),
    ...lacking(event, EVENT, recorded.event),
    // An id that the sender did not provide is relay's own.
    ...(!events && own === bodyDigest(body) ? [] : lacking(id, DELIVERY, own)),
  ]
}

/**
 * Creates all signature headers that were present, and those that the sender always sends. SHA-1 only if it was
 * present.
 */
function signAgain(
  headers: readonly Header[],
  secret: Secret,
  bytes: Uint8Array,
  scheme: WebhookScheme,
  now: number,
): Header[] {
  const index = indexHeaders(headers)
  const id = scheme.id.map((place) => singleValue(index, place)).find((value) => value !== undefined) ?? ''
  const signatures = new Map<string, Header>()
  for (const [name, value] of signDelivery(secret, { id, body: bytes, now, lines: index }, scheme))
    signatures.set(name.toLowerCase(), [name, value])
  if (scheme.events)
    for (const [name] of headers) {
      const key = name.toLowerCase()
      if (!SIGNATURE.test(key) || signatures.has(key)) continue
      const isSha1 = key === 'x-hub-signature'
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
    if (!names.has(key) && !(scheme.events && SIGNATURE.test(key))) return [[name, value]]
    const signature = signatures.get(key)
    signatures.delete(key)
    return signature ? [[name, signature[1]]] : []
  })
  return [...lines, ...signatures.values()]
}

function tampered(
  request: WebhookRequest,
  scheme: WebhookScheme,
  tamper: Tamper | undefined,
): WebhookRequest {
  const { headers, body } = request
  if (tamper === 'signature') return { headers: headers.map((line) => corrupted(line, scheme)), body }
  return { headers, body: tamper === 'body' ? corruptedBody(body) : body }
}

/** Changes the last significant digit of a signature. */
function corrupted([name, value]: Header, { proofs, events }: WebhookScheme): Header {
  const isProof = proofs.some(({ header }) => header === name.toLowerCase())
  if (!isProof && !(events && SIGNATURE.test(name))) return [name, value]
  let end = value.length
  while (value[end - 1] === '=') end--
  const at = end - 2
  return [name, value.slice(0, at) + (value[at] === '0' ? '1' : '0') + value.slice(at + 1)]
}

/** Changes the last decimal digit, so that JSON stays JSON. Without a digit, adds a space. */
function corruptedBody(body: Uint8Array): Uint8Array {
  const at = body.findLastIndex((byte) => byte >= 0x30 && byte <= 0x39)
  if (at === -1) return Buffer.concat([body, Buffer.from(' ')])
  const other = Uint8Array.from(body)
  other[at] = other[at] === 0x31 ? 0x32 : 0x31
  return other
}
