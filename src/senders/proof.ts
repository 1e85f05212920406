import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { isFormBody } from '../http/forms.js'
import { CLAIMS_HEADER } from '../journal/types.js'
import { canonicalHeaderName, type Header, type HeaderLines, singleValue } from '../http/headers.js'
import { isSignedBy, type KeyAlgorithm, kindOfKey, signWith, sizesOf, usesKeys } from './algorithms.js'
import { BODY_PATTERN, JWT_PATTERN, jwtStaleness, makeJwt } from './jwt.js'
import { decodeJwt } from './token-body.js'
import { isPublicKey, keyOfKind, readKeyPair } from './keys.js'
import {
  headerOf,
  isInBody,
  type Proof,
  type ProofScheme,
  type Readable,
  stepsOf,
  type ValueLocation,
  valueAt,
  type WebhookScheme,
} from './scheme.js'
import { isEmptySecret, keyOf } from './secrets.js'
import { coversBody, sha256Of, readableAt, signedText, type SignedRequest } from './template.js'
import { parseTime, timeText, timeWords, unitOf } from './time.js'

/** Most signatures in one header. Senders send one or two while a secret is rotated. */
const MAX_SIGNATURES = 8
/** Longest token in characters: more than any sender uses. */
const MAX_TOKEN = 1024
/** Most members of a list that are signed each. Adyen sends one in a request. */
const MAX_EACH = 100

/** A request to verify. Its body is parsed only when a value in it is needed. */
type Provable = Omit<SignedRequest, 'signed'>

/** Regular expression source for one well-formed signature. */
export function signaturePattern({ prefix, keyName, algorithm, encoding, jwt }: Proof): string {
  const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  const start = (keyName === undefined ? '' : `[\\w-]{1,100}${escaped(keyName)}`) + escaped(prefix)
  if (algorithm === 'token') return `${start}[\\x21-\\x7e](?:[\\x20-\\x7e]{0,${MAX_TOKEN}}[\\x21-\\x7e])?`
  if (algorithm === 'jwt') return start + (jwt?.isBody ? BODY_PATTERN : JWT_PATTERN)
  const { min, max } = sizesOf(algorithm)
  if (encoding === 'hex') return `${start}(?:[0-9a-f]{2}){${min},${max}}`
  if (encoding === 'HEX') return `${start}(?:[0-9A-F]{2}){${min},${max}}`
  const isFixed = min === max
  const padding = isFixed ? '='.repeat((3 - (min % 3)) % 3) : '={0,2}'
  const length = `{${Math.ceil((min * 4) / 3)},${Math.ceil((max * 4) / 3)}}`
  if (encoding === 'base64') return `${start}[A-Za-z0-9+/]${length}${padding}`
  return `${start}[\\w-]${length}(?:${padding})?`
}

const forms = new WeakMap<Proof, RegExp>()

/** The parts of a request that a proof proves on their own: the members of a list, or all of it. */
function partsOf<Request extends Provable>(request: Request, { each }: Proof): readonly Request[] {
  if (each === undefined) return [request]
  const list = valueAt(each, request.lines, request.payload?.())
  if (!Array.isArray(list) || list.length > MAX_EACH) return []
  return list.map((member: unknown) => ({ ...request, payload: () => member }))
}

/**
 * Well-formed signatures of a proof in a request. None if the header is repeated without {@link Proof.inLines}, or if one
 * member of a list whose members are signed has none.
 */
export function signaturesIn(request: Provable, proof: Proof): string[] {
  if (proof.each === undefined) return signaturesOfPart(request, proof)
  const all = partsOf(request, proof).map((part) => signaturesOfPart(part, proof))
  return all.every((signatures) => signatures.length > 0) ? all.flat() : []
}

function signaturesOfPart(request: Provable, proof: Proof): string[] {
  const value = valueOf(request, proof)
  if (value === undefined) return []
  const { separator } = proof
  // While a secret is rotated, Persona sends two sets of pairs with a space between: t=1,v1=… t=1,v1=…
  const all = separator
    ? value.split(separator, MAX_SIGNATURES).map((each) => each.trim().split(' ', 1).join(''))
    : [value]
  const form = formOf(proof)
  return all.filter((each) => form.test(each))
}

function formOf(proof: Proof): RegExp {
  const known = forms.get(proof)
  if (known) return known
  const form = new RegExp(`^${signaturePattern(proof)}$`)
  forms.set(proof, form)
  return form
}

/** Text at a proof's place, with the lines joined where each signature has its own. */
export function valueOf(request: Provable, { place, inLines, separator }: Proof): string | undefined {
  const header = headerOf(place)
  if (header !== undefined && inLines) return request.lines.get(header)?.join(separator)
  if (header !== undefined) return singleValue(request.lines, header)
  const { lines, payload, query, path } = readableAt(place, request)
  const value = valueAt(place, lines, payload, query, path)
  return typeof value === 'string' ? value : undefined
}

/** True if a request has something at a proof's place, and a digest if that is signed. */
export function hasPlace(request: Provable, proof: Proof): boolean {
  const { place, digest } = proof
  if (digest !== undefined && valueAt(digest, request.lines, undefined, request.query) === undefined)
    return false
  const header = headerOf(place)
  if (header !== undefined) return request.lines.has(header)
  return partsOf(request, proof).some((part) => valueOf(part, proof) !== undefined)
}

/** True if a request has a well-formed signature. Without one it is refused before any byte is hashed. */
export function hasProof(request: Provable, { proofs }: ProofScheme): boolean {
  return proofs.length === 0 || proofs.some((proof) => signaturesIn(request, proof).length > 0)
}

/** A proof that a request has, with its well-formed signatures. */
interface FoundProof {
  readonly proof: Proof
  readonly signatures: readonly string[]
}

/** Finds the proof that a request has, as {@link proofOf} does. */
export function proofIn(request: Provable, proofs: readonly Proof[]): Proof | undefined {
  return proofOf(request, proofs)?.proof
}

/**
 * Finds the proof that a request has: the first one whose place is present. If several proofs share that place, the one
 * whose signature is well-formed.
 */
function proofOf(request: Provable, proofs: readonly Proof[]): FoundProof | undefined {
  const first = proofs.find((each) => hasPlace(request, each))
  if (!first) return undefined
  for (const proof of proofs) {
    if (proof.place !== first.place || proof.digest !== first.digest) continue
    const signatures = signaturesIn(request, proof)
    if (signatures.length > 0) return { proof, signatures }
  }
  return { proof: first, signatures: [] }
}

/** Proofs that apply to a secret of this form. */
export function proofsFor(secret: Secret, { proofs }: ProofScheme): readonly Proof[] {
  return proofs.filter(({ secretForm }) => secretForm?.test(secret.reveal()) ?? true)
}

/** True if a proof covers the body, so that a reader of the request cannot send another body with its signature. */
export function provesBody(proof: Proof): boolean {
  return isBearer(proof) ? false : proof.algorithm === 'jwt' || coversBody(proof)
}

/** True if a request contains a credential that proves any other one: a secret, or a token that covers no body. */
export function isBearer({ algorithm, jwt }: Proof): boolean {
  return algorithm === 'token' || (algorithm === 'jwt' && jwt?.digest === undefined && !jwt?.isBody)
}

/** The token of a request. Undefined without one. */
export function jwtIn(
  request: Pick<SignedRequest, 'lines' | 'query' | 'payload'>,
  proof: Proof,
): string | undefined {
  if (proof.algorithm !== 'jwt') return undefined
  return signaturesIn(request, proof)[0]?.slice(proof.prefix.length)
}

/** Finds the proof that this secret made, or undefined. Takes constant time. An empty secret matches nothing. */
export function findProof(secret: Secret, request: SignedRequest, scheme: WebhookScheme): Proof | undefined {
  if (isEmptySecret(secret)) return undefined
  const found = proofOf(request, proofsFor(secret, scheme))
  return found && isSigned(found.signatures, secret, request, found.proof) ? found.proof : undefined
}

/**
 * Finds the proof that relay's own key pair made, if the sender with this public key signs with one. Undefined if
 * secrets sign, since a public key is no secret.
 */
export function findOwnProof(
  { current, own }: WebhookSecrets,
  request: SignedRequest,
  scheme: WebhookScheme,
): Proof | undefined {
  const found = own && proofOf(request, proofsFor(current, scheme))
  if (!found || !usesKeys(found.proof.algorithm)) return undefined
  const { proof, signatures } = found
  return isSignedWith(readKeyPair(own).publicKey, signatures, request, proof) ? proof : undefined
}

/** True if the private half of a key made one of a request's well-formed signatures. Tries at most eight. */
function isSignedWith(
  key: KeyObject | undefined,
  signatures: readonly string[],
  request: SignedRequest,
  { algorithm, ...proof }: Proof,
): boolean {
  const text = key && signatures.length > 0 ? signedText(request, { algorithm, ...proof }) : undefined
  if (!key || !text || !usesKeys(algorithm)) return false
  const bytes = Buffer.concat(text.map((piece) => Buffer.from(piece)))
  return signatures.some((signature) => {
    const own = Buffer.from(signature.slice(proof.prefix.length), bufferEncoding(proof.encoding))
    return isSignedBy(key, own, bytes, algorithm)
  })
}

function bufferEncoding(encoding: Proof['encoding']): BufferEncoding {
  return encoding === 'HEX' ? 'hex' : encoding
}

/**
 * True if a secret made one of a request's well-formed signatures, or one of each member of a list. Hashes each at most
 * once.
 */
export function isSigned(
  signatures: readonly string[],
  secret: Secret,
  request: SignedRequest,
  proof: Proof,
): boolean {
  if (proof.each === undefined) return isPartSigned(signatures, secret, request, proof)
  const parts = partsOf(request, proof)
  return (
    parts.length > 0 &&
    parts.every((part) => isPartSigned(signaturesOfPart(part, proof), secret, part, proof))
  )
}

function isPartSigned(
  signatures: readonly string[],
  secret: Secret,
  request: SignedRequest,
  proof: Proof,
): boolean {
  const { algorithm } = proof
  if (usesKeys(algorithm))
    return isSignedWith(keyOfKind(secret, kindOfKey(algorithm)), signatures, request, proof)
  // A public key is known to anyone, who could sign with it as a secret. Tokens are proved by `authenticate` of the sender.
  if (isPublicKey(secret) || algorithm === 'jwt') return false
  const text = signatures.length === 0 || algorithm === 'token' ? [] : signedText(request, proof)
  if (signatures.length === 0 || !text) return false
  const made = signatureOf({ current: secret }, text, proof)
  if (made === undefined) return false
  const right = Buffer.from(made)
  return signatures.some((signature) => {
    // Senders write base64url with or without padding.
    const own = Buffer.from(proof.encoding === 'base64url' ? signature.replace(/=+$/, '') : signature)
    return own.length === right.length && timingSafeEqual(own, right)
  })
}

/**
 * Computes the signature of a secret, or of relay's own key, with its prefix and the name of its key. Undefined if the
 * secret has no name for its key.
 * @throws RelayError `settings` without such a key
 */
export function signatureOf(
  { current: secret, own }: WebhookSecrets,
  text: readonly (string | Uint8Array)[],
  { prefix, algorithm, encoding, key, keyName }: Proof,
): string | undefined {
  if (algorithm === 'jwt') return undefined
  if (usesKeys(algorithm)) return prefix + encodeDigest(ownSignature(own, text, algorithm), encoding)
  if (algorithm === 'token') {
    const words = secret.reveal()
    return prefix + (encoding === 'base64' ? Buffer.from(words).toString('base64') : words)
  }
  const named = keyOf(secret, key, keyName !== undefined)
  if (!named) return undefined
  const hmac = createHmac(algorithm, named.bytes)
  for (const piece of text) hmac.update(piece)
  const start = keyName === undefined ? '' : named.name + keyName
  return start + prefix + encodeDigest(hmac.digest(), encoding)
}

function ownSignature(
  own: Secret | undefined,
  text: readonly (string | Uint8Array)[],
  algorithm: KeyAlgorithm,
): Buffer {
  if (!own) throw lacksOwnKey()
  return signWith(
    readKeyPair(own).privateKey,
    Buffer.concat(text.map((piece) => Buffer.from(piece))),
    algorithm,
  )
}

function lacksOwnKey(): RelayError {
  return new RelayError(
    'settings',
    'Only the sender has the private key, and relay has made none of its own for the source: it does when the source is added',
  )
}

/** Writes a digest. */
export function encodeDigest(digest: Buffer, encoding: Proof['encoding']): string {
  return encoding === 'HEX' ? digest.toString('hex').toUpperCase() : digest.toString(encoding)
}

const HOUR = 3_600_000

/**
 * Explains why the signed time of a request is not accepted at `now`. Undefined if it is accepted, or no time is
 * signed.
 */
export function staleness(
  proof: Proof,
  { lines, payload, query }: Readable,
  now: number,
): string | undefined {
  const { time, jwt } = proof
  if (jwt) return jwtStaleness(jwtIn({ lines, query, payload: () => payload }, proof) ?? '', jwt, now)
  if (!time || time.tolerance === Infinity) return undefined
  const value = String(valueAt(time.place, lines, payload))
  const signed = parseTime(value, time.unit)
  if (signed === undefined) {
    const other = unitOf(value)
    if (other === undefined) return 'its signed time is missing or malformed'
    return `its signed time is ${timeWords(other)}, expected ${timeWords(time.unit)}`
  }
  const drift = signed - now
  if (Math.abs(drift) <= time.tolerance) return undefined
  const [amount, limit] = [Math.abs(drift), time.tolerance].map((ms) =>
    ms < 2 * HOUR ? `${Math.ceil(ms / 1000)} s` : `${Math.floor(ms / HOUR)} h`,
  )
  const side = drift < 0 ? 'behind' : 'ahead of'
  return `its signed time is ${amount} ${side} this machine's clock, and may be ${limit} from it: is the clock right, or was it sent again?`
}

/** Input for a signature that relay makes in place of the sender. */
export interface Unsigned extends Omit<SignedRequest, 'lines' | 'signed'> {
  readonly id: string
  /** The body, or a form's payload if the sender signs that. */
  readonly body: Uint8Array
  readonly now: number
  /** Headers of the request. The proof whose header is present is made again. */
  readonly lines?: HeaderLines
}

/** A value and its place in the request. */
export type Placed = readonly [place: ValueLocation, value: string]

/** Values that prove a delivery, by their places. */
export function proofValues(
  secrets: WebhookSecrets,
  { id, body, now, lines = new Map(), ...given }: Unsigned,
  scheme: WebhookScheme,
): Placed[] {
  const request: SignedRequest = { ...given, lines, signed: body }
  const proof = proofToMake(secrets.current, request, scheme)
  if (!proof) return []
  const { id: idPlace, time, place, headerList, digest } = proof
  const timestamp = time ? timeText(now, time.unit) : ''
  const timeHeader = time === undefined ? undefined : headerOf(time.place)
  const isShared = timeHeader !== undefined && timeHeader === headerOf(place)
  const values: Placed[] = []
  if (idPlace !== undefined && !isInBody(idPlace)) values.push([idPlace, id])
  if (timeHeader !== undefined && !isShared) values.push([timeHeader, timestamp])
  const list = headerList === undefined ? undefined : listOfHeaders(lines, proof, scheme)
  if (headerList !== undefined && list !== undefined) values.push([headerList, list])
  const own = new Map<string, readonly string[]>(lines)
  for (const [name, value] of values) own.set(name, [value])
  const layout = isShared ? layoutOf(proof) : '{signature}'
  if (isShared) own.set(timeHeader, [filled(layout, timestamp, 'x')])
  const query = digest === undefined ? request.query : withParameter(request.query, digest, sha256Of(body))
  if (digest !== undefined) values.push([digest, sha256Of(body)])
  const signed = { ...request, query, lines: own }
  const sign = (part: SignedRequest, each: Proof): string => {
    if (each.jwt) {
      const url = each.url ?? request.payloadUrl
      const made = makeJwt(each.jwt, secrets, { body, url, query }, now, storedClaims(lines))
      if (made === undefined) throw lacksOwnKey()
      return each.prefix + made
    }
    const text = each.algorithm === 'token' ? [] : signedText(part, each)
    return (text && signatureOf(secrets, text, each)) ?? ''
  }
  for (const [at, part] of partsOf(signed, proof).entries())
    values.push([placeOfPart(proof, at), filled(layout, timestamp, sign(part, proof))])
  for (const also of scheme.also ?? []) values.push([also.place, sign(signed, also)])
  return values
}

/** Claims of the token that a delivery came with, which is not stored. */
function storedClaims(lines: HeaderLines): Readonly<Record<string, unknown>> {
  const text = singleValue(lines, CLAIMS_HEADER.toLowerCase())
  return (text !== undefined && decodeJwt(`e30.${text}.`)?.claims) || {}
}

/** Place of a proof in a member of the list, or in all of the request. */
function placeOfPart({ place, each }: Proof, at: number): ValueLocation {
  return each === undefined || !isInBody(place) ? place : [each, at, ...stepsOf(place)].join('.')
}

/**
 * The proof that is made: the one that the request has, else the first that can cover its body. A digest replaces a
 * body that nothing else covers.
 */
export function proofToMake(
  secret: Secret,
  request: SignedRequest,
  scheme: WebhookScheme,
): Proof | undefined {
  const all = proofsFor(secret, scheme)
  const proofs = all.filter(
    (proof) =>
      (!proof.signed.includes('{fields}') || isFormBody(request.signed)) &&
      (proof.each === undefined || partsOf(request, proof).length > 0),
  )
  return proofIn(request, proofs) ?? proofs.find(({ digest }) => digest === undefined) ?? proofs[0] ?? all[0]
}

/** How a header with signature and time is written. */
function layoutOf({ time, separator = ',', layout }: Proof): string {
  const [, key = ''] = time?.place.split('#') ?? []
  return layout ?? `${/^\d+$/.test(key) ? '' : `${key}=`}{timestamp}${separator}{signature}`
}

function filled(layout: string, timestamp: string, signature: string): string {
  return layout.replace('{timestamp}', () => timestamp).replace('{signature}', () => signature)
}

/** The names of the headers that are signed: those that the request lists, else those that the scheme must prove. */
function listOfHeaders(
  lines: HeaderLines,
  { headerList = '', time }: Proof,
  { event, id }: WebhookScheme,
): string {
  const known = singleValue(lines, headerList)
  if (known !== undefined) return known
  const others = [...event, ...id].filter((place) => lines.has(place))
  const names = [headerList, ...(time ? [headerOf(time.place) ?? []].flat() : []), ...others]
  return [...new Set(names)].toSorted().join(',')
}

/** Sets a parameter of a query. Every other byte stays. */
export function withParameter(
  query: string | undefined,
  place: ValueLocation,
  value: string,
): string | undefined {
  if (!place.startsWith('?')) return query
  const name = place.slice(1)
  const others = (query ?? '').split('&').filter((each) => each !== '' && each.split('=', 1)[0] !== name)
  return [...others, new URLSearchParams([[name, value]]).toString()].join('&')
}

/** The header lines of {@link proofValues}. */
export function signDelivery(secret: Secret, request: Unsigned, scheme: WebhookScheme): Header[] {
  return proofValues({ current: secret }, request, scheme).flatMap(([place, value]): Header[] => {
    const header = headerOf(place)
    return header === undefined ? [] : [[canonicalHeaderName(header), value]]
  })
}
