import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { formPayload } from '../base/bytes.js'
import { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { type HeaderLines, indexHeaders, only, spelledHeader } from '../http/headers.js'
import type { VerifiedBy } from '../journal/types.js'
import { parseJson } from '../json/parse.js'
import { endOfString } from '../json/text.js'
import { HUB_SIGNATURE } from '../codehost/hub-signature.js'
import { FORMS, writings } from './encodings.js'
import type { WebhookRequest } from './intake.js'
import { isForm, provenBy, type Sender, signedBytes } from './signature.js'

/** Why a signature does not match. */
export type Reason =
  | 'no_signature'
  | 'empty_signature'
  | 'repeated_signature'
  | 'malformed_signature'
  | 'only_sha1'
  | 'wrong_header'
  | 'secret_white_space'
  | 're_encoded'
  | 'form'
  | 'truncated'
  | 'wrong_secret'
  | 'unverifiable'

export interface Invalid {
  readonly valid: false
  readonly reason: Reason
  /** A sentence for the user. Contains no secret, no digest and nothing of the body. */
  readonly hint: string
}

export type Explanation = { readonly valid: true; readonly by: VerifiedBy } | Invalid

export function invalid(reason: Reason, hint: string): Invalid {
  return { valid: false, reason, hint }
}

/**
 * Whether a request is signed with one of the secrets, as intake decides it, and why not. The reason is proved with the
 * configured secrets if possible, otherwise it is the most likely one. Hashes a body that does not match a few dozen times, and lets
 * the event loop run in between.
 */
export async function explain({ headers, body }: WebhookRequest, sender: Sender): Promise<Explanation> {
  const lines = indexHeaders(headers)
  const by = provenBy(lines, body, sender)
  if (by) return { valid: true, by }
  const payload = isForm(lines) ? formPayload(body) : undefined
  const request = { lines, body, payload, signed: signedBytes(lines, body, sender.scheme) ?? body, sender }
  return (
    explainHeader(request) ??
    explainSecret(request) ??
    explainForm(request) ??
    (await explainEncoding(request)) ??
    likeliestReason(request)
  )
}

/** A request whose signature does not match. */
interface Mismatch {
  readonly lines: HeaderLines
  readonly body: Uint8Array
  /** The form's, if Content-Type says form. JSON text may contain something that looks like a form field. */
  readonly payload: Uint8Array | undefined
  /** The bytes that should have been signed; all of them if Content-Type says form but the body is not one. */
  readonly signed: Uint8Array
  readonly sender: Sender
}

/** Whether one of the secrets made this signature, by default the one in the header, of these bytes. */
function isSigned(
  { lines, sender: { scheme, secrets } }: Mismatch,
  bytes: Uint8Array,
  signature = only(lines, HUB_SIGNATURE),
): boolean {
  const header = (name: string): string | undefined =>
    name === HUB_SIGNATURE ? signature : only(lines, name)
  const { current, previous } = secrets
  return [current, previous].some((secret) => secret && scheme.verify(header, bytes, secret))
}

const HEADER = 'X-Hub-Signature-256'
const EXPECTED = `${HEADER}: sha256=<64 lower-case hex digits>`
const EMPTY = invalid('empty_signature', 'the signature is empty: the webhook has no secret at the code host')
/** A SHA-256 digest, with or without prefix: in hexadecimal, or in base64. */
const HEX = /^(?:sha-?256=)?([0-9a-f]{64})$/i
const BASE64 = /^(?:sha-?256=)?([\w+/-]{43})=?$/i

/** What is wrong with the signature header: missing, misplaced or malformed. Undefined if it is well-formed. */
function explainHeader(request: Mismatch): Invalid | undefined {
  // A proxy may have joined two lines into one.
  const [signature, second] = (request.lines.get(HUB_SIGNATURE) ?? []).flatMap((value) => value.split(','))
  if (signature === undefined) return explainAbsence(request)
  if (second !== undefined) return invalid('repeated_signature', `${HEADER} is given more than once`)
  if (/^(?:sha256=)?\s*$/i.test(signature)) return EMPTY
  if (/^sha1=/i.test(signature))
    return invalid('only_sha1', `${HEADER} holds a SHA-1 signature, expected ${EXPECTED}`)
  if (/^sha256=[0-9a-f]{64}$/.test(signature)) return undefined
  const [defect] = DEFECTS.find(([, form]) => form.test(signature)) ?? ['is malformed']
  const note = matchNote(request, normalize(signature))
  return invalid('malformed_signature', `${HEADER} ${defect}, expected ${EXPECTED}${note}`)
}

const DEFECTS = [
  ['lacks the prefix sha256=', /^[0-9a-f]{64}$/i],
  ['is in upper case', /^sha256=[0-9a-f]{64}$/i],
  ['is in base64', BASE64],
] as const

/** Headers with a bare digest, like `X-Gitea-Signature`. They are empty if the webhook has no secret. */
const DIGEST = /^x-(?!hub-)[a-z]+-signature$/

/** Code hosts send three at most, and each may cost a hash of the body. */
const MAX_OTHERS = 4
const MAX_NAME_LENGTH = 64

/** Looks for the signature in other headers. */
function explainAbsence(request: Mismatch): Invalid {
  const { lines, signed } = request
  const others = [...lines]
    .filter(([name]) => name.length <= MAX_NAME_LENGTH && /signature|hmac|digest|sha-?256/.test(name))
    .flatMap(([name, [value = '']]) => {
      const signature = normalize(value)
      return signature === undefined ? [] : [[name, signature] as const]
    })
    .slice(0, MAX_OTHERS)
  const found =
    others.find(([, signature]) => isSigned(request, signed, signature)) ??
    others.find(([name]) => name.includes('signature'))
  if (found) {
    const [name, signature] = found
    const note = matchNote(request, signature)
    return invalid('wrong_header', `the signature is in ${spelledHeader(name)}, expected ${EXPECTED}${note}`)
  }
  const legacy = lines.get('x-hub-signature')?.[0] ?? ''
  if (/^sha1=[0-9a-f]{40}$/i.test(legacy))
    return invalid('only_sha1', `there is only a SHA-1 signature (X-Hub-Signature), expected ${EXPECTED}`)
  if ([...lines].some(([name, [value]]) => value === '' && DIGEST.test(name))) return EMPTY
  return invalid('no_signature', `there is no ${HEADER}: does the webhook have a secret at the code host?`)
}

/** The signature in the form `sha256=…`. */
function normalize(value: string): string | undefined {
  const [, hex] = HEX.exec(value) ?? []
  if (hex !== undefined) return `sha256=${hex.toLowerCase()}`
  const [, base64] = BASE64.exec(value) ?? []
  return base64 === undefined ? undefined : `sha256=${Buffer.from(base64, 'base64').toString('hex')}`
}

function matchNote(request: Mismatch, signature: string | undefined): string {
  if (signature === undefined) return ''
  return isSigned(request, request.signed, signature)
    ? '; otherwise it is right'
    : '; it does not match the secret and the body either'
}

/** White space at either end of the secret that only one side has. Hashes the body at most 30 times for each secret. */
function explainSecret(request: Mismatch): Invalid | undefined {
  for (const [current, reason] of likelySecrets(request.sender.secrets))
    if (isSigned({ ...request, sender: { ...request.sender, secrets: { current } } }, request.signed))
      return reason
  return undefined
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
 * The secrets with other white space at their ends, the smallest changes first, and the reason if the sender has that one. None for
 * a secret of nothing but white space.
 */
export function* likelySecrets({
  current,
  previous = current,
}: WebhookSecrets): Generator<readonly [Secret, Invalid]> {
  for (const secret of new Set([current, previous])) {
    const text = secret.reveal()
    const bare = text.trim()
    if (bare === '') continue
    const [ownStart, ownEnd] = [text.slice(0, text.indexOf(bare)), text.slice(text.trimEnd().length)]
    for (const start of new Set([ownStart, ...STARTS]))
      for (const end of new Set([ownEnd, ...ENDS])) {
        const [startDiffers, endDiffers] = [start !== ownStart, end !== ownEnd]
        if (!startDiffers && !endDiffers) continue
        const added = [
          ...(startDiffers && start !== '' ? [`begins with ${NAMES[start]}`] : []),
          ...(endDiffers && end !== '' ? [`ends in ${NAMES[end]}`] : []),
        ].join(' and ')
        const sides = [...(startDiffers ? ['start'] : []), ...(endDiffers ? ['end'] : [])].join(' and ')
        const hint =
          added === ''
            ? `relay's secret has white space at its ${sides}, the sender's does not`
            : `the sender's secret ${added}, relay's does not`
        yield [new Secret(start + bare + end), invalid('secret_white_space', hint)]
      }
  }
}

/** Sender and relay disagree on whether the body is a form, or on which part of the form is signed. */
function explainForm(request: Mismatch): Invalid | undefined {
  const { lines, body } = request
  const payload = formPayload(body)
  if (isSigned(request, body))
    return payload
      ? invalid('form', 'the signature covers the form as sent, as GitHub signs: is the provider right?')
      : invalid('form', 'Content-Type says form, but the body is not a form')
  if (!payload || !isSigned(request, payload)) return undefined
  return isForm(lines)
    ? invalid('form', 'the signature covers the JSON inside the form, as Gitea signs: is the provider right?')
    : invalid('form', 'the body is a form, but Content-Type does not say so')
}

const RE_ENCODED = 'the body was re-encoded on its way: it was signed'

/** A proxy or library parsed the body and wrote it again, which changed the bytes that were signed. */
async function explainEncoding(request: Mismatch): Promise<Invalid | undefined> {
  const { payload } = request
  const json = payload ?? request.body
  if (!isUtf8(json)) return undefined
  for (const [original, reason] of originals(Buffer.from(json), payload !== undefined)) {
    if (isSigned(request, Buffer.from(original))) return reason
    await setImmediate()
  }
  return undefined
}

/** Growth that no real payload reaches, and characters that any may have. Indenting deeply nested JSON could fill the memory. */
const MAX_GROWTH = 8
const MIN_LIMIT = 65_536

/** What a body, or the payload of a form, may have been before it was changed. The smallest changes come first. */
function* originals(bytes: Buffer, inForm: boolean): Generator<readonly [original: string, Invalid]> {
  const text = bytes.toString()
  const as = (how: string): Invalid => invalid('re_encoded', `${RE_ENCODED} ${how}`)
  yield [`${text}\n`, as('with a newline at its end')]
  yield [text.trimEnd(), as('without white space at its end')]
  yield [text.replaceAll('\r\n', '\n'), as('with LF line ends')]
  yield [text.replaceAll(/\r?\n/g, '\r\n'), as('with CRLF line ends')]
  yield [text.replace(/^\uFEFF/, ''), as('without a byte order mark')]
  yield [`\uFEFF${text}`, as('with a byte order mark')]
  yield [Buffer.from(text, 'latin1').toString(), as('as UTF-8 but was read as Latin-1')]
  // Programs that send forms write their JSON compact.
  const inForms = new Set([text])
  try {
    const value = parseJson(bytes)
    for (const written of writings(value, Math.max(MAX_GROWTH * text.length, MIN_LIMIT))) {
      if (written.text === undefined) continue
      yield [written.text, as(`as ${written.name}`)]
      yield [`${written.text}\n`, as(`as ${written.name}, with a newline at its end`)]
      if (written.id === 'compact' || written.id === 'compact-upper') inForms.add(written.text)
    }
  } catch {
    // It is no JSON.
  }
  const form = inForm ? as('as a form in another encoding') : invalid('form', `${RE_ENCODED} as a form`)
  for (const json of inForms) for (const write of FORMS) yield [write(json), form]
}

/** The most likely reason if nothing matches. */
function likeliestReason({ lines, body, payload }: Mismatch): Invalid {
  const { length } = body
  const announced = Number(only(lines, 'content-length'))
  if (announced > length)
    return invalid('truncated', `the body is cut off: only ${length} of ${announced} bytes arrived`)
  if (isCutOff(Buffer.from(payload ?? body).toString()))
    return invalid('truncated', `the body seems cut off: its JSON is incomplete after ${length} bytes`)
  return invalid('wrong_secret', 'signed with another secret, or the body was changed on its way')
}

/** Whether the text ends inside an array or an object. */
function isCutOff(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '"') at = endOfString(text, at) - 1
    else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') depth--
  }
  return depth > 0
}
