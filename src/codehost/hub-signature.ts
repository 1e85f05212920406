import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../base/secret.js'

/** The header in which GitHub and Gitea send the signature. */
export const HUB_SIGNATURE = 'x-hub-signature-256'
/** An empty digest, another algorithm or upper-case digits are refused without comparing. */
const HUB_FORM = /^sha256=[0-9a-f]{64}$/

/**
 * The value of `X-Hub-Signature-256` for these bytes: `sha256=` and 64 lower-case hex digits.
 * @see https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
 */
export function hubSignature(secret: Secret, bytes: Uint8Array): string {
  return `sha256=${createHmac('sha256', secret.reveal()).update(bytes).digest('hex')}`
}

/** How a delivery with that header is proved: a part of its {@link WebhookScheme}. */
export const HUB_PROOF = {
  proof: { [HUB_SIGNATURE]: HUB_FORM },
  provesBody: true,
  /** Takes constant time. An empty secret, with which anybody could sign, matches nothing. */
  verify(header: (name: string) => string | undefined, signed: Uint8Array, secret: Secret): boolean {
    const claimed = header(HUB_SIGNATURE) ?? ''
    if (!HUB_FORM.test(claimed) || secret.reveal() === '') return false
    return timingSafeEqual(Buffer.from(claimed), Buffer.from(hubSignature(secret, signed)))
  },
}
