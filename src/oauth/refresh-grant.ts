import * as oauth from 'oauth4webapi'
import { RelayError } from '../base/errors.js'
import { signInAgain } from './sign-in-again.js'
import { askForToken, type Grant, type TokenEndpoint } from './token-endpoint.js'
import { TokenError } from './token-error.js'

/**
 * Exchanges a refresh token for a new pair (RFC 6749 section 6). No scope is named, which means the same scopes; GitHub
 * allows none here.
 * @throws TokenError
 */
export function refreshGrant(endpoint: TokenEndpoint, refreshToken: string): Promise<Grant> {
  return askForToken(endpoint, async ({ server, application, authentication, options }) => {
    const response = await oauth.refreshTokenGrantRequest(
      server,
      application,
      authentication,
      refreshToken,
      options,
    )
    return oauth.processRefreshTokenResponse(server, application, response)
  })
}

/** The refresh token is dead: RFC 6749 section 5.2, GitHub, Gitea (for a refresh token that was used before). */
const DEAD = new Set(['invalid_grant', 'bad_refresh_token', 'unauthorized_client'])

/** Says nothing of the refresh token, which may still be good: RFC 6749 section 5.2, GitHub. */
const UNKNOWN_CLIENT = new Set(['invalid_client', 'incorrect_client_credentials'])

/**
 * What a failed {@link refreshGrant} means to the user: `unauthenticated` when the refresh token is dead, `not_configured`
 * when the provider does not know the client, `provider_timeout`, else `provider_failed`.
 */
export function renewalError(error: unknown, userId: string): RelayError {
  if (!(error instanceof TokenError)) throw error
  const { failure, code = '', message } = error
  const what = `The token of ${userId} could not be renewed (${message})`
  if (DEAD.has(code)) return signInAgain(what)
  if (UNKNOWN_CLIENT.has(code))
    return new RelayError('not_configured', `${what}; check RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`)
  return new RelayError(failure === 'timeout' ? 'provider_timeout' : 'provider_failed', what)
}
