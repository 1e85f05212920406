import { randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { canonicalHeaderName, type Header, indexHeaders, singleValue } from '../http/headers.js'
import { CertificateSender, type Signed } from './certificate-sender.js'
import type { IndexedRequest } from './proving.js'
import type { WebhookRequest } from './request.js'
import { type Unproved, unproved } from './unproved.js'

const ID = 'paypal-transmission-id'
const TIME = 'paypal-transmission-time'
const SIGNATURE = 'paypal-transmission-sig'
const ADDRESS = 'paypal-cert-url'
const ALGORITHM = 'paypal-auth-algo'

/**
 * PayPal: a signature of the transmission's id and time, the webhook's id and the CRC-32 of the body. The secret of a source
 * is the id of its webhook. Another body with the same CRC-32 is easy to find, without PayPal's key. So anyone who has one
 * delivery can send another body under its id.
 * @see https://developer.paypal.com/api/rest/webhooks/rest/#verify-webhook-signature
 */
export class PayPalSender extends CertificateSender {
  protected readonly hosts = /^api(?:-m)?(?:\.sandbox)?\.paypal\.com$/
  protected readonly ownerWords = 'webhook id'

  protected signedOf({ lines, body }: IndexedRequest): Signed | Unproved {
    const all = [ID, TIME, SIGNATURE, ADDRESS].map((name) => [name, singleValue(lines, name)] as const)
    const [lacking] = all.find(([, value]) => value === undefined) ?? []
    if (lacking !== undefined)
      return unproved(
        'no_signature',
        `there is no ${canonicalHeaderName(lacking)}, or several: is it from PayPal?`,
      )
    const [id = '', time = '', signature = '', address = ''] = all.map(([, value]) => value)
    const algorithm = singleValue(lines, ALGORITHM)
    if (algorithm !== 'SHA256withRSA')
      return unproved('wrong_algorithm', 'its PAYPAL-AUTH-ALGO is not SHA256withRSA')
    // No part contains the separator.
    if (/[|]/.test(id + time)) return unproved('malformed_part', 'its transmission has a | in its id or time')
    return {
      signature: Buffer.from(signature, 'base64'),
      algorithm: 'rsa-sha256',
      address,
      text: (secret) => textOf(id, time, secret, body),
    }
  }

  override sign(request: WebhookRequest, secrets: WebhookSecrets, now: number): WebhookRequest {
    const lines = indexHeaders(request.headers)
    const id = singleValue(lines, ID) ?? randomUUID()
    const time = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
    const text = textOf(id, time, secrets.current, request.body)
    const signature = this.ownSignature(secrets, text, 'rsa-sha256').toString('base64')
    const made: readonly Header[] = [
      [ID, id],
      [TIME, time],
      [ALGORITHM, 'SHA256withRSA'],
      [ADDRESS, singleValue(lines, ADDRESS) ?? 'https://api.paypal.com/'],
      [SIGNATURE, signature],
    ]
    const names = new Set(made.map(([name]) => name))
    const kept = request.headers.filter(([name]) => !names.has(name.toLowerCase()))
    return {
      ...request,
      headers: [...kept, ...made.map(([name, value]): Header => [name.toUpperCase(), value])],
    }
  }
}

function textOf(id: string, time: string, secret: Secret, body: Uint8Array): string {
  return `${id}|${time}|${secret.reveal()}|${crc32(body)}`
}
