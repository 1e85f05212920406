import { createHmac, timingSafeEqual } from 'node:crypto'
import { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { readContent } from './content.js'
import { isForm, type IndexedRequest } from './proving.js'
import {
  type Handshake,
  type HandshakeTemplate,
  isInBody,
  placeWords,
  type ValueLocation,
  valueAt,
} from './scheme.js'

// Handshakes: before a sender delivers to an address, and sometimes later, it asks whether the address is its user's.

/** Answer to a handshake. */
export interface HandshakeAnswer {
  readonly status: 200 | 204
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The secret that the handshake brings. */
  readonly secret?: Secret
}

/** A handshake with its answer, or the reason why it gets none. `forbidden`: another verify token; `bad_request`: its challenge. */
export type Handshaken = { readonly name: string } & (
  | { readonly answer: HandshakeAnswer }
  | { readonly refusal: { readonly kind: 'forbidden' | 'bad_request'; readonly reason: string } }
)

export interface HandshakeRequest extends IndexedRequest {
  readonly method: string
}

/** Largest body of a handshake in bytes. The longest known, of Event Grid and Twitch, have about 1,000. */
const MAX_BODY = 4096
/** Most characters of a challenge. */
export const MAX_CHALLENGE = 1024
/** Visible ASCII and spaces, as Microsoft Graph sends them, without what begins HTML. At most 1,024 characters. */
const CHALLENGE = /^(?![ ])[ !-;=?-~]{1,1024}(?<! )$/
/** A text whose HMAC proves no delivery: no body, which would need a brace, and no character that ends a time (`:`, `.`). */
const SIGNABLE = /^[\w+/=-]{1,256}$/

/**
 * Answers a request that is a handshake. Undefined: it is none.
 * @param isProved true if the secret proves the request now
 * @param sign signs a text as the sender signs deliveries. Undefined if the secret cannot
 */
export function answerHandshake(
  request: HandshakeRequest,
  handshakes: readonly Handshake[],
  { current, previous }: WebhookSecrets,
  isProved: () => boolean,
  sign: (secret: Secret, text: string) => string | undefined,
): Handshaken | undefined {
  if (request.body.byteLength > MAX_BODY) return undefined
  const handshake = handshakes.find((each) => isAsked(each, request) && (!each.isSigned || isProved()))
  if (!handshake) return undefined
  const { lines, query } = request
  const payload = readContent(request.body).value
  const valueOf = (place: ValueLocation | undefined): unknown =>
    place === undefined ? '' : valueAt(place, lines, payload, query)
  const { name, challenge: place, verifyToken: tokenPlace, answer, bringsSecret } = handshake
  const challenge = valueOf(place)
  const token = valueOf(tokenPlace)
  const secrets = previous ? [current, previous] : [current]
  if (tokenPlace !== undefined && !secrets.some((secret) => isEqual(token, verifyToken(secret)))) {
    const reason = `${placeWords(tokenPlace)} is not the verify token of this source`
    return { name, refusal: { kind: 'forbidden', reason } }
  }
  const form = handshake.form ?? (usesHmac(answer) ? SIGNABLE : CHALLENGE)
  if (place !== undefined && (typeof challenge !== 'string' || !form.test(challenge))) {
    const reason = `${placeWords(place)} is no challenge that relay repeats: too long, or with other characters than challenges have`
    return { name, refusal: { kind: 'bad_request', reason } }
  }
  const text = String(challenge)
  return {
    name,
    answer: {
      ...filled(answer, text, current, sign(current, text) ?? ''),
      ...(bringsSecret && { secret: new Secret(text) }),
    },
  }
}

/**
 * Text to enter as the verify token at a sender that asks for one. It is derived from the secret, so that nothing more
 * has to be stored, and it does not reveal the secret.
 */
export function verifyToken(secret: Secret): string {
  return createHmac('sha256', secret.reveal()).update('relay: verify token').digest('hex').slice(0, 32)
}

/** True if anyone who asks can have a text signed with the secret. */
export function answersAnyone(handshakes: readonly Handshake[]): boolean {
  return handshakes.some(({ answer, isSigned }) => !isSigned && usesHmac(answer))
}

/**
 * True for a text that anyone could have had signed by asking for a handshake. It proves no delivery, although a delivery
 * with this text would have the same signature.
 */
export function isAnswered(text: string, handshakes: readonly Handshake[]): boolean {
  return handshakes.some(
    ({ answer, isSigned, form = SIGNABLE }) => !isSigned && usesHmac(answer) && form.test(text),
  )
}

/** True if the answer needs the secret: to make an HMAC, or to compare the verify token. */
export function needsSecret({ answer, verifyToken: token }: Handshake): boolean {
  return token !== undefined || usesHmac(answer)
}

function usesHmac(answer: HandshakeTemplate): boolean {
  return /\{(?:hmac|signature)/.test(JSON.stringify(answer))
}

function isAsked(handshake: Handshake, request: HandshakeRequest): boolean {
  const { method, when = {}, lacks = [], only, challenge } = handshake
  if (method !== request.method || (handshake.isForm && !isForm(request.lines))) return false
  const conditions = Object.entries(when)
  const isIn = (place: ValueLocation): boolean =>
    valueAt(place, request.lines, undefined, request.query) !== undefined
  const outside = [...conditions.map(([place]) => place), ...(challenge === undefined ? [] : [challenge])]
  if (!outside.filter((place) => !isInBody(place)).every(isIn)) return false
  const inBody = outside.filter(isInBody)
  // The bytes are searched first, since nearly all requests are deliveries, which are not parsed before their proof.
  const marks = [...inBody.flatMap((place) => place.split('.').at(-1) ?? []), ...(only ?? [])]
  const bytes = Buffer.from(request.body.buffer, request.body.byteOffset, request.body.byteLength)
  if (!marks.every((mark) => bytes.includes(mark))) return false
  const payload = marks.length === 0 ? undefined : readContent(request.body).value
  const valueOf = (place: ValueLocation): unknown => valueAt(place, request.lines, payload, request.query)
  if (!conditions.every(([place, value]) => valueOf(place) === value)) return false
  if (challenge !== undefined && valueOf(challenge) === undefined) return false
  if (lacks.some((place) => valueOf(place) !== undefined)) return false
  return only === undefined || isOnly(payload, only)
}

function isOnly(payload: unknown, names: readonly string[]): boolean {
  if (typeof payload !== 'object' || payload === null) return false
  const keys = Object.keys(payload)
  return keys.length > 0 && keys.every((key) => names.includes(key))
}

function filled(
  { headers = {}, json, text = 'ok', status = 200 }: HandshakeTemplate,
  challenge: string,
  secret: Secret,
  signature: string,
): HandshakeAnswer {
  const hmac = (encoding: 'hex' | 'base64'): string =>
    createHmac('sha256', secret.reveal()).update(challenge).digest(encoding)
  const fill = <Value>(value: Value): Value | string =>
    typeof value !== 'string'
      ? value
      : value
          .replaceAll('{challenge}', () => challenge)
          .replaceAll('{hmac}', () => hmac('hex'))
          .replaceAll('{hmac-base64}', () => hmac('base64'))
          .replaceAll('{signature}', () => signature)
  const each = <Value>(values: Readonly<Record<string, Value>>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, fill(value)]))
  if (status === 204) return { status, headers: {}, body: '' }
  const type = json ? 'application/json' : 'text/plain'
  return {
    status,
    headers: {
      'Content-Type': type,
      'X-Content-Type-Options': 'nosniff',
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fill(value)])),
    },
    body: json ? JSON.stringify(each(json)) : fill(text),
  }
}

/** Compares in constant time. */
function isEqual(given: unknown, expected: string): boolean {
  const [one, other] = [Buffer.from(typeof given === 'string' ? given : ''), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}
