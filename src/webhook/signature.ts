import { formPayload, isFormType } from '../base/bytes.js'
import type { WebhookSecrets } from '../base/settings.js'
import { type HeaderLines, only } from '../http/headers.js'
import type { VerifiedBy } from '../journal/types.js'
import type { WebhookScheme } from '../codehost/host.js'

/** How the deliveries of one source are signed. */
export interface Sender {
  readonly scheme: WebhookScheme
  readonly secrets: WebhookSecrets
}

/** The sender with this name; undefined if relay does not know it. Today there is one, the code host. */
export type Senders = (source: string) => Sender | undefined

/**
 * Which of the secrets made the signature of a request; undefined if none did. Nothing else of a request is read before, and nothing
 * else decides. A header that is given twice is as good as none: it is unclear which line counts.
 */
export function provenBy(
  lines: HeaderLines,
  body: Uint8Array,
  { scheme, secrets: { current, previous } }: Sender,
): VerifiedBy | undefined {
  const signed = hasProof(lines, scheme) ? signedBytes(lines, body, scheme) : undefined
  if (!signed) return undefined
  const header = (name: string): string | undefined => only(lines, name)
  if (scheme.verify(header, signed, current)) return 'current'
  return previous && scheme.verify(header, signed, previous) ? 'previous' : undefined
}

/** Whether a request has a signature header in the right form. Without one it is refused before any byte is hashed. */
export function hasProof(lines: HeaderLines, { proof }: Pick<WebhookScheme, 'proof'>): boolean {
  return Object.entries(proof).some(([name, form]) => form.test(only(lines, name) ?? ''))
}

/** The bytes that the signature covers: the body, or the payload in a form of a sender that signs that. Undefined if it has none. */
export function signedBytes(
  lines: HeaderLines,
  body: Uint8Array,
  { formSignature }: Pick<WebhookScheme, 'formSignature'>,
): Uint8Array | undefined {
  return isForm(lines) && formSignature === 'payload' ? formPayload(body) : body
}

/** Whether a delivery's body is a form, according to its Content-Type, which is not signed. Any other body is read as JSON. */
export function isForm(lines: HeaderLines): boolean {
  return isFormType(lines.get('content-type')?.[0])
}
