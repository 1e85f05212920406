import * as oauth from 'oauth4webapi'
import { callEndpoint, requestToken, type TokenEndpoint, type TokenResponse } from './token-endpoint.js'

interface ExchangeRequest extends TokenEndpoint {
  /** Unchanged parameters of the callback: `state` and `iss` are checked once more here. */
  readonly callback: URLSearchParams
  readonly state: string
  readonly redirectUri: string
  readonly verifier: string
}

/**
 * Exchanges the callback's code for tokens (RFC 6749 section 4.1.3, RFC 7636 section 4.5).
 * @throws TokenError
 */
export function exchange(request: ExchangeRequest): Promise<TokenResponse> {
  const { callback, endpoints, state, redirectUri, verifier } = request
  const received = new URLSearchParams(callback)
  // When the provider's issuer is unknown, there is nothing to compare `iss` with.
  if (endpoints.issuer === undefined) received.delete('iss')
  return requestToken(request, async ({ server, application, authentication, options }) => {
    const parameters = oauth.validateAuthResponse(server, application, received, state)
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

/**
 * Exchanges a refresh token for a new pair (RFC 6749 section 6). The request names no scope, which means the same scopes;
 * GitHub allows none here.
 * @throws TokenError
 */
export function refreshGrant(endpoint: TokenEndpoint, refreshToken: string): Promise<TokenResponse> {
  return requestToken(endpoint, async ({ server, application, authentication, options }) => {
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

/**
 * Requests the codes of a device flow (RFC 8628 section 3.1).
 * @throws TokenError
 */
export function deviceCodes(endpoint: TokenEndpoint): Promise<oauth.DeviceAuthorizationResponse> {
  return callEndpoint(endpoint, async ({ server, application, authentication, options }) => {
    const scope = endpoint.endpoints.scopes.join(' ')
    const response = await oauth.deviceAuthorizationRequest(
      server,
      application,
      authentication,
      { scope },
      options,
    )
    return oauth.processDeviceAuthorizationResponse(server, application, response)
  })
}

/**
 * Asks once whether the user has entered the code, and exchanges the device's for tokens if so (RFC 8628 section 3.4).
 * @throws TokenError, with `authorization_pending` or `slow_down` as long as the user has not.
 */
export function deviceGrant(endpoint: TokenEndpoint, deviceCode: string): Promise<TokenResponse> {
  return requestToken(endpoint, async ({ server, application, authentication, options }) => {
    const response = await oauth.deviceCodeGrantRequest(
      server,
      application,
      authentication,
      deviceCode,
      options,
    )
    return oauth.processDeviceCodeResponse(server, application, response)
  })
}
