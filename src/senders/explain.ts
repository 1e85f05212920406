import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { firstPayload, isFormBody } from '../http/forms.js'
import { RelayError } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import { indexHeaders, singleValue, canonicalHeaderName } from '../http/headers.js'
import type { VerifiedBy } from '../journal/types.js'
import { isCutOff } from '../json/text.js'
import {
  encodeDigest,
  hasPlace,
  proofIn,
  isSigned,
  proofsFor,
  signaturesIn,
  staleness,
  valueOf,
} from './proof.js'
import { headerOf, isInBody, placeWords, type Proof, valueAt, type WebhookScheme } from './scheme.js'
import { decodeKey, keyOf } from './secrets.js'
import { HUB_PROOF } from './table/row.js'
import { givenUrl, hasDigest, isWellFormed, type SignedRequest, textParts } from './template.js'
import { timeWords, unitOf } from './time.js'
import { AS_FORM, originals } from './encodings.js'
import { readContent, unreadableFormat } from './content.js'
import {
  ALGORITHMS,
  algorithmWords,
  type HashAlgorithm,
  type KeyAlgorithm,
  type KeyKind,
  kindOfKey,
  sizesOf,
  usesKeys,
} from './algorithms.js'
import { jwtStaleness } from './jwt.js'
import { isPublicKey, keyDefect } from './keys.js'
import { LACKS_MARK, likelySecrets, MARK, otherKeys } from './likely-secrets.js'
import type { WebhookRequest } from './request.js'
import { type Unproved, unproved } from './unproved.js'
import {
  type IndexedRequest,
  isForm,
  signableOf,
  type SigningConfig,
  findToken,
  verifySignature,
} from './proving.js'

export type SignatureExplanation = { readonly valid: true; readonly by: VerifiedBy } | Unproved

/**
 * Explains whether one of the secrets proves a request, as intake decides it, and why not. If possible the reason is
 * verified with the configured secrets, otherwise it is the most likely one. Hashes a body that does not match a few
 * dozen times, and lets the event loop run in between.
 * @param now arrival in milliseconds since 1970-01-01 UTC. Undefined if unknown: then any signed time is accepted.
 */
export async function explainSignature(
  { headers, ...given }: WebhookRequest,
  sender: SigningConfig,
  now: number | undefined,
): Promise<SignatureExplanation> {
  const lines = indexHeaders(headers)
  const { body } = given
  const proven = verifySignature({ ...given, lines }, sender)
  if (proven) {
    const { by, proof } = proven
    const isTimed = proof?.time !== undefined && now !== undefined
    const stale = isTimed ? staleness(proof, { lines, payload: readContent(body).value }, now) : undefined
    return stale === undefined ? { valid: true, by } : unproved('stale', stale)
  }
  const { scheme } = sender
  const ofToken = await explainToken({ ...given, lines }, sender, now)
  if (ofToken) return ofToken
  const { current, previous = current } = sender.secrets
  const secrets = [...new Set([current, previous])].filter((secret) => secret.reveal() !== '')
  const proofs = secrets.flatMap((secret) => proofsFor(secret, scheme))
  const signable = signableOf({ ...given, lines }, scheme) ?? { ...given, lines, signed: body }
  const proof = proofIn(signable, proofs) ?? proofs[0] ?? scheme.proofs[0] ?? HUB_PROOF
  const payload = isForm(lines) ? firstPayload(body) : undefined
  const signatures = signaturesIn(signable, proof)
  const request = { ...signable, body, form: payload, scheme, secrets, proof, signatures }
  return (
    explainHeader(request) ??
    explainDigest(request) ??
    explainParts(request) ??
    explainKeyName(request) ??
    explainSecret(request) ??
    explainTemplate(request) ??
    explainForm(request) ??
    (await explainEncoding(request)) ??
    likeliestReason(request)
  )
}

/** Explains a request that a token proves. Undefined for a scheme without one, and for a request that has none. */
async function explainToken(
  request: IndexedRequest,
  config: SigningConfig,
  now: number | undefined,
): Promise<SignatureExplanation | undefined> {
  const found = findToken(request, config)
  if (!found) return undefined
  try {
    const verdict = await found.verdict()
    const stale = now === undefined ? undefined : jwtStaleness(found.token, found.jwt, now)
    if (!('by' in verdict)) return verdict
    return stale === undefined ? { valid: true, by: verdict.by } : unproved('stale', stale)
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    return unproved('unreachable_key', `the keys of the sender could not be fetched: ${error.detail}`)
  }
}

/** A request that none of the secrets proves. */
interface Mismatch extends SignedRequest {
  readonly body: Uint8Array
  /** Payload of the form, if Content-Type says form. JSON text may contain something that looks like a form field. */
  readonly form: Uint8Array | undefined
  readonly scheme: WebhookScheme
  readonly secrets: readonly Secret[]
  /** Proof that the request should have. */
  readonly proof: Proof
  /** Well-formed signatures at the proof's place. */
  readonly signatures: readonly string[]
}

/** True if one of the secrets made one of the signatures of these bytes. */
function isMade({ secrets, proof, signatures, ...request }: Mismatch, signed: Uint8Array): boolean {
  return secrets.some((secret) => isSigned(signatures, secret, { ...request, signed }, proof))
}

/** Describes the expected header: `X-Hub-Signature-256: sha256=<64 lower-case hex digits>`. */
function expected({ place, prefix, algorithm, encoding, time, separator = ',' }: Proof): string {
  const digest =
    algorithm === 'token'
      ? '<the secret>'
      : algorithm === 'jwt'
        ? '<JWT>'
        : `<${digestWords(algorithm, encoding)}>`
  const [header, key] = time?.place.split('#') ?? []
  const isShared = key !== undefined && header === headerOf(place)
  const pair = isShared ? `${/^\d+$/.test(key) ? '' : `${key}=`}<time>${separator}` : ''
  return `expected ${placeWords(place)}: ${pair}${prefix}${digest}`
}

function digestWords(algorithm: HashAlgorithm | KeyAlgorithm, encoding: Proof['encoding']): string {
  const { min, max } = sizesOf(algorithm)
  const count = (factor: number): string =>
    min === max ? String(factor * min) : `${factor * min} to ${factor * max}`
  if (encoding === 'hex') return `${count(2)} lower-case hex digits`
  if (encoding === 'HEX') return `${count(2)} upper-case hex digits`
  return `${encoding} of ${count(1)} bytes`
}

/** Name of the party with the webhook's settings. */
function hostOf({ scheme }: Mismatch): string {
  return scheme.family?.name ?? 'the sender'
}

/** Explains a signature header that is missing, misplaced or malformed. */
function explainHeader(request: Mismatch): Unproved | undefined {
  const { lines, proof, signatures } = request
  const { place, prefix, separator, algorithm, encoding, time, each, inLines } = proof
  const header = headerOf(place)
  const name = placeWords(place)
  if (each !== undefined)
    return signatures.length > 0
      ? undefined
      : unproved(
          'no_signature',
          `${each} is no list of items that each have ${name}: does the webhook have a secret at ${hostOf(request)}?`,
        )
  const given = header === undefined || inLines ? [valueOf(request, proof) ?? []].flat() : lines.get(header)
  if (!given || given.length === 0) return explainAbsence(request)
  // A proxy may have joined two lines into one.
  const isSingle = separator === undefined && algorithm !== 'token'
  const [value = '', second] = isSingle ? given.flatMap((line) => line.split(',')) : given
  if (second !== undefined && given.length > 1)
    return unproved('repeated_signature', `${name} is given more than once`)
  if (signatures.length > 0) return undefined
  const other = explainSeparator(request, given[0] ?? '')
  if (other) return other
  if (second !== undefined) return unproved('repeated_signature', `${name} is given more than once`)
  const [, pair = place] = time?.place.split('#') ?? []
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
  const isOtherwise =
    found !== undefined && found[1] !== encoding ? `is in ${ENCODING_WORDS[found[1]]}` : 'is malformed'
  const defect =
    found && !isBegun(signature) && found[1] === encoding ? `lacks the prefix ${prefix.trim()}` : isOtherwise
  const elsewise = found ? undefined : explainAlgorithm(request, signature)
  return (
    elsewise ??
    unproved('malformed_signature', `${name} ${defect}, ${expected(proof)}${matchNote(request, found)}`)
  )
}

const ENCODING_WORDS: Readonly<Record<Proof['encoding'], string>> = {
  hex: 'hex',
  HEX: 'upper case',
  base64: 'base64',
  base64url: 'base64url',
}

const SEPARATOR_WORDS = [
  [';', 'a semicolon', ';'],
  [',', 'a comma', ','],
  [' ', 'a space', 'space'],
] as const

/** Explains a header whose parts are separated by something else than the scheme says. */
function explainSeparator(request: Mismatch, value: string): Unproved | undefined {
  const { proof } = request
  if (proof.algorithm === 'token') return undefined
  for (const [separator, words, text] of SEPARATOR_WORDS) {
    if (separator === proof.separator || !value.includes(separator)) continue
    const other = { ...proof, separator }
    const signatures = signaturesIn(request, other)
    if (signatures.length === 0) continue
    const note = isMade({ ...request, proof: other, signatures }, request.signed)
      ? '; otherwise it is right'
      : ''
    return unproved(
      'malformed_signature',
      `the parts of ${placeWords(proof.place)} are separated by ${words}: write separator=${text}${note}`,
    )
  }
  return undefined
}

/** Explains a signature that has the length of another algorithm's. */
function explainAlgorithm(request: Mismatch, signature: string): Unproved | undefined {
  const { proof } = request
  if (proof.algorithm === 'token' || proof.algorithm === 'jwt' || usesKeys(proof.algorithm)) return undefined
  for (const algorithm of ALGORITHMS) {
    const other = { ...proof, algorithm }
    const found = algorithm === proof.algorithm ? undefined : readSignature(signature, other)
    if (!found) continue
    const isRight = isMade({ ...request, proof: other, signatures: [found[0]] }, request.signed)
    const note = isRight ? '; otherwise it is right' : ''
    const long = `${placeWords(proof.place)} is as long as one of ${algorithmWords(algorithm)}`
    return unproved('malformed_signature', `${long}, ${expected(proof)}${note}`)
  }
  return undefined
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
  const name = placeWords(proof.place)
  if (proof.jwt?.isBody)
    return unproved(
      'malformed_signature',
      'the body is no token (JWT), as which this sender sends all it has to say',
    )
  const format = isInBody(proof.place) ? unreadableFormat(request.body) : undefined
  if (format !== undefined)
    return unproved('no_signature', `the body is ${format}, in which relay cannot read ${name}`)
  const other = scheme.proofs.find((each) => each.secretForm && hasPlace(request, each))
  if (other) {
    const signatures = other.algorithm === 'token' ? [] : signaturesIn(request, other)
    if (isMade({ ...request, proof: other, signatures }, signed)) return unproved('secret_form', LACKS_MARK)
    const [has, needs] = [other, proof].map((each) => (each.algorithm === 'token' ? 'token' : 'signature'))
    const what = `the request has a ${has} in ${placeWords(other.place)}, but relay's secret is for a ${needs}`
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
    return unproved(
      'unverifiable',
      `there is no ${barely(name)}, which relay never stores: does the sender send it?`,
    )
  if (usesKeys(proof.algorithm))
    return unproved(
      'no_signature',
      `there is no ${barely(name)}, which the sender always sends: is it from there?`,
    )
  return unproved(
    'no_signature',
    `there is no ${barely(name)}: does the webhook have a secret at ${hostOf(request)}?`,
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
  if (algorithm === 'jwt') return undefined
  const { min, max } = sizesOf(algorithm)
  const isBetween = (length: number, [least, most]: readonly [number, number]): boolean =>
    length >= least && length <= most
  const base64 = [Math.ceil((4 * min) / 3), Math.ceil((4 * max) / 3)] as const
  // `v1,…` is two words.
  for (const word of text.split(/[\s,;]+/, 8)) {
    const digest = word.replace(/^[a-z][\w-]{0,15}=(?=.)/i, '').replace(/={1,2}$/, '')
    const isHex = isBetween(digest.length, [2 * min, 2 * max]) && /^(?:[\da-f]{2})+$/i.test(digest)
    if (!isHex && !(isBetween(digest.length, base64) && /^[\w+/-]+$/.test(digest))) continue
    const own = isHex ? (/[A-F]/.test(digest) ? 'HEX' : 'hex') : base64Form(digest, encoding)
    return [prefix + encodeDigest(Buffer.from(digest, isHex ? 'hex' : 'base64'), encoding), own]
  }
  return undefined
}

/** Alphabet of a digest in base64: the proof's, where both are possible. */
function base64Form(digest: string, encoding: Proof['encoding']): 'base64' | 'base64url' {
  if (/[-_]/.test(digest)) return 'base64url'
  return encoding === 'base64url' && !/[+/]/.test(digest) ? 'base64url' : 'base64'
}

function matches(request: Mismatch, found: Found | undefined): boolean {
  return found !== undefined && isMade({ ...request, signatures: [found[0]] }, request.signed)
}

function matchNote(request: Mismatch, found: Found | undefined): string {
  if (!found) return ''
  const { algorithm } = request.proof
  const key = usesKeys(algorithm) ? 'the key' : 'the secret'
  const covered = algorithm === 'token' ? key : `${key} and the body`
  return matches(request, found) ? '; otherwise it is right' : `; it does not match ${covered} either`
}

/** Explains a digest that belongs to another body, or that is missing although the body is no form. */
function explainDigest({ scheme, proof, ...request }: Mismatch): Unproved | undefined {
  const { digest } = scheme.proofs.find((each) => each.digest !== undefined) ?? {}
  if (digest === undefined) return undefined
  const name = placeWords(digest)
  const value = valueAt(digest, request.lines, undefined, request.query)
  if (value === undefined)
    return isFormBody(request.body)
      ? undefined
      : unproved(
          'malformed_part',
          `there is no ${barely(name)}, which the sender adds for a body that is no form`,
        )
  if (proof.digest === undefined || hasDigest(request, proof)) return undefined
  return unproved('changed_body', `${name} is the digest of another body: the body was changed on its way`)
}

/** Names a place, to follow the word "no". */
function barely(name: string): string {
  return name.replace(/^the /, '')
}

/** Explains a secret of another key than that of the signatures, by the key name before each signature. */
function explainKeyName({ proof, secrets, signatures }: Mismatch): Unproved | undefined {
  const { keyName } = proof
  if (keyName === undefined) return undefined
  const names = secrets.flatMap((secret) => keyOf(secret, undefined, true)?.name ?? [])
  if (names.length === 0)
    return unproved('secret_form', "relay's secret has no name of its key: it is written as name:key")
  return signatures.some((each) => names.some((name) => each.startsWith(name + keyName)))
    ? undefined
    : unproved(
        'wrong_secret',
        "it is signed with another key than relay's: none of its signatures has the name of that",
      )
}

/** Explains problems with the other signed parts: the id, the time, the address. */
function explainParts(request: Mismatch): Unproved | undefined {
  const { proof } = request
  for (const each of textParts(request, proof)) {
    const { part, place, value, separator } = each
    if (isWellFormed(each, request, proof) && (value !== undefined || part !== '{timestamp}')) {
      if (part === '{id}' && value === undefined) return missingPart(place ?? part)
      continue
    }
    if (part === '{url}' || part === '{path}') return unproved('malformed_part', addressDefect(request))
    if (value === undefined) return missingPart(place ?? part)
    const unit = part === '{timestamp}' ? unitOf(value) : undefined
    const isShared = part !== '{timestamp}' && separator !== '' && value.includes(separator)
    const contains = `contains ${JSON.stringify(separator)}, which separates it from what follows`
    const isOther = unit !== undefined && proof.time !== undefined
    const inUnit = isOther ? `is ${timeWords(unit)}, expected ${timeWords(proof.time.unit)}` : 'is malformed'
    const name = placeWords(place ?? part)
    return unproved('malformed_part', `${name}, which the signature covers, ${isShared ? contains : inUnit}`)
  }
  return undefined
}

function missingPart(place: string): Unproved {
  return unproved(
    'malformed_part',
    `${placeWords(place)}, which the signature covers, is missing or given more than once`,
  )
}

function addressDefect({ query, ...request }: Mismatch): string {
  if (givenUrl({ ...request, query }, request.proof) === undefined)
    return 'the signature covers the address, which relay does not know: write the one that the sender was given as url='
  return `the signature covers the address, and the request has the query ?${query ? '…' : ''}, which the sender was not given: write the whole address as url=`
}

/**
 * Tries secrets with other white space at their ends, and other keys derived from them. Hashes the body at most 35
 * times for each secret.
 */
function explainSecret(request: Mismatch): Unproved | undefined {
  const { secrets, signed, proof } = request
  const { algorithm } = proof
  if (usesKeys(algorithm)) return explainKey(secrets, kindOfKey(algorithm))
  if (secrets.every(isPublicKey))
    return unproved(
      'secret_form',
      "relay's secret is a public key, with which everybody could sign, and the scheme needs a secret",
    )
  for (const [secret, reason] of secrets.flatMap((each) => [...likelySecrets(each)]))
    if (isMade({ ...request, secrets: [secret] }, signed)) return reason
  for (const [secret, tried, hint] of secrets.flatMap((each) => [...otherKeys(each, proof)]))
    if (isMade({ ...request, secrets: [secret], proof: tried }, signed)) return unproved('secret_form', hint)
  return undefined
}

/** Explains why the texts are no public key of the right kind. Undefined if one of them is. */
function explainKey(secrets: readonly Secret[], kind: KeyKind): Unproved | undefined {
  const defects = secrets.map((secret) => keyDefect(secret, kind))
  const [first] = defects
  if (first === undefined || defects.includes(undefined)) return undefined
  return unproved('secret_form', `relay's key is not the ${kind} public key of the sender: it is ${first}`)
}

/** Templates of the text that senders sign. */
const TEMPLATES = [
  '{body}',
  '{timestamp}.{body}',
  '{timestamp}:{body}',
  'v0:{timestamp}:{body}',
  '{timestamp}{body}',
  '{body}{timestamp}',
  '{url}{body}',
  '{body}{url}',
  '{url}{fields}',
  '{method}{url}{body}{timestamp}',
]

/** Explains a signature that covers other parts than the scheme's, such as the body without the time. */
function explainTemplate(request: Mismatch): Unproved | undefined {
  const { lines, proof, signed, scheme } = request
  const timeOf = (name: string) => unitOf(singleValue(lines, name) ?? '')
  const isOfTime = (name: string): boolean =>
    name.length <= MAX_NAME_LENGTH && /time/.test(name) && timeOf(name) !== undefined
  const own = proof.time && !isInBody(proof.time.place) ? proof.time.place : undefined
  const place = own ?? [...lines.keys()].find(isOfTime)
  const unit = own === undefined ? timeOf(place ?? '') : proof.time?.unit
  const time = place === undefined ? {} : { time: { place, unit: unit ?? 's', tolerance: 0 } as const }
  for (const template of TEMPLATES) {
    if (template === proof.signed || (place === undefined && template.includes('{timestamp}'))) continue
    // The form of a code host's sender is explained by explainForm.
    if (template.includes('{fields}') && scheme.family) continue
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
  const otherwise = scheme.family ? ', as Gitea signs: is the provider right?' : ', not the form as sent'
  return unproved('form', `the signature covers the JSON inside the form${otherwise}`)
}

/** Gitea's name in a style, which says nothing about another sender. */
const OF_GITEA = /,? as (?:newer )?Gitea(?: 1\.15)? writes it/

/** Explains a body that a proxy or library parsed and wrote again, which changed the signed bytes. */
async function explainEncoding(request: Mismatch): Promise<Unproved | undefined> {
  const { form: payload, proof, scheme, lines } = request
  const json = payload ?? request.body
  if (proof.algorithm === 'token' || !isUtf8(json)) return undefined
  const { value } = readContent(json)
  const event = scheme.event
    .map((place) => valueAt(place, lines, value))
    .find((each) => typeof each === 'string')
  for (const [original, named] of originals(
    Buffer.from(json),
    payload !== undefined,
    scheme.style(event ?? ''),
  )) {
    const how = scheme.family ? named : named.replace(OF_GITEA, '')
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
function likeliestReason({ lines, body, form: payload, proof, secrets, scheme }: Mismatch): Unproved {
  const { length } = body
  const because = scheme.secretHint === undefined ? '' : `: ${scheme.secretHint}`
  if (proof.algorithm === 'token')
    return unproved('wrong_secret', `the token is not relay's secret${because}`)
  const { key } = proof
  if (key === 'hex' && !secrets.some((secret) => decodeKey(secret, key)))
    return unproved('secret_form', "relay's secret is not hex, which key=hex says: was it copied whole?")
  if (key && !secrets.some((secret) => decodeKey(secret, key)))
    return unproved('secret_form', `relay's secret is not base64 after ${MARK}: was it copied whole?`)
  const announced = Number(singleValue(lines, 'content-length'))
  if (announced > length)
    return unproved('truncated', `the body is cut off: only ${length} of ${announced} bytes arrived`)
  if (isCutOff(Buffer.from(payload ?? body).toString()))
    return unproved('truncated', `the body seems cut off: its JSON is incomplete after ${length} bytes`)
  const what = usesKeys(proof.algorithm) ? 'key' : 'secret'
  const changed = proof.each === undefined ? 'the body' : `a signed member of ${proof.each}`
  return unproved(
    'wrong_secret',
    `signed with another ${what}, or ${changed} was changed on its way${because}`,
  )
}
