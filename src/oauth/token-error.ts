import { RelayError } from '../base/errors.js'

/**
 * Why a call to the token endpoint failed. `unavailable`: not reached, a server error, or an unreadable response ·
 * `timeout`: no complete response in time · `refused`: it answered with an error · `unusable`: everything else.
 */
export type TokenFailure = 'unavailable' | 'timeout' | 'refused' | 'unusable'

/** Error of a call to the token endpoint. The message is one line without a secret, for the log and for users. */
export class TokenError extends Error {
  override readonly name = 'TokenError'
  readonly failure: TokenFailure
  /** `error` of the response (RFC 6749 section 5.2); undefined when it does not look like an error code. */
  readonly code: string | undefined

  constructor(failure: TokenFailure, message: string, code?: string) {
    super(message)
    this.failure = failure
    this.code = code
  }
}

/** Error for a response with `error`, which is repeated only if it looks like an error code. */
export function refusalError(error: string): TokenError {
  return /^[a-z_]{1,64}$/.test(error)
    ? new TokenError('refused', `the provider answered ${error}`, error)
    : new TokenError('refused', 'the provider gave an unknown error')
}

/** Error that only a new sign-in resolves. */
export function signInAgain(why: string): RelayError {
  return new RelayError('unauthenticated', `${why}; sign in again: relay login`)
}

/** Error codes for an invalid refresh token: RFC 6749 section 5.2, GitHub, Gitea (for one that was used before). */
const INVALID_TOKEN = new Set(['invalid_grant', 'bad_refresh_token', 'unauthorized_client'])

/** Error codes for a wrong client; the refresh token may still be valid. RFC 6749 section 5.2, GitHub. */
export const UNKNOWN_CLIENT: ReadonlySet<string> = new Set(['invalid_client', 'incorrect_client_credentials'])

/**
 * Whether the provider refused the client itself. GitHub answers an unknown client id with 404 and the error `Not Found`, which is no code
 * (https://github.com/octokit/auth-oauth-user.js/issues/239).
 */
export function isUnknownClient({ failure, code }: TokenError): boolean {
  return failure === 'refused' && (code === undefined || UNKNOWN_CLIENT.has(code))
}

/**
 * Converts the error of a failed `refreshGrant`: `unauthenticated` when the refresh token is invalid, `not_configured`
 * when the provider does not know the client, `provider_timeout`, otherwise `provider_failed`.
 */
export function renewalError(error: unknown, userId: string): RelayError {
  if (!(error instanceof TokenError)) throw error
  const { failure, code = '', message } = error
  const what = `The token of ${userId} could not be renewed (${message})`
  if (INVALID_TOKEN.has(code)) return signInAgain(what)
  if (UNKNOWN_CLIENT.has(code))
    return new RelayError('not_configured', `${what}; check RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`)
  return new RelayError(failure === 'timeout' ? 'provider_timeout' : 'provider_failed', what)
}
