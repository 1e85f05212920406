import * as oauth from 'oauth4webapi'
import { isLoopback } from '../base/loopback.js'
import type { Secret } from '../base/secret.js'
import type { OAuthEndpoints } from '../providers/provider.js'
import type { TokenGrant } from '../tokens/tokens.js'
import { refusalError, TokenError } from './token-error.js'
import type { tokenFetch } from './token-fetch.js'

/** Endpoints of a provider, and the client that calls them. */
export interface TokenEndpoint {
  readonly endpoints: OAuthEndpoints
  /** Without a secret only for the device flow, which needs none (RFC 8628 section 3.1). */
  readonly client: { readonly id: string; readonly secret?: Secret }
  /** See {@link tokenFetch}. */
  readonly fetch: ReturnType<typeof tokenFetch>
}

/** Arguments for every call of oauth4webapi. */
export interface TokenCall {
  readonly server: oauth.AuthorizationServer
  readonly application: oauth.Client
  readonly authentication: oauth.ClientAuth
  readonly options: oauth.TokenEndpointRequestOptions
}

/** Response of the token endpoint. Lifetimes are in milliseconds; undefined when it names none that is usable. */
export interface TokenResponse {
  readonly accessToken: string
  readonly expiresIn: number | undefined
  readonly refreshToken: string | undefined
  readonly refreshExpiresIn: number | undefined
  /** Undefined when the provider does not name them (Gitea; a GitHub App). */
  readonly scopes: readonly string[] | undefined
}

/**
 * Calls the token endpoint once, for any grant type.
 * @throws TokenError as {@link callEndpoint}.
 */
export async function requestToken(
  endpoint: TokenEndpoint,
  request: (call: TokenCall) => Promise<oauth.TokenEndpointResponse>,
): Promise<TokenResponse> {
  return callEndpoint(endpoint, async (call) => toTokenResponse(await request(call)))
}

/**
 * Calls an endpoint once.
 * @throws TokenError. An `error` in the response is a refusal even with status 200, which GitHub uses.
 */
export async function callEndpoint<T>(
  { endpoints, client, fetch }: TokenEndpoint,
  request: (call: TokenCall) => Promise<T>,
): Promise<T> {
  try {
    return await request({
      server: authorizationServer(endpoints),
      application: { client_id: client.id },
      // Not Basic: that would percent-encode a Gitea client id, which Gitea does not decode.
      authentication: client.secret ? oauth.ClientSecretPost(client.secret.reveal()) : oauth.None(),
      options: {
        [oauth.customFetch]: fetch,
        [oauth.allowInsecureRequests]: isLoopback(new URL(endpoints.tokenEndpoint).hostname),
      },
    })
  } catch (error) {
    throw toTokenError(error)
  }
}

/** Converts a response that came at `now`. `ttl` is the lifetime of a token for which the response names none. */
export function toTokenGrant(
  response: TokenResponse,
  { origin, ttl, now }: { origin: string; ttl: number; now: number },
): TokenGrant {
  const { accessToken, expiresIn, refreshToken, refreshExpiresIn } = response
  return {
    accessToken,
    expiresAt: now + (expiresIn ?? ttl),
    origin,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(refreshExpiresIn !== undefined && { refreshExpiresAt: now + refreshExpiresIn }),
  }
}

function authorizationServer(endpoints: OAuthEndpoints): oauth.AuthorizationServer {
  return {
    // The library requires an issuer. For a provider without one, nothing is compared with this value.
    issuer: endpoints.issuer ?? new URL(endpoints.authorizationEndpoint).origin,
    token_endpoint: endpoints.tokenEndpoint,
    ...(endpoints.deviceEndpoint !== undefined && {
      device_authorization_endpoint: endpoints.deviceEndpoint,
    }),
  }
}

/** Visible ASCII, as an Authorization header requires, and short enough for Node's 16 KiB of headers. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/

function toTokenResponse(response: oauth.TokenEndpointResponse): TokenResponse {
  if (!TOKEN.test(response.access_token)) throw new TokenError('unusable', 'the token is not well formed')
  return {
    accessToken: response.access_token,
    expiresIn: lifetime(response.expires_in),
    refreshToken: response.refresh_token,
    refreshExpiresIn: lifetime(Number(response['refresh_token_expires_in'])),
    scopes: parseScopes(response.scope),
  }
}

/** 10 years in milliseconds: a longer lifetime means "for ever", and the expiry must still be a valid date. */
const MAX_LIFETIME = 10 * 365 * 86_400_000

/** Converts seconds to milliseconds. Some servers send 0 for a token that does not expire, so 0 counts as none. */
function lifetime(seconds: number | undefined): number | undefined {
  if (seconds === undefined || !(seconds > 0)) return undefined
  return Math.min(Math.floor(seconds * 1000), MAX_LIFETIME)
}

/** Splits scopes: GitHub separates them with commas, other providers with spaces (RFC 6749 section 3.3). */
function parseScopes(text: string | undefined): string[] | undefined {
  const scopes = text?.split(/[\s,]+/).filter((scope) => scope !== '')
  return scopes?.length ? scopes : undefined
}

/** Converts an error of oauth4webapi. They contain request and response, so only the code is used. */
function toTokenError(error: unknown): TokenError {
  if (error instanceof TokenError) return error
  const code = errorCode(error)
  if (code !== undefined) return refusalError(code)
  const kind: unknown = Object(error).code
  if (kind === oauth.RESPONSE_IS_NOT_JSON || kind === oauth.PARSE_ERROR) {
    return new TokenError('unavailable', 'the response of the token endpoint is not JSON')
  }
  const why = typeof kind === 'string' ? ` (${kind})` : ''
  return new TokenError('unusable', `the token endpoint gave no token${why}`)
}

/** `error` of the response, whether its status is an error or 200. */
function errorCode(error: unknown): string | undefined {
  if (error instanceof oauth.ResponseBodyError) return error.error
  const code: unknown = Object(Object(Object(error).cause).body).error
  return typeof code === 'string' && code !== '' ? code : undefined
}
