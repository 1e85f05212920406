import { formPayloadSteps, isFormType } from '../base/form.js'
import { atOnce, type Steps } from '../base/turns.js'
import type { WebhookScheme } from '../providers/provider.js'
import type { HeaderLines } from './headers.js'

/**
 * The bytes that a delivery's signature covers. Decodes an unverified form only for a provider that signs the payload in
 * it. Undefined if the form has no payload.
 */
export function signedBytes(
  lines: HeaderLines,
  body: Uint8Array,
  { formSignature }: Pick<WebhookScheme, 'formSignature'>,
): Uint8Array | undefined {
  return atOnce(signedBytesSteps(lines, body, { formSignature }))
}

/** {@link signedBytes} in steps of a few milliseconds, for a body of any length. */
export function* signedBytesSteps(
  lines: HeaderLines,
  body: Uint8Array,
  { formSignature }: Pick<WebhookScheme, 'formSignature'>,
): Steps<Uint8Array | undefined> {
  return isForm(lines) && formSignature === 'payload' ? yield* formPayloadSteps(body) : body
}

/** Whether a delivery's body is a form, according to its Content-Type. Any other body is read as JSON. */
export function isForm(lines: HeaderLines): boolean {
  return isFormType(lines.get('content-type')?.[0])
}
