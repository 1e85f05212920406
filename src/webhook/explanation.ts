import type { VerifiedBy } from '../journal/types.js'

/** Why a signature does not match. */
export type Reason =
  | 'no_signature'
  | 'empty_signature'
  | 'repeated_signature'
  | 'malformed_signature'
  | 'only_sha1'
  | 'wrong_header'
  | 'secret_white_space'
  | 're_encoded'
  | 'form'
  | 'truncated'
  | 'wrong_secret'
  | 'unverifiable'

export interface Invalid {
  readonly valid: false
  readonly reason: Reason
  /** A sentence for the user. Contains no secret, no digest and nothing of the body. */
  readonly hint: string
}

export type Explanation = { readonly valid: true; readonly by: VerifiedBy } | Invalid

export function invalid(reason: Reason, hint: string): Invalid {
  return { valid: false, reason, hint }
}
