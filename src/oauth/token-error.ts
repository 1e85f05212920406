/**
 * Why the token endpoint gave no token: `unavailable`: not reached, failed, or no usable answer · `timeout`: no whole
 * answer in time · `refused`: it said no · `unusable`: everything else.
 */
export type TokenFailure = 'unavailable' | 'timeout' | 'refused' | 'unusable'

/** A call to the token endpoint that failed. The message is for the log and for people: one line, without a secret. */
export class TokenError extends Error {
  override readonly name = 'TokenError'
  readonly failure: TokenFailure
  /** The `error` of a refusal (RFC 6749 section 5.2); undefined when it is not shaped like one. */
  readonly code: string | undefined

  constructor(failure: TokenFailure, message: string, code?: string) {
    super(message)
    this.failure = failure
    this.code = code
  }
}

/** The endpoint said `error`, which is not repeated unless it is shaped like a code: it may be anything. */
export function refusedWith(error: string): TokenError {
  return /^[a-z_]{1,64}$/.test(error)
    ? new TokenError('refused', `the provider said ${error}`, error)
    : new TokenError('refused', 'the provider gave an unknown error')
}
