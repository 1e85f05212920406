import { createHmac, timingSafeEqual } from 'node:crypto'

import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { atOnce, type Steps } from '../base/turns.js'
import type { VerifiedBy } from '../journal/types.js'

/** The header that holds the signature. Every provider sends it. */
export const SIGNATURE_HEADER = 'x-hub-signature-256'

/** Bytes hashed in one step, which takes a few milliseconds. */
const STEP = 1_048_576

/** An empty digest, another algorithm or upper-case digits are refused without comparing. */
const SIGNATURE = /^sha256=([0-9a-f]{64})$/

/**
 * The value of `X-Hub-Signature-256` for these bytes: `sha256=` and 64 lower-case hex digits.
 * @see https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
 */
export function sign(secret: Secret | string, bytes: Uint8Array): string {
  return `sha256=${atOnce(digest(secret, bytes)).toString('hex')}`
}

/** Whether the text has the form that {@link sign} returns. */
export function isSignature(text: string | undefined): text is string {
  return text !== undefined && SIGNATURE.test(text)
}

/**
 * Which of the secrets made this signature of these bytes. Undefined if none did, or if `signature` is absent or
 * malformed. The comparison takes constant time. An empty secret, with which anybody could sign, never matches.
 */
export function verify(
  signature: string | undefined,
  bytes: Uint8Array,
  secrets: WebhookSecrets,
): VerifiedBy | undefined {
  return atOnce(verifySteps(signature, bytes, secrets))
}

/** {@link verify} in steps of a few milliseconds, for bytes of any length. */
export function* verifySteps(
  signature: string | undefined,
  bytes: Uint8Array,
  { current, previous }: WebhookSecrets,
): Steps<VerifiedBy | undefined> {
  const [, hex] = SIGNATURE.exec(signature ?? '') ?? []
  if (hex === undefined) return undefined
  const claimed = Buffer.from(hex, 'hex')
  if (yield* matches(claimed, bytes, current)) return 'current'
  return previous && (yield* matches(claimed, bytes, previous)) ? 'previous' : undefined
}

function* matches(claimed: Buffer, bytes: Uint8Array, secret: Secret): Steps<boolean> {
  return secret.reveal() !== '' && timingSafeEqual(claimed, yield* digest(secret, bytes))
}

function* digest(secret: Secret | string, bytes: Uint8Array): Steps<Buffer> {
  const hmac = createHmac('sha256', typeof secret === 'string' ? secret : secret.reveal())
  for (let at = 0; at < bytes.length; at += STEP) {
    hmac.update(bytes.subarray(at, at + STEP))
    yield
  }
  return hmac.digest()
}
