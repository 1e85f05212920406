// Reasons why a request is not proved.

/** Reasons why a request is not proved. */
export type UnprovedReason =
  | 'no_signature'
  | 'empty_signature'
  | 'repeated_signature'
  | 'malformed_signature'
  | 'only_sha1'
  | 'wrong_header'
  | 'malformed_part'
  | 'stale'
  | 'secret_white_space'
  | 'secret_form'
  | 'other_template'
  | 're_encoded'
  | 'form'
  | 'truncated'
  | 'changed_body'
  | 'wrong_algorithm'
  | 'wrong_claim'
  | 'unknown_key'
  | 'unreachable_key'
  | 'wrong_address'
  | 'wrong_secret'
  | 'other_source'
  | 'unverifiable'

export interface Unproved {
  readonly valid: false
  readonly reason: UnprovedReason
  /** A sentence for the user. Contains no secret, no digest and nothing of the body. */
  readonly hint: string
}

export function unproved(reason: UnprovedReason, hint: string): Unproved {
  return { valid: false, reason, hint }
}
