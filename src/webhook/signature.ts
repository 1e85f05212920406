import { createHmac, timingSafeEqual } from 'node:crypto'

import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import type { VerifiedBy } from '../journal/delivery.js'

/** Which header holds it; all our providers send it. */
export const SIGNATURE_HEADER = 'x-hub-signature-256'

/** Exactly this, so that an empty digest, another algorithm or another spelling is never worth comparing. */
const SIGNATURE = /^sha256=([0-9a-f]{64})$/

/**
 * The value of `X-Hub-Signature-256` for these bytes: `sha256=` and 64 lower-case hex digits.
 * @see https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
 */
export function sign(secret: Secret | string, bytes: Uint8Array): string {
  return `sha256=${digest(secret, bytes).toString('hex')}`
}

/** Whether it has the form that {@link sign} gives, and is worth comparing. */
export function isSignature(text: string | undefined): text is string {
  return text !== undefined && SIGNATURE.test(text)
}

/**
 * Which of the secrets made this signature of these bytes; undefined when none did, or when `signature` is absent or
 * not of the form {@link sign} gives. The comparison takes the same time wherever the digests differ. An empty
 * secret, which anyone could sign with, fits nothing.
 */
export function verify(
  signature: string | undefined,
  bytes: Uint8Array,
  { current, previous }: WebhookSecrets,
): VerifiedBy | undefined {
  const [, hex] = SIGNATURE.exec(signature ?? '') ?? []
  if (hex === undefined) return undefined
  const claimed = Buffer.from(hex, 'hex')
  if (fits(claimed, bytes, current)) return 'current'
  return previous && fits(claimed, bytes, previous) ? 'previous' : undefined
}

function fits(claimed: Buffer, bytes: Uint8Array, secret: Secret): boolean {
  return secret.reveal() !== '' && timingSafeEqual(claimed, digest(secret, bytes))
}

function digest(secret: Secret | string, bytes: Uint8Array): Buffer {
  const key = typeof secret === 'string' ? secret : secret.reveal()
  return createHmac('sha256', key).update(bytes).digest()
}
