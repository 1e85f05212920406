import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../base/secret.js'
import { type Header, type HeaderLines, singleValue, canonicalHeaderName } from '../http/headers.js'
import {
  isInBody,
  type ValueLocation,
  piecesOf,
  type Proof,
  type ProofScheme,
  valueAt,
  type WebhookScheme,
} from './scheme.js'

/** Digest sizes in bytes, by algorithm. A token has no fixed size. */
export const DIGEST_BYTES = { sha256: 32, sha1: 20, sha512: 64, token: 0 } as const
/** Most signatures in one header. Senders send one or two while a secret is rotated. */
const MAX_SIGNATURES = 8
/** Longest token in characters: more than any sender uses. */
const MAX_TOKEN = 1024

/** Regular expression source for one well-formed signature. */
export function signaturePattern({ prefix, algorithm, encoding }: Proof): string {
  const start = prefix.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  if (algorithm === 'token') return `${start}[\\x21-\\x7e](?:[\\x20-\\x7e]{0,${MAX_TOKEN}}[\\x21-\\x7e])?`
  const bytes = DIGEST_BYTES[algorithm]
  if (encoding === 'hex') return `${start}[0-9a-f]{${2 * bytes}}`
  const rest = (3 - (bytes % 3)) % 3
  return `${start}[A-Za-z0-9+/]{${Math.ceil((bytes * 4) / 3)}}${'='.repeat(rest)}`
}

const forms = new WeakMap<Proof, RegExp>()

/** Well-formed signatures of a proof in a request's headers. None if the header is repeated. */
export function signaturesIn(lines: HeaderLines, proof: Proof): string[] {
  const value = singleValue(lines, proof.header)
  if (value === undefined) return []
  const { separator } = proof
  const all = separator ? value.split(separator, MAX_SIGNATURES).map((each) => each.trim()) : [value]
  const form = forms.get(proof) ?? new RegExp(`^${signaturePattern(proof)}$`)
  forms.set(proof, form)
  return all.filter((each) => form.test(each))
}

/** True if a request has a well-formed signature header. Without one it is refused before any byte is hashed. */
export function hasProof(lines: HeaderLines, { proofs }: ProofScheme): boolean {
  return proofs.length === 0 || proofs.some((proof) => signaturesIn(lines, proof).length > 0)
}

/** Proofs that apply to a secret of this form. */
export function proofsFor(secret: Secret, { proofs }: ProofScheme): readonly Proof[] {
  return proofs.filter(({ secretForm }) => secretForm?.test(secret.reveal()) ?? true)
}

/** Lower-case names of the headers that contain the secret itself, and are never stored. */
export function tokenHeaders({ proofs }: ProofScheme): ReadonlySet<string> {
  return new Set(proofs.flatMap(({ header, algorithm }) => (algorithm === 'token' ? [header] : [])))
}

/** True if a request signed with this secret contains the secret itself. */
export function sendsSecret(secret: Secret, scheme: ProofScheme): boolean {
  return proofsFor(secret, scheme).some(({ algorithm }) => algorithm === 'token')
}

/**
 * True if the proof of a delivery covers its body. A plain token does not: a tunnel shows it to everybody, so it proves
 * nothing there.
 */
export function provesBody(secret: Secret, scheme: ProofScheme): boolean {
  const proofs = proofsFor(secret, scheme)
  return proofs.length > 0 && proofs.every(({ algorithm }) => algorithm !== 'token')
}

/** A request to verify. `signed` is the body, or a form's payload if the sender signs that. */
interface Signed {
  readonly lines: HeaderLines
  readonly signed: Uint8Array
}

/** True for an empty secret, with which anybody could sign. */
export function isEmptySecret(secret: Secret): boolean {
  return /^(?:whsec_)?$/.test(secret.reveal())
}

/** Finds the proof that this secret made, or undefined. Takes constant time. An empty secret matches nothing. */
export function findProof(secret: Secret, request: Signed, scheme: WebhookScheme): Proof | undefined {
  if (isEmptySecret(secret)) return undefined
  const proof = proofsFor(secret, scheme).find(({ header }) => request.lines.has(header))
  return proof && isSigned(signaturesIn(request.lines, proof), secret, request, proof) ? proof : undefined
}

/** True if a secret made one of a request's well-formed signatures. Hashes at most once. */
export function isSigned(
  signatures: readonly string[],
  secret: Secret,
  request: Signed,
  proof: Proof,
): boolean {
  const headers = signatures.length === 0 ? [] : headerParts(request.lines, proof)
  if (signatures.length === 0 || !headers.every(isWellFormed)) return false
  const valueOf = (part: HeaderPart['part']): string =>
    headers.find((each) => each.part === part)?.value ?? ''
  const parts = { id: valueOf('{id}'), timestamp: valueOf('{timestamp}'), body: request.signed }
  const right = Buffer.from(signatureOf(secret, parts, proof))
  return signatures.some((signature) => {
    const own = Buffer.from(signature)
    return own.length === right.length && timingSafeEqual(own, right)
  })
}

/** A part of the signed text that comes from a header. */
interface HeaderPart {
  readonly part: '{id}' | '{timestamp}'
  readonly place: ValueLocation
  /** The header's value. Undefined if the request has none; a missing id counts as empty. */
  readonly value: string | undefined
  /** Text between this part and the next. */
  readonly separator: string
}

/** Parts that come from headers, in the order in which they are signed. */
export function headerParts(lines: HeaderLines, { signed, id, time }: Proof): HeaderPart[] {
  if (signed === '{body}') return []
  const pieces = piecesOf(signed)
  return pieces.flatMap((part, at) => {
    const place = part === '{id}' ? id : part === '{timestamp}' ? time?.place : undefined
    if (place === undefined || (part !== '{id}' && part !== '{timestamp}')) return []
    const value = valueAt(place, lines, undefined)
    return [
      { part, place, value: typeof value === 'string' ? value : undefined, separator: pieces[at + 1] ?? '' },
    ]
  })
}

/**
 * True if the signed text can be divided in only one way: a time consists of digits, and a part does not contain the
 * separator behind it. Otherwise the same signature would prove another request (see `ambiguity` in scheme.ts).
 */
export function isWellFormed({ part, value = '', separator }: HeaderPart): boolean {
  if (part === '{timestamp}' && !isTime(value)) return false
  return (value + separator).indexOf(separator) === value.length
}

interface SignedParts {
  readonly id: string
  readonly timestamp: string
  readonly body: Uint8Array
}

/** Computes the signature of a secret, with its prefix. */
function signatureOf(secret: Secret, parts: SignedParts, proof: Proof): string {
  const { prefix, algorithm, encoding, signed, key } = proof
  const text = secret.reveal()
  if (algorithm === 'token') return prefix + text
  const hmac = createHmac(algorithm, (key && decodeKey(secret)) ?? text)
  for (const piece of signed === '{body}' ? [signed] : piecesOf(signed))
    if (piece === '{body}') hmac.update(parts.body)
    else hmac.update(piece === '{id}' ? parts.id : piece === '{timestamp}' ? parts.timestamp : piece)
  return prefix + hmac.digest(encoding)
}

/**
 * Base64 as the reference library decodes it. A leading `whsec_` is removed first, and trailing `=` are optional, since
 * a double click does not select them.
 */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

/** Decodes a secret that is base64 of the key. Undefined if it is not base64. */
export function decodeKey(secret: Secret): Buffer | undefined {
  const text = secret.reveal().replace(/^whsec_/, '')
  return BASE64.test(text) ? Buffer.from(text, 'base64') : undefined
}

const HOUR = 3_600_000

/**
 * Explains why the signed time of a request is not accepted at `now`. Undefined if it is accepted, or no time is
 * signed.
 */
export function staleness(
  { time }: Proof,
  { lines, payload }: { readonly lines: HeaderLines; readonly payload: unknown },
  now: number,
): string | undefined {
  if (!time) return undefined
  const value = String(valueAt(time.place, lines, payload))
  if (!isTime(value)) return 'its signed time is missing or malformed'
  const drift = Number(value) * time.unit - now
  if (Math.abs(drift) <= time.tolerance) return undefined
  const [amount, limit] = [Math.abs(drift), time.tolerance].map((ms) =>
    ms < 2 * HOUR ? `${Math.ceil(ms / 1000)} s` : `${Math.floor(ms / HOUR)} h`,
  )
  const side = drift < 0 ? 'behind' : 'ahead of'
  return `its signed time is ${amount} ${side} this machine's clock, and may be ${limit} from it: is the clock right, or was it sent again?`
}

/** True if a text is a number of seconds or milliseconds since 1970. */
export function isTime(text: string): boolean {
  return /^\d{1,16}$/.test(text)
}

/**
 * Signs a delivery and returns the header lines that prove it. Uses the proof whose header is in `lines`, else the
 * first one that applies to the secret.
 */
export function signDelivery(
  secret: Secret,
  {
    id,
    body,
    now,
    lines,
  }: Omit<SignedParts, 'timestamp'> & { readonly now: number; readonly lines?: HeaderLines },
  scheme: WebhookScheme,
): Header[] {
  const proofs = proofsFor(secret, scheme)
  const proof = proofs.find(({ header }) => lines?.has(header)) ?? proofs[0]
  if (!proof) return []
  const { id: idPlace, time } = proof
  const timestamp = time ? String(Math.floor(now / time.unit)) : ''
  const parts = { id, timestamp, body }
  const [timeHeader = '', timeKey] = time && !isInBody(time.place) ? time.place.split('#') : []
  const signed: [name: string, value: string][] = []
  if (idPlace !== undefined && !isInBody(idPlace)) signed.push([idPlace, id])
  if (timeHeader !== '' && timeKey === undefined) signed.push([timeHeader, timestamp])
  const pair = timeKey === undefined ? '' : `${timeKey}=${timestamp},`
  signed.push([proof.header, pair + signatureOf(secret, parts, proof)])
  for (const also of scheme.also ?? []) signed.push([also.header, signatureOf(secret, parts, also)])
  return signed.map(([name, value]) => [canonicalHeaderName(name), value])
}
