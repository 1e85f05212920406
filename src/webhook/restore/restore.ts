import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import type { WebhookSecrets } from '../../base/settings.js'
import type { WebhookScheme } from '../../providers/provider.js'
import { type HeaderLines, only } from '../../http/headers.js'
import { isForm, signedBytes } from '../signature.js'
import { isSignature, SIGNATURE_HEADER, verify } from '../old-signature.js'
import { candidates, type RestoreMethod, type TunnelBody } from './candidates.js'
import { FORMS, type WriteForm } from './forms.js'

export type { RestoreMethod, TunnelBody } from './candidates.js'

export interface Restored {
  readonly body: Uint8Array
  readonly how: RestoreMethod
}

export interface RestoreParts {
  readonly secrets: WebhookSecrets
  readonly scheme: Pick<WebhookScheme, 'formSignature'>
  /** Largest body, in bytes. Bounds memory: nothing larger is written. Default: no limit. */
  readonly maxBody?: number | undefined
}

/**
 * Restores the body of a request that a tunnel's server parsed and wrote again. Returns the first candidate that the
 * signature matches, so that intake accepts these bytes with these headers. Undefined if none matches: nothing is
 * restored that the HMAC does not prove.
 *
 * An absent or malformed signature costs nothing. A wrong one costs one pass over at most 41 candidates (about 30 for a
 * usual payload), each written when it is tried. If the server sent the exact bytes, they are the only candidate.
 * Yields to the event loop after each candidate.
 * @throws RelayError `too_large` if every candidate is larger than `maxBody`.
 */
export async function restore(
  received: TunnelBody,
  lines: HeaderLines,
  { secrets, scheme, maxBody }: RestoreParts,
): Promise<Restored | undefined> {
  const signature = only(lines, SIGNATURE_HEADER)
  if (!isSignature(signature)) return undefined
  try {
    for (const [how, body] of candidates(received, formsOf(lines, scheme), maxBody)) {
      const signed = signedBytes(lines, body, scheme)
      if (signed && verify(signature, signed, secrets))
        // Candidates share a buffer, which may be larger.
        return signed === body ? { body: how === 'raw' ? body : Buffer.from(body), how } : asForm(signed)
      await setImmediate()
    }
  } catch (error) {
    // Text that is not JSON has no further candidates.
    if (!(error instanceof SyntaxError)) throw error
  }
  return undefined
}

/** The forms that change what is signed. If the provider signs only the payload, one is enough. */
function formsOf(lines: HeaderLines, { formSignature }: RestoreParts['scheme']): readonly WriteForm[] {
  if (!isForm(lines)) return []
  return formSignature === 'payload' ? FORMS.slice(0, 1) : FORMS
}

/** Writes a new form: the signature proves only the payload, not other fields or how the form was encoded. */
function asForm(payload: Uint8Array): Restored | undefined {
  const [write] = FORMS
  return write && isUtf8(payload) ? { body: write(payload), how: 'form' } : undefined
}
