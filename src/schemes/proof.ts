import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../base/secret.js'
import { type Header, type HeaderLines, only, spelledHeader } from '../http/headers.js'
import { isInBody, type Place, piecesOf, type Proof, valueAt, type WebhookScheme } from './scheme.js'

/** The bytes of digests, in a length that no header's value passes. */
export const LENGTHS = { sha256: 32, sha1: 20, sha512: 64, token: 0 } as const
/** Senders send one or two while a secret is changed. */
const MAX_SIGNATURES = 8
/** Characters: longer than any token. */
const MAX_TOKEN = 1024

/** The form of one signature, as the source of a regular expression. */
export function formOf({ prefix, algorithm, encoding }: Proof): string {
  const start = prefix.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  if (algorithm === 'token') return `${start}[\\x21-\\x7e](?:[\\x20-\\x7e]{0,${MAX_TOKEN}}[\\x21-\\x7e])?`
  const bytes = LENGTHS[algorithm]
  if (encoding === 'hex') return `${start}[0-9a-f]{${2 * bytes}}`
  const rest = (3 - (bytes % 3)) % 3
  return `${start}[A-Za-z0-9+/]{${Math.ceil((bytes * 4) / 3)}}${'='.repeat(rest)}`
}

const forms = new WeakMap<Proof, RegExp>()

/** The signatures of a proof in a request's header that have the right form. None if the header is given twice. */
export function signaturesIn(lines: HeaderLines, proof: Proof): string[] {
  const value = only(lines, proof.header)
  if (value === undefined) return []
  const { separator } = proof
  const all = separator ? value.split(separator, MAX_SIGNATURES).map((each) => each.trim()) : [value]
  const form = forms.get(proof) ?? new RegExp(`^${formOf(proof)}$`)
  forms.set(proof, form)
  return all.filter((each) => form.test(each))
}

/** Whether a request has a signature header in the right form. Without one it is refused before any byte is hashed. */
export function hasProof(lines: HeaderLines, { proofs }: Pick<WebhookScheme, 'proofs'>): boolean {
  return proofs.length === 0 || proofs.some((proof) => signaturesIn(lines, proof).length > 0)
}

/** The proofs that count for a secret. */
export function proofsFor(secret: Secret, { proofs }: Pick<WebhookScheme, 'proofs'>): readonly Proof[] {
  return proofs.filter(({ secretForm }) => secretForm?.test(secret.reveal()) ?? true)
}

/** The lower-case names of the headers that hold the secret itself, and are never stored. */
export function tokenHeaders({ proofs }: Pick<WebhookScheme, 'proofs'>): ReadonlySet<string> {
  return new Set(proofs.flatMap(({ header, algorithm }) => (algorithm === 'token' ? [header] : [])))
}

/** Whether a request that is signed with a secret holds the secret itself. */
export function sendsSecret(secret: Secret, scheme: Pick<WebhookScheme, 'proofs'>): boolean {
  return proofsFor(secret, scheme).some(({ algorithm }) => algorithm === 'token')
}

/** Whether what proves a delivery covers its body. A plain token does not: a tunnel shows it to everybody, and refuses it. */
export function provesBody(secret: Secret, scheme: Pick<WebhookScheme, 'proofs'>): boolean {
  const proofs = proofsFor(secret, scheme)
  return proofs.length > 0 && proofs.every(({ algorithm }) => algorithm !== 'token')
}

/** A request to be proved. `signed`: the body, or the payload of a form whose sender signs that. */
interface Signed {
  readonly lines: HeaderLines
  readonly signed: Uint8Array
}

/** Whether a secret holds nothing, so that anybody could sign with it. */
export function isEmptySecret(secret: Secret): boolean {
  return /^(?:whsec_)?$/.test(secret.reveal())
}

/** The proof that this secret made; undefined if it made none. Takes constant time; an empty secret matches nothing. */
export function provenWith(secret: Secret, request: Signed, scheme: WebhookScheme): Proof | undefined {
  if (isEmptySecret(secret)) return undefined
  const proof = proofsFor(secret, scheme).find(({ header }) => request.lines.has(header))
  return proof && isSigned(signaturesIn(request.lines, proof), secret, request, proof) ? proof : undefined
}

/** Whether a secret made one of the signatures, which have the right form, of a request. Hashes it once, if there are any. */
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

/** A part of what is signed that a header gives. */
interface HeaderPart {
  readonly part: '{id}' | '{timestamp}'
  readonly place: Place
  /** Undefined if the request has none. An id then counts as empty. */
  readonly value: string | undefined
  /** The text between this part and the next. */
  readonly separator: string
}

/** The parts that headers give, in the order in which they are signed. */
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
 * Whether a part could be nothing else of what is signed: a time is digits, and the text that separates a part from the next is not found
 * before its end. With another part the same signature would prove another request (see `ambiguity` in scheme.ts).
 */
export function isWellFormed({ part, value = '', separator }: HeaderPart): boolean {
  if (part === '{timestamp}' && !isTime(value)) return false
  return (value + separator).indexOf(separator) === value.length
}

interface Parts {
  readonly id: string
  readonly timestamp: string
  readonly body: Uint8Array
}

/** The signature that a secret makes, with its prefix. */
function signatureOf(secret: Secret, parts: Parts, proof: Proof): string {
  const { prefix, algorithm, encoding, signed, key } = proof
  const text = secret.reveal()
  if (algorithm === 'token') return prefix + text
  const hmac = createHmac(algorithm, (key && keyIn(secret)) ?? text)
  for (const piece of signed === '{body}' ? [signed] : piecesOf(signed))
    if (piece === '{body}') hmac.update(parts.body)
    else hmac.update(piece === '{id}' ? parts.id : piece === '{timestamp}' ? parts.timestamp : piece)
  return prefix + hmac.digest(encoding)
}

/** What the reference library decodes, with or without `whsec_` before it, and `=` after it: a double click selects none. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

/** The key that a secret is base64 of; undefined if it is none. */
export function keyIn(secret: Secret): Buffer | undefined {
  const text = secret.reveal().replace(/^whsec_/, '')
  return BASE64.test(text) ? Buffer.from(text, 'base64') : undefined
}

const HOUR = 3_600_000

/** Why the signed time of a request does not count at `now`; undefined if it does, or where none is signed. */
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

/** Whether a text is a time, as a number since 1970. */
export function isTime(text: string): boolean {
  return /^\d{1,16}$/.test(text)
}

/** The header lines that prove a delivery made now. Where `lines` has a proof already, its headers; else those of the first that fits. */
export function sign(
  secret: Secret,
  { id, body, now, lines }: Omit<Parts, 'timestamp'> & { readonly now: number; readonly lines?: HeaderLines },
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
  return signed.map(([name, value]) => [spelledHeader(name), value])
}
