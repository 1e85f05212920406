import { createHmac, randomUUID } from 'node:crypto'
import type { Secret } from '../base/secret.js'
import { type Header, indexHeaders, passedOn, spelledHeader } from '../http/headers.js'
import type { Recorded } from '../fixtures/fixture.js'
import { schemeOf } from '../codehost/schemes.js'
import type { WebhookScheme } from '../codehost/host.js'
import type { WebhookRequest } from '../webhook/intake.js'
import { isForm, provenBy, signedBytes } from '../webhook/signature.js'
import { type Edit, editBody } from './edit.js'

/** The part to corrupt after signing. */
export type Tamper = 'signature' | 'body'

export interface PrepareOptions {
  /** Undefined: nothing is signed. */
  readonly secret: Secret | undefined
  readonly edits?: readonly Edit[]
  readonly tamper?: Tamper | undefined
}

/** A header with the id of a delivery, of any provider. */
const DELIVERY = /^x-[a-z]+-delivery$/i
/** A header with a signature, of any provider. */
const SIGNATURE = /^x-[a-z]+-signature(?:-256)?$/i

/**
 * The request for a recorded delivery. Keeps the recorded bytes and signature if the secret made that signature; otherwise signs
 * it as its provider does. Adds the headers that a hand-written fixture lacks.
 * @throws RelayError `usage` as {@link editBody}
 */
export function prepare(recorded: Recorded, { secret, edits = [], tamper }: PrepareOptions): WebhookRequest {
  const scheme = schemeOf(recorded.provider)
  const headers = complete(recorded, scheme)
  const index = indexHeaders(headers)
  const form = isForm(index)
  const style = scheme.style(recorded.event)
  const body = edits.length > 0 ? editBody(recorded.body, edits, { style, form }) : recorded.body
  const isSigned = !secret || provenBy(index, body, { scheme, secrets: { current: secret } })
  const lines = isSigned
    ? headers
    : signAgain(headers, secret, signedBytes(index, body, scheme) ?? body, recorded)
  if (tamper === 'signature') return { headers: lines.map(corrupted), body }
  return { headers: lines, body: tamper === 'body' ? corruptedBody(body) : body }
}

/** The request with a new delivery id. Ids are not signed. */
export function withFreshId({ headers, body }: WebhookRequest): WebhookRequest {
  const id = randomUUID()
  return { headers: headers.map(([name, value]) => [name, DELIVERY.test(name) ? id : value]), body }
}

/** The delivery id of a request. */
export function deliveryId({ headers }: Pick<WebhookRequest, 'headers'>): string {
  return headers.find(([name]) => DELIVERY.test(name))?.[1] ?? ''
}

function complete(recorded: Recorded, { eventHeader, idHeaders }: WebhookScheme): Header[] {
  const headers = passedOn(recorded.headers)
  const has = (wanted: RegExp): boolean => headers.some(([name]) => wanted.test(name))
  return [
    ...headers,
    ...(has(/^content-type$/i) ? [] : [['Content-Type', 'application/json'] as const]),
    ...(has(/^x-[a-z]+-event$/i) ? [] : [[spelledHeader(eventHeader), recorded.event] as const]),
    ...(has(DELIVERY) ? [] : [[spelledHeader(idHeaders[0]), recorded.deliveryId] as const]),
  ]
}

/** Signs every signature header present, and those that the provider always sends; SHA-1 only if it was present. */
function signAgain(
  headers: readonly Header[],
  secret: Secret,
  bytes: Uint8Array,
  { provider, event, deliveryId }: Recorded,
): Header[] {
  const always = Object.entries(schemeOf(provider).headers(event, deliveryId, bytes, secret))
  const own = always.filter(([name]) => SIGNATURE.test(name))
  const others = headers.flatMap(([name]): Header[] => {
    const key = name.toLowerCase()
    if (!SIGNATURE.test(key) || own.some(([each]) => each.toLowerCase() === key)) return []
    const hmac = createHmac(key === 'x-hub-signature' ? 'sha1' : 'sha256', secret.reveal())
    const digest = hmac.update(bytes).digest('hex')
    return [[name, key === 'x-hub-signature' ? `sha1=${digest}` : digest]]
  })
  return [...own, ...others].reduce((lines, [name, value]) => withHeader(lines, name, value), [...headers])
}

/** Sets a header: replaces its first line and removes the others, or adds it at the end. */
function withHeader(headers: readonly Header[], name: string, value: string): Header[] {
  const isIt = ([each]: Header): boolean => each.toLowerCase() === name.toLowerCase()
  const first = headers.findIndex(isIt)
  if (first === -1) return [...headers, [name, value]]
  return headers.flatMap((line, at): Header[] =>
    at === first ? [[line[0], value]] : isIt(line) ? [] : [line],
  )
}

/** Changes the last digit of a signature. */
function corrupted([name, value]: Header): Header {
  return [name, SIGNATURE.test(name) ? value.slice(0, -1) + (value.endsWith('0') ? '1' : '0') : value]
}

/** Changes the last decimal digit, so that JSON stays JSON; without a digit, adds a space. */
function corruptedBody(body: Uint8Array): Uint8Array {
  const at = body.findLastIndex((byte) => byte >= 0x30 && byte <= 0x39)
  if (at === -1) return Buffer.concat([body, Buffer.from(' ')])
  const other = Uint8Array.from(body)
  other[at] = other[at] === 0x31 ? 0x32 : 0x31
  return other
}
