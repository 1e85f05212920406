import { RelayError } from '../base/errors.js'
import { type HeaderLines, only } from '../http/headers.js'
import type { WebhookScheme } from '../providers/provider.js'
import type { WebhookRequest } from '../webhook/intake.js'
import { likelySecrets } from '../webhook/explain.js'
import { MAX_EXPLAINED, refusalHint, type TunnelRefusal } from '../webhook/refusals.js'
import {
  restore,
  type RestoreMethod,
  type RestoreParts,
  type TunnelBody,
} from '../webhook/restore/restore.js'
import { isSignature, SIGNATURE_HEADER } from '../webhook/old-signature.js'
import type { Message } from './message.js'
import { claimsRoundTrip } from './round-trip.js'

export interface UnpackParts extends RestoreParts {
  readonly scheme: WebhookScheme
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
}

/**
 * The request that the code host sent and how its body was restored; or why the message was refused, and the request as far
 * as it could be read.
 */
export type Unpacked =
  | { readonly request: WebhookRequest; readonly how: RestoreMethod }
  | { readonly refused: TunnelRefusal; readonly request?: WebhookRequest }

/** Extracts the delivery from a message by restoring its body, once. The signature decides. */
export async function unpack(message: Message, lines: HeaderLines, parts: UnpackParts): Promise<Unpacked> {
  const { headers } = message
  try {
    const restored = await restore(message.body, lines, parts)
    if (!restored)
      return { request: arrived(message), refused: { reason: () => rejectionReason(message, lines, parts) } }
    const { body, how } = restored
    if (body.byteLength > parts.maxBody) throw new RelayError('too_large', 'Request too large')
    return { request: { headers, body }, how }
  } catch (error) {
    if (error instanceof RelayError) return { request: arrived(message), refused: error }
    throw error
  }
}

/** The request with the body that the server wrote. */
export function arrived({ headers, body: { raw, json = '' } }: Message): WebhookRequest {
  return { headers, body: raw ?? Buffer.from(json) }
}

/**
 * A signature that does not match the exact bytes is invalid. Without the exact bytes, relay cannot distinguish a wrong secret
 * from bytes that the server changed.
 */
export async function rejectionReason(
  { headers, body }: Message,
  lines: HeaderLines,
  parts: UnpackParts,
): Promise<string> {
  const { raw } = body
  if (claimsRoundTrip(lines)) return 'another relay on this channel sent it to itself'
  if (!raw && isSignature(only(lines, SIGNATURE_HEADER)))
    return (
      (await secretHint(body, lines, parts)) ??
      'unverifiable through this tunnel (signed with another secret, or the server changed the bytes)'
    )
  return `invalid signature (${await refusalHint({ headers, body: raw ?? new Uint8Array() }, parts)})`
}

/** Whether the sender's secret differs only in white space at its ends. Restores the body some 14 times for each secret. */
async function secretHint(
  body: TunnelBody,
  lines: HeaderLines,
  parts: UnpackParts,
): Promise<string | undefined> {
  if ((body.json?.length ?? 0) > MAX_EXPLAINED) return undefined
  for (const [current, { hint }] of likelySecrets(parts.secrets))
    if (await restore(body, lines, { ...parts, secrets: { current } })) return hint
  return undefined
}
