import type { WebhookSecrets } from '../base/settings.js'
import type { WebhookScheme } from '../providers/provider.js'
import { atOnce, type Steps } from '../base/turns.js'
import { explainChange } from './explain-change.js'
import { explainHeader } from './explain-header.js'
import type { Explanation } from './explanation.js'
import { signedBytes } from './form.js'
import { indexHeaders, only } from './headers.js'
import type { WebhookRequest } from './intake.js'
import { SIGNATURE_HEADER, verify } from './signature.js'

export interface ExplainParts {
  readonly secrets: WebhookSecrets
  readonly scheme: Pick<WebhookScheme, 'formSignature'>
}

/**
 * Whether a request is signed with one of the secrets, as intake decides it, and why not. The reason is proved with the
 * configured secrets if possible, otherwise it is the most likely one. Hashes a body that does not match a few dozen
 * times.
 */
export function explain(request: WebhookRequest, parts: ExplainParts): Explanation {
  return atOnce(explainSteps(request, parts))
}

/** {@link explain} in steps. Each tries one way in which the body may have been written. */
export function* explainSteps(
  { headers, body }: WebhookRequest,
  { secrets, scheme }: ExplainParts,
): Steps<Explanation> {
  const lines = indexHeaders(headers)
  const signed = signedBytes(lines, body, scheme)
  const signature = only(lines, SIGNATURE_HEADER)
  const by = signed && verify(signature, signed, secrets)
  if (by) return { valid: true, by }
  return (
    explainHeader(lines, (candidate) => verify(candidate, signed ?? body, secrets) !== undefined) ??
    (yield* explainChange({ lines, body, signed, signature, secrets }))
  )
}
