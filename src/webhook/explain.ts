import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { firstPayload } from '../http/forms.js'
import { Secret } from '../base/secret.js'
import { type HeaderLines, indexHeaders, singleValue, canonicalHeaderName } from '../http/headers.js'
import type { VerifiedBy } from '../journal/types.js'
import { isCutOff } from '../json/text.js'
import {
  headerParts,
  isSigned,
  isTime,
  isWellFormed,
  decodeKey,
  DIGEST_BYTES,
  proofsFor,
  signaturesIn,
  staleness,
} from '../schemes/proof.js'
import { isInBody, type Proof, type WebhookScheme } from '../schemes/scheme.js'
import { HUB_PROOF } from '../schemes/senders.js'
import { AS_FORM, originals } from './encodings.js'
import { parsePayload, type WebhookRequest } from './intake.js'
import { isForm, verifySignature, type SigningConfig, signedBytes } from './signature.js'

/** Reasons why a request is not proved. */
export type UnprovedReason =
  | 'no_signature'
  | 'empty_signature'
  | 'repeated_signature'
  | 'malformed_signature'
  | 'only_sha1'
  | 'wrong_header'
  | 'malformed_part'
  | 'stale'
  | 'secret_white_space'
  | 'secret_form'
  | 'other_template'
  | 're_encoded'
  | 'form'
  | 'truncated'
  | 'wrong_secret'
  | 'unverifiable'

export interface Unproved {
  readonly valid: false
  readonly reason: UnprovedReason
  /** A sentence for the user. Contains no secret, no digest and nothing of the body. */
  readonly hint: string
}

export type SignatureExplanation = { readonly valid: true; readonly by: VerifiedBy } | Unproved

export function unproved(reason: UnprovedReason, hint: string): Unproved {
  return { valid: false, reason, hint }
}

/**
 * Explains whether one of the secrets proves a request, as intake decides it, and why not. If possible the reason is
 * verified with the configured secrets, otherwise it is the most likely one. Hashes a body that does not match a few
 * dozen times, and lets the event loop run in between.
 * @param now arrival in milliseconds since 1970-01-01 UTC. Undefined if unknown: then any signed time is accepted.
 */
export async function explainSignature(
  { headers, body }: WebhookRequest,
  sender: SigningConfig,
  now: number | undefined,
): Promise<SignatureExplanation> {
  const lines = indexHeaders(headers)
  const proven = verifySignature(lines, body, sender)
  if (proven) {
    const { by, proof } = proven
    const isTimed = proof?.time !== undefined && now !== undefined
    const stale = isTimed ? staleness(proof, { lines, payload: parsePayload(lines, body) }, now) : undefined
    return stale === undefined ? { valid: true, by } : unproved('stale', stale)
  }
  const { scheme } = sender
  const { current, previous = current } = sender.secrets
  const secrets = [...new Set([current, previous])].filter((secret) => secret.reveal() !== '')
  const proofs = secrets.flatMap((secret) => proofsFor(secret, scheme))
  const proof = proofs.find(({ header }) => lines.has(header)) ?? proofs[0] ?? scheme.proofs[0] ?? HUB_PROOF
  const payload = isForm(lines) ? firstPayload(body) : undefined
  const signed = signedBytes(lines, body, scheme) ?? body
  const signatures = signaturesIn(lines, proof)
  const request = { lines, body, payload, signed, scheme, secrets, proof, signatures }
  return (
    explainHeader(request) ??
    explainParts(request) ??
    explainSecret(request) ??
    explainTemplate(request) ??
    explainForm(request) ??
    (await explainEncoding(request)) ??
    likeliestReason(request)
  )
}

/** A request that none of the secrets proves. */
interface Mismatch {
  readonly lines: HeaderLines
  readonly body: Uint8Array
  /** Payload of the form, if Content-Type says form. JSON text may contain something that looks like a form field. */
  readonly payload: Uint8Array | undefined
  /** Bytes that should have been signed. The whole body if Content-Type says form but the body is not one. */
  readonly signed: Uint8Array
  readonly scheme: WebhookScheme
  readonly secrets: readonly Secret[]
  /** Proof that the request should have. */
  readonly proof: Proof
  /** Well-formed signatures in the proof's header. */
  readonly signatures: readonly string[]
}

/** True if one of the secrets made one of the signatures of these bytes. */
function isMade({ lines, secrets, proof, signatures }: Mismatch, signed: Uint8Array): boolean {
  return secrets.some((secret) => isSigned(signatures, secret, { lines, signed }, proof))
}

/** Describes the expected header: `X-Hub-Signature-256: sha256=<64 lower-case hex digits>`. */
function expected({ header, prefix, algorithm, encoding, time }: Proof): string {
  const bytes = DIGEST_BYTES[algorithm]
  const digest = encoding === 'hex' ? `<${2 * bytes} lower-case hex digits>` : `<base64 of ${bytes} bytes>`
  const [, key] = time?.place.split('#') ?? []
  const pair = key === undefined ? '' : `${key}=<time>,`
  const what = algorithm === 'token' ? '<the secret>' : digest
  return `expected ${canonicalHeaderName(header)}: ${pair}${prefix}${what}`
}

/** The party that has the webhook's settings. */
function hostOf({ scheme }: Mismatch): string {
  return scheme.events ? 'the code host' : 'the sender'
}

/** Explains a signature header that is missing, misplaced or malformed. */
function explainHeader(request: Mismatch): Unproved | undefined {
  const { lines, proof, signatures } = request
  const { header, prefix, separator, algorithm, encoding, time } = proof
  const name = canonicalHeaderName(header)
  const given = lines.get(header)
  if (!given) return explainAbsence(request)
  // A proxy may have joined two lines into one.
  const isSingle = separator === undefined && algorithm !== 'token'
  const [value = '', second] = isSingle ? given.flatMap((line) => line.split(',')) : given
  if (second !== undefined) return unproved('repeated_signature', `${name} is given more than once`)
  if (signatures.length > 0) return undefined
  const [, pair = header] = time?.place.split('#') ?? []
  const all = (separator === undefined ? [value] : value.split(separator).map((each) => each.trim())).filter(
    (each) => !each.startsWith(`${pair}=`),
  )
  const isBegun = (each: string): boolean => each.toLowerCase().startsWith(prefix.toLowerCase())
  if (all.every((each) => /^\s*$/.test(isBegun(each) ? each.slice(prefix.length) : each)))
    return unproved('empty_signature', `${EMPTY} ${hostOf(request)}`)
  const signature = all.find(isBegun) ?? all[0] ?? ''
  if (algorithm === 'sha256' && /^(?:sha1=|[0-9a-f]{40}$)/i.test(signature))
    return unproved('only_sha1', `${name} holds a SHA-1 signature, ${expected(proof)}`)
  const found = readSignature(signature, proof)
  const isUpper = algorithm !== 'token' && found?.[1] === 'hex' && /[A-Z]/.test(signature)
  const isIn = isUpper ? 'upper case' : found?.[1]
  const isOtherwise = isIn !== undefined && isIn !== encoding ? `is in ${isIn}` : 'is malformed'
  const defect =
    found && !isBegun(signature) && found[1] === encoding ? `lacks the prefix ${prefix.trim()}` : isOtherwise
  return unproved('malformed_signature', `${name} ${defect}, ${expected(proof)}${matchNote(request, found)}`)
}

const EMPTY = 'the signature is empty: the webhook has no secret at'
/** Headers with a bare digest, like `X-Gitea-Signature`. They are empty if the webhook has no secret. */
const DIGEST = /^x-(?!hub-)[a-z]+-signature$/

/** Most other headers that are tried. Senders send three at most, and each may cost a hash of the body. */
const MAX_OTHERS = 4
const MAX_NAME_LENGTH = 64

/** Searches other headers for the proof. */
function explainAbsence(request: Mismatch): Unproved {
  const { lines, signed, proof, scheme } = request
  const name = canonicalHeaderName(proof.header)
  const other = scheme.proofs.find((each) => each.secretForm && lines.has(each.header))
  if (other) {
    const signatures = other.algorithm === 'token' ? [] : signaturesIn(lines, other)
    if (isMade({ ...request, proof: other, signatures }, signed)) return unproved('secret_form', LACKS_MARK)
    const [has, needs] = [other, proof].map((each) => (each.algorithm === 'token' ? 'token' : 'signature'))
    const what = `the request has a ${has} in ${canonicalHeaderName(other.header)}, but relay's secret is for a ${needs}`
    return unproved('wrong_header', `${what} in ${name}: set the secret that the sender uses`)
  }
  const what = proof.algorithm === 'token' ? 'token' : 'signature'
  const likely = what === 'token' ? /token|secret|key|auth/ : /signature|hmac|digest|sha-?(?:1|256|512)/
  const others = [...lines]
    .filter(([each]) => each.length <= MAX_NAME_LENGTH && likely.test(each))
    .map(([each, [value = '']]) => [each, readSignature(value, proof)] as const)
    .filter(([, found]) => found)
    .slice(0, MAX_OTHERS)
  const misplaced =
    others.find(([, found]) => matches(request, found)) ??
    others.find(([each]) => what === 'signature' && each.includes(what))
  if (misplaced) {
    const [where, found] = misplaced
    const hint = `the ${what} is in ${canonicalHeaderName(where)}, ${expected(proof)}`
    return unproved('wrong_header', `${hint}${matchNote(request, found)}`)
  }
  const legacy = lines.get('x-hub-signature')?.[0] ?? ''
  if (proof.algorithm === 'sha256' && /^sha1=[0-9a-f]{40}$/i.test(legacy))
    return unproved('only_sha1', `there is only a SHA-1 signature (X-Hub-Signature), ${expected(proof)}`)
  if ([...lines].some(([each, [value]]) => value === '' && DIGEST.test(each)))
    return unproved('empty_signature', `${EMPTY} ${hostOf(request)}`)
  if (what === 'token')
    return unproved('unverifiable', `there is no ${name}, which relay never stores: does the sender send it?`)
  return unproved(
    'no_signature',
    `there is no ${name}: does the webhook have a secret at ${hostOf(request)}?`,
  )
}

/** A signature in the form that the proof requires, with the encoding in which it was found. */
type Found = readonly [signature: string, encoding: Proof['encoding']]

/**
 * Extracts a token, or a signature with any prefix and encoding. Undefined if the text contains none of the right
 * length.
 */
function readSignature(text: string, { prefix, algorithm, encoding }: Proof): Found | undefined {
  if (algorithm === 'token') return [text.startsWith(prefix) ? text : prefix + text, encoding]
  const bytes = DIGEST_BYTES[algorithm]
  // `v1,…` is two words.
  for (const word of text.split(/[\s,]+/, 8)) {
    const digest = word.replace(/^[a-z][\w-]{0,15}=(?=.)/i, '').replace(/={1,2}$/, '')
    const isHex = digest.length === 2 * bytes && /^[\da-f]+$/i.test(digest)
    if (!isHex && !(digest.length === Math.ceil((4 * bytes) / 3) && /^[\w+/-]+$/.test(digest))) continue
    const own = isHex ? 'hex' : 'base64'
    return [prefix + Buffer.from(digest, own).toString(encoding), own]
  }
  return undefined
}

function matches(request: Mismatch, found: Found | undefined): boolean {
  return found !== undefined && isMade({ ...request, signatures: [found[0]] }, request.signed)
}

function matchNote(request: Mismatch, found: Found | undefined): string {
  if (!found) return ''
  const covered = request.proof.algorithm === 'token' ? 'the secret' : 'the secret and the body'
  return matches(request, found) ? '; otherwise it is right' : `; it does not match ${covered} either`
}

/** Explains problems of the headers with the id and the time that the signature covers. */
function explainParts({ lines, proof }: Mismatch): Unproved | undefined {
  for (const each of headerParts(lines, proof)) {
    const { place, value, separator } = each
    if (value !== undefined && isWellFormed(each)) continue
    const [header = '', key] = place.split('#')
    const name = key === undefined ? canonicalHeaderName(header) : `${key}= in ${canonicalHeaderName(header)}`
    const isShared = value?.includes(separator) === true
    const contains = `contains ${JSON.stringify(separator)}, which separates it from what follows`
    const defect = isShared
      ? contains
      : value !== undefined
        ? 'is malformed'
        : 'is missing or given more than once'
    return unproved('malformed_part', `${name}, which the signature covers, ${defect}`)
  }
  return undefined
}

/**
 * Tries secrets with other white space at their ends, and other keys derived from them. Hashes the body at most 35
 * times for each secret.
 */
function explainSecret(request: Mismatch): Unproved | undefined {
  const { secrets, signed, proof } = request
  for (const [secret, reason] of secrets.flatMap((each) => [...likelySecrets(each)]))
    if (isMade({ ...request, secrets: [secret] }, signed)) return reason
  for (const [secret, tried, hint] of secrets.flatMap((each) => [...otherKeys(each, proof)]))
    if (isMade({ ...request, secrets: [secret], proof: tried }, signed)) return unproved('secret_form', hint)
  return undefined
}

const MARK = 'whsec_'
const LACKS_MARK = `relay's secret lacks the ${MARK} at its start`
const HAS_MARK = `relay's secret begins with ${MARK}, the sender's does not`
const UNDECODED = `it is signed with the secret as text: this sender decodes the base64 after ${MARK}`
const DECODED = 'it is signed with the secret decoded from base64: this sender uses it as text'

/** Alternative keys of a secret, since senders disagree on the meaning of `whsec_`. */
function* otherKeys(secret: Secret, proof: Proof): Generator<readonly [Secret, Proof, hint: string]> {
  const text = secret.reveal()
  const isMarked = text.startsWith(MARK)
  const toggled = new Secret(isMarked ? text.slice(MARK.length) : MARK + text)
  const { key, ...asText } = proof
  if (key) for (const each of [secret, toggled]) yield [each, asText, UNDECODED]
  else {
    yield [toggled, proof, isMarked ? HAS_MARK : LACKS_MARK]
    if (decodeKey(secret)) yield [secret, { ...proof, key: 'base64' }, DECODED]
  }
}

/** White space that copying adds before and after a secret, and its names in messages. */
const STARTS = ['', ' ', '\t', '\n']
const ENDS = ['', '\n', '\r\n', ' ', '\t']
const NAMES: Readonly<Record<string, string>> = {
  ' ': 'a space',
  '\t': 'a tab',
  '\n': 'a newline',
  '\r\n': 'a carriage return and newline',
}

/**
 * Variants of a secret with other white space at its ends, the smallest changes first, with the reason if the sender
 * has that one.
 */
export function* likelySecrets(secret: Secret): Generator<readonly [Secret, Unproved]> {
  const text = secret.reveal()
  const bare = text.trim()
  if (bare === '') return
  const [ownStart, ownEnd] = [text.slice(0, text.indexOf(bare)), text.slice(text.trimEnd().length)]
  for (const start of new Set([ownStart, ...STARTS]))
    for (const end of new Set([ownEnd, ...ENDS])) {
      const [startDiffers, endDiffers] = [start !== ownStart, end !== ownEnd]
      if (!startDiffers && !endDiffers) continue
      const added = [
        ...(startDiffers && start !== '' ? [`begins with ${NAMES[start]}`] : []),
        ...(endDiffers && end !== '' ? [`ends in ${NAMES[end]}`] : []),
      ].join(' and ')
      const sides = startDiffers && endDiffers ? 'start and end' : startDiffers ? 'start' : 'end'
      const lacks = `relay's secret has white space at its ${sides}, the sender's does not`
      const hint = added === '' ? lacks : `the sender's secret ${added}, relay's does not`
      yield [new Secret(start + bare + end), unproved('secret_white_space', hint)]
    }
}

/** Templates of the text that senders sign. */
const TEMPLATES = ['{body}', '{timestamp}.{body}', '{timestamp}:{body}', 'v0:{timestamp}:{body}']

/** Explains a signature that covers other parts than the scheme's, such as the body without the time. */
function explainTemplate(request: Mismatch): Unproved | undefined {
  const { lines, proof, signed } = request
  const isOfTime = (name: string): boolean =>
    name.length <= MAX_NAME_LENGTH && /time/.test(name) && isTime(singleValue(lines, name) ?? '')
  const own = proof.time && !isInBody(proof.time.place) ? proof.time.place : undefined
  const place = own ?? [...lines.keys()].find(isOfTime)
  const time = place === undefined ? {} : { time: { place, unit: 1000, tolerance: 0 } as const }
  for (const template of TEMPLATES) {
    if (template === proof.signed || (place === undefined && template !== '{body}')) continue
    if (!isMade({ ...request, proof: { ...proof, ...time, signed: template } }, signed)) continue
    const where =
      own === undefined && place !== undefined ? ` with the time in ${canonicalHeaderName(place)}` : ''
    return unproved('other_template', `the signature covers ${template}${where}, expected ${proof.signed}`)
  }
  return undefined
}

/** Explains a disagreement about whether the body is a form, or which part of the form is signed. */
function explainForm(request: Mismatch): Unproved | undefined {
  const { lines, body, scheme } = request
  const payload = firstPayload(body)
  if (isMade(request, body))
    return payload
      ? unproved('form', 'the signature covers the form as sent, as GitHub signs: is the provider right?')
      : unproved('form', 'Content-Type says form, but the body is not a form')
  if (!payload || !isMade(request, payload)) return undefined
  if (!isForm(lines)) return unproved('form', 'the body is a form, but Content-Type does not say so')
  const otherwise = scheme.events ? ', as Gitea signs: is the provider right?' : ', not the form as sent'
  return unproved('form', `the signature covers the JSON inside the form${otherwise}`)
}

/** Explains a body that a proxy or library parsed and wrote again, which changed the signed bytes. */
async function explainEncoding(request: Mismatch): Promise<Unproved | undefined> {
  const { payload, proof } = request
  const json = payload ?? request.body
  if (proof.algorithm === 'token' || !isUtf8(json)) return undefined
  for (const [original, how] of originals(Buffer.from(json), payload !== undefined)) {
    if (isMade(request, Buffer.from(original)))
      return unproved(
        how === AS_FORM ? 'form' : 're_encoded',
        `the body was re-encoded on its way: it was signed ${how}`,
      )
    await setImmediate()
  }
  return undefined
}

/** The most likely reason if nothing matches. */
function likeliestReason({ lines, body, payload, proof, secrets, scheme }: Mismatch): Unproved {
  const { length } = body
  const because = scheme.secretHint === undefined ? '' : `: ${scheme.secretHint}`
  if (proof.algorithm === 'token')
    return unproved('wrong_secret', `the token is not relay's secret${because}`)
  if (proof.key && !secrets.some((secret) => decodeKey(secret)))
    return unproved('secret_form', `relay's secret is not base64 after ${MARK}: was it copied whole?`)
  const announced = Number(singleValue(lines, 'content-length'))
  if (announced > length)
    return unproved('truncated', `the body is cut off: only ${length} of ${announced} bytes arrived`)
  if (isCutOff(Buffer.from(payload ?? body).toString()))
    return unproved('truncated', `the body seems cut off: its JSON is incomplete after ${length} bytes`)
  return unproved('wrong_secret', `signed with another secret, or the body was changed on its way${because}`)
}
