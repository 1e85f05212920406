import { RelayError } from '../base/errors.js'
import { type HeaderLines, only } from '../webhook/headers.js'
import type { WebhookRequest } from '../webhook/intake.js'
import { refusalHint } from '../webhook/refusals.js'
import { restore, type RestoreMethod, type RestoreParts } from '../webhook/restore/restore.js'
import { isSignature, SIGNATURE_HEADER } from '../webhook/signature.js'
import type { Message } from './message.js'
import { claimsRoundTrip } from './round-trip.js'

export interface UnpackParts extends RestoreParts {
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
}

/** The request that the code host sent and how its body was restored, or why the message was refused. */
export type Unpacked =
  | { readonly request: WebhookRequest; readonly how: RestoreMethod }
  | {
      readonly refused: () => string | Promise<string>
      /** What was refused; undefined if it could not be read. */
      readonly message?: Message | undefined
    }

/**
 * Extracts the delivery from a message by restoring its body, once. The signature decides.
 * @throws RelayError `too_large` for a body larger than `maxBody`.
 */
export async function unpack(message: Message, lines: HeaderLines, parts: UnpackParts): Promise<Unpacked> {
  const restored = await restore(message.body, lines, parts)
  if (!restored) return { refused: () => rejectionReason(message, lines, parts), message }
  const { body, how } = restored
  if (body.byteLength > parts.maxBody) throw new RelayError('too_large', 'Request too large')
  return { request: { headers: message.headers, body }, how }
}

/**
 * A signature that does not match the exact bytes is invalid. Without the exact bytes, relay cannot tell a wrong secret
 * from bytes that the server changed.
 */
export async function rejectionReason(
  { headers, body: { raw } }: Message,
  lines: HeaderLines,
  parts: UnpackParts,
): Promise<string> {
  if (claimsRoundTrip(lines)) return 'another relay on this channel sent it to itself'
  if (!raw && isSignature(only(lines, SIGNATURE_HEADER)))
    return 'unverifiable through this tunnel (signed with another secret, or the server changed the bytes)'
  return `invalid signature (${await refusalHint({ headers, body: raw ?? new Uint8Array() }, parts)})`
}
