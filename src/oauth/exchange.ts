import * as oauth from 'oauth4webapi'
import type { OAuthEndpoints } from '../providers/provider.js'
import { askForToken, type Grant, type TokenEndpoint } from './token-endpoint.js'

export interface ExchangeRequest extends TokenEndpoint {
  /** The callback's parameters as they came: `state` and `iss` are checked here once more. */
  readonly callback: URLSearchParams
  readonly state: string
  readonly redirectUri: string
  readonly verifier: string
}

/**
 * Exchanges the callback's code for a token (RFC 6749 section 4.1.3, RFC 7636 section 4.5).
 * @throws TokenError
 */
export function exchange(request: ExchangeRequest): Promise<Grant> {
  const { callback, endpoints, state, redirectUri, verifier } = request
  return askForToken(request, async ({ server, application, authentication, options }) => {
    const parameters = oauth.validateAuthResponse(server, application, trusted(callback, endpoints), state)
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      application,
      authentication,
      parameters,
      redirectUri,
      verifier,
      options,
    )
    return oauth.processAuthorizationCodeResponse(server, application, response)
  })
}

/** `iss` is left out where no issuer is known: there is nothing to compare it with. */
function trusted(callback: URLSearchParams, { issuer }: OAuthEndpoints): URLSearchParams {
  const parameters = new URLSearchParams(callback)
  if (issuer === undefined) parameters.delete('iss')
  return parameters
}
