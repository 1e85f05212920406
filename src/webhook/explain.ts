import type { WebhookSecrets } from '../base/settings.js'
import type { WebhookScheme } from '../providers/provider.js'
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
 * Whether a request is signed with one of the secrets, as intake decides it, and if it is not, what went wrong: as far as
 * it can be proved with the secrets at hand, else what is most likely. Hashes a body that does not fit a few dozen times.
 */
export function explain({ headers, body }: WebhookRequest, { secrets, scheme }: ExplainParts): Explanation {
  const lines = indexHeaders(headers)
  const signed = signedBytes(lines, body, scheme)
  const signature = only(lines, SIGNATURE_HEADER)
  const by = signed && verify(signature, signed, secrets)
  if (by) return { valid: true, by }
  return (
    explainHeader(lines, (candidate) => verify(candidate, signed ?? body, secrets) !== undefined) ??
    explainChange({ lines, body, signed, signature, secrets })
  )
}
