import { createHmac, randomUUID } from 'node:crypto'
import type { Secret } from '../base/secret.js'
import type { Header } from '../journal/delivery.js'
import type { Recorded } from '../journal/fixture.js'
import { passedOn } from '../journal/headers.js'
import { formPayload, isForm } from '../webhook/form.js'
import { indexHeaders, only } from '../webhook/headers.js'
import type { WebhookRequest } from '../webhook/intake.js'
import { sign, verify } from '../webhook/signature.js'
import { type Edit, editBody } from './edit.js'
import { type Scheme, schemeOf, withHeader } from './scheme.js'

/** What may be spoilt after signing. */
export type Tamper = 'signature' | 'body'

export interface PrepareOptions {
  /** Without one nothing is signed. */
  readonly secret: Secret | undefined
  readonly edits?: readonly Edit[]
  readonly tamper?: Tamper | undefined
}

/** A header with the id of a delivery, of any provider. */
const DELIVERY = /^x-[a-z]+-delivery$/i
const SIGNATURE = /^x-(?:hub-signature(?:-256)?|(?:gitea|gogs|forgejo)-signature)$/i

/**
 * The request that delivers what was recorded. Bytes and signature are the recorded ones when that signature was made with the
 * secret; otherwise it is signed as its provider signs. What a hand-written fixture leaves out is added.
 * @throws RelayError `usage` as {@link editBody}
 */
export function prepare(recorded: Recorded, { secret, edits = [], tamper }: PrepareOptions): WebhookRequest {
  const scheme = schemeOf(recorded.provider)
  const headers = complete(recorded, scheme)
  const index = indexHeaders(headers)
  const form = isForm(index)
  const body = edits.length > 0 ? editBody(recorded.body, edits, { ...scheme, form }) : recorded.body
  const signed = form && scheme.formSignature === 'payload' ? (formPayload(body) ?? body) : body
  const given = only(index, 'x-hub-signature-256')
  const asItIs = !secret || verify(given, signed, { current: secret })
  const lines = asItIs ? headers : signedAnew(headers, scheme, secret, signed)
  if (tamper === 'signature') return { headers: lines.map(spoilt), body }
  return { headers: lines, body: tamper === 'body' ? otherBody(body) : body }
}

/** The same request as a delivery of its own. Ids are not signed. */
export function withFreshId({ headers, body }: WebhookRequest): WebhookRequest {
  const id = randomUUID()
  return { headers: headers.map(([name, value]) => [name, DELIVERY.test(name) ? id : value]), body }
}

/** The id a request is delivered with. */
export function deliveryId({ headers }: Pick<WebhookRequest, 'headers'>): string {
  return headers.find(([name]) => DELIVERY.test(name))?.[1] ?? ''
}

function complete(recorded: Recorded, { eventHeader, deliveryHeader }: Scheme): Header[] {
  const headers = passedOn(recorded.headers)
  const has = (wanted: RegExp): boolean => headers.some(([name]) => wanted.test(name))
  return [
    ...headers,
    ...(has(/^content-type$/i) ? [] : [['Content-Type', 'application/json'] as const]),
    ...(has(/^x-[a-z]+-event$/i) ? [] : [[eventHeader, recorded.event] as const]),
    ...(has(DELIVERY) ? [] : [[deliveryHeader, recorded.deliveryId] as const]),
  ]
}

/** Every signature that is there, and those the provider always sends; SHA-1 only where it was. */
function signedAnew(
  headers: readonly Header[],
  { digestHeaders }: Scheme,
  secret: Secret,
  bytes: Uint8Array,
): Header[] {
  const signature = sign(secret, bytes)
  const digest = signature.slice('sha256='.length)
  const sha1 = `sha1=${createHmac('sha1', secret.reveal()).update(bytes).digest('hex')}`
  let lines = withHeader(headers, 'X-Hub-Signature-256', signature)
  const there = lines.map(([name]) => name).filter((name) => SIGNATURE.test(name))
  for (const name of new Set([...there, ...digestHeaders])) {
    const key = name.toLowerCase()
    if (key === 'x-hub-signature-256') continue
    lines = withHeader(lines, name, key === 'x-hub-signature' ? sha1 : digest)
  }
  return lines
}

/** The last digit of a signature is another. */
function spoilt([name, value]: Header): Header {
  return [name, SIGNATURE.test(name) ? value.slice(0, -1) + (value.endsWith('0') ? '1' : '0') : value]
}

/** Its last decimal digit is another, which leaves JSON what it is; without one there is a space more. */
function otherBody(body: Uint8Array): Uint8Array {
  const at = body.findLastIndex((byte) => byte >= 0x30 && byte <= 0x39)
  if (at === -1) return Buffer.concat([body, Buffer.from(' ')])
  const other = Uint8Array.from(body)
  other[at] = other[at] === 0x31 ? 0x32 : 0x31
  return other
}
