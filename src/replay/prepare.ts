import { createHmac, randomUUID } from 'node:crypto'
import type { Secret } from '../base/secret.js'
import { type WebhookScheme } from '../codehost/host.js'
import { schemeOf } from '../codehost/schemes.js'
import { type Header, indexHeaders, passedOn, spelledHeader } from '../http/headers.js'
import type { WebhookRequest } from '../webhook/intake.js'
import { isForm, provenBy, signedBytes } from '../webhook/signature.js'
import { type Edit, editBody } from './edit.js'
import type { Recorded } from './fixture.js'

/** The part to corrupt after signing. */
export type Tamper = 'signature' | 'body'

export interface PrepareOptions {
  /** Undefined: nothing is signed. */
  readonly secret: Secret | undefined
  readonly edits?: readonly Edit[]
  readonly tamper?: Tamper | undefined
}

/** Headers with the id of a delivery, with its event and with a signature, of any provider. */
const DELIVERY = /^x-[a-z]+-delivery$/i
const EVENT = /^x-[a-z]+-event$/i
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
  const kind = { form: isForm(index), style: scheme.style(recorded.event) }
  const body = edits.length > 0 ? editBody(recorded.body, edits, kind) : recorded.body
  const isSigned = !secret || provenBy(index, body, { scheme, secrets: { current: secret } })
  const lines = isSigned
    ? headers
    : signAgain(headers, secret, signedBytes(index, body, scheme) ?? body, recorded)
  // After signing, so that the signature no longer fits.
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
  const lacking = (wanted: RegExp, line: Header): Header[] =>
    headers.some(([name]) => wanted.test(name)) ? [] : [line]
  return [
    ...headers,
    ...lacking(/^content-type$/i, ['Content-Type', 'application/json']),
    ...lacking(EVENT, [spelledHeader(eventHeader), recorded.event]),
    ...lacking(DELIVERY, [spelledHeader(idHeaders[0]), recorded.deliveryId]),
  ]
}

/** Signs every signature header present, and those that the provider always sends; SHA-1 only if it was present. */
function signAgain(
  headers: readonly Header[],
  secret: Secret,
  bytes: Uint8Array,
  { provider, event, deliveryId }: Recorded,
): Header[] {
  const signatures = new Map<string, Header>()
  for (const [name, value] of Object.entries(schemeOf(provider).headers(event, deliveryId, bytes, secret)))
    if (SIGNATURE.test(name)) signatures.set(name.toLowerCase(), [name, value])
  for (const [name] of headers) {
    const key = name.toLowerCase()
    if (!SIGNATURE.test(key) || signatures.has(key)) continue
    const isSha1 = key === 'x-hub-signature'
    const digest = createHmac(isSha1 ? 'sha1' : 'sha256', secret.reveal())
      .update(bytes)
      .digest('hex')
    signatures.set(key, [name, isSha1 ? `sha1=${digest}` : digest])
  }
  // In the place and spelling of the first line with the name, without its others; the rest at the end.
  const lines = headers.flatMap(([name, value]): Header[] => {
    const key = name.toLowerCase()
    if (!SIGNATURE.test(key)) return [[name, value]]
    const signature = signatures.get(key)
    signatures.delete(key)
    return signature ? [[name, signature[1]]] : []
  })
  return [...lines, ...signatures.values()]
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
