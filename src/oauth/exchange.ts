import * as oauth from 'oauth4webapi'
import { isLoopback } from '../base/loopback.js'
import type { OAuthClient } from '../base/settings.js'
import type { OAuthEndpoints } from '../providers/provider.js'
import { providerRefusal, SignInError } from './outcome.js'

export interface ExchangeRequest {
  readonly endpoints: OAuthEndpoints
  readonly client: OAuthClient
  /** The callback's parameters as they came: `state` and `iss` are checked here once more. */
  readonly callback: URLSearchParams
  readonly state: string
  readonly redirectUri: string
  readonly verifier: string
  /** See {@link tokenFetch}. */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
}

/** What the token endpoint granted. Lifetimes are in milliseconds, undefined where it said nothing usable. */
export interface Grant {
  readonly accessToken: string
  readonly expiresIn: number | undefined
  readonly refreshToken: string | undefined
  readonly refreshExpiresIn: number | undefined
  /** Undefined where the provider does not say (Gitea; a GitHub App). */
  readonly scopes: readonly string[] | undefined
}

/**
 * Exchanges the callback's code for a token (RFC 6749 section 4.1.3, RFC 7636 section 4.5).
 * @throws SignInError `provider_unavailable` when the endpoint fails or its answer is not JSON; the reason behind the
 * error it gave, also when it gave that with status 200, as GitHub does; `exchange_failed` for everything else.
 */
export async function exchange(request: ExchangeRequest): Promise<Grant> {
  const { endpoints, client, callback, state, redirectUri, verifier, fetch } = request
  const server = authorizationServer(endpoints)
  const application: oauth.Client = { client_id: client.id }
  try {
    const parameters = oauth.validateAuthResponse(server, application, trusted(callback, endpoints), state)
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      application,
      // Not Basic: that would percent-encode a Gitea client id, which Gitea does not decode.
      oauth.ClientSecretPost(client.secret.reveal()),
      parameters,
      redirectUri,
      verifier,
      {
        [oauth.customFetch]: fetch,
        [oauth.allowInsecureRequests]: isLoopback(new URL(endpoints.tokenEndpoint).hostname),
      },
    )
    return toGrant(await oauth.processAuthorizationCodeResponse(server, application, response))
  } catch (error) {
    throw toSignInError(error)
  }
}

function authorizationServer(endpoints: OAuthEndpoints): oauth.AuthorizationServer {
  return {
    // A provider without an issuer of its own gets a name that nothing is compared with: `iss` is left out for it.
    issuer: endpoints.issuer ?? new URL(endpoints.authorizationEndpoint).origin,
    token_endpoint: endpoints.tokenEndpoint,
  }
}

function trusted(callback: URLSearchParams, { issuer }: OAuthEndpoints): URLSearchParams {
  const parameters = new URLSearchParams(callback)
  if (issuer === undefined) parameters.delete('iss')
  return parameters
}

/** Visible ASCII, so that it can stand in an Authorization header, and short enough for Node's 16 KiB of headers. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/

function toGrant(answer: oauth.TokenEndpointResponse): Grant {
  if (!TOKEN.test(answer.access_token))
    throw new SignInError('exchange_failed', 'the token is not well formed')
  return {
    accessToken: answer.access_token,
    expiresIn: lifetime(answer.expires_in),
    refreshToken: answer.refresh_token,
    refreshExpiresIn: lifetime(Number(answer['refresh_token_expires_in'])),
    scopes: parseScopes(answer.scope),
  }
}

/** 10 years: what is said to live longer is meant to live for ever, and a date must come out. */
const MAX_LIFETIME = 10 * 365 * 86_400_000

/** Zero is how some servers say that a token does not expire, so it counts as nothing said. */
function lifetime(seconds: number | undefined): number | undefined {
  if (seconds === undefined || !(seconds > 0)) return undefined
  return Math.min(Math.floor(seconds * 1000), MAX_LIFETIME)
}

/** GitHub joins scopes with commas, everyone else with spaces (RFC 6749 section 3.3). */
function parseScopes(text: string | undefined): string[] | undefined {
  const scopes = text?.split(/[\s,]+/).filter((scope) => scope !== '')
  return scopes?.length ? scopes : undefined
}

/** The library's errors hold the request and the answer, so nothing of them is kept but the error code. */
function toSignInError(error: unknown): SignInError {
  if (error instanceof SignInError) return error
  const code = errorCode(error)
  if (code !== undefined) return providerRefusal(code)
  const kind: unknown = Object(error).code
  if (kind === oauth.RESPONSE_IS_NOT_JSON || kind === oauth.PARSE_ERROR) {
    return new SignInError('provider_unavailable', 'the token endpoint answered something that is not JSON')
  }
  const why = typeof kind === 'string' ? ` (${kind})` : ''
  return new SignInError('exchange_failed', `the exchange of the code failed${why}`)
}

/** The `error` of an error answer, or of one that came with status 200. */
function errorCode(error: unknown): string | undefined {
  if (error instanceof oauth.ResponseBodyError) return error.error
  const code: unknown = Object(Object(Object(error).cause).body).error
  return typeof code === 'string' && code !== '' ? code : undefined
}
