import * as oauth from 'oauth4webapi'
import { isLoopback } from '../base/loopback.js'
import type { OAuthClient } from '../base/settings.js'
import type { OAuthEndpoints } from '../providers/provider.js'
import type { SignIn } from '../tokens/tokens.js'
import { refusedWith, TokenError } from './token-error.js'

/** Whom to ask for a token, and as whom. */
export interface TokenEndpoint {
  readonly endpoints: OAuthEndpoints
  readonly client: OAuthClient
  /** See {@link tokenFetch}. */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
}

/** What every call of the library is given. */
export interface TokenCall {
  readonly server: oauth.AuthorizationServer
  readonly application: oauth.Client
  readonly authentication: oauth.ClientAuth
  readonly options: oauth.TokenEndpointRequestOptions
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
 * Makes one call to the token endpoint, for any grant.
 * @throws TokenError; an error counts as a refusal also when it came with status 200, as GitHub's do.
 */
export async function askForToken(
  { endpoints, client, fetch }: TokenEndpoint,
  ask: (call: TokenCall) => Promise<oauth.TokenEndpointResponse>,
): Promise<Grant> {
  try {
    const answer = await ask({
      server: authorizationServer(endpoints),
      application: { client_id: client.id },
      // Not Basic: that would percent-encode a Gitea client id, which Gitea does not decode.
      authentication: oauth.ClientSecretPost(client.secret.reveal()),
      options: {
        [oauth.customFetch]: fetch,
        [oauth.allowInsecureRequests]: isLoopback(new URL(endpoints.tokenEndpoint).hostname),
      },
    })
    return toGrant(answer)
  } catch (error) {
    throw toTokenError(error)
  }
}

/** What to keep of a grant that came at the instant `now`; `ttl` is how long a token lives of which nothing was said. */
export function toSignIn(
  grant: Grant,
  { origin, ttl, now }: { origin: string; ttl: number; now: number },
): SignIn {
  const { accessToken, expiresIn, refreshToken, refreshExpiresIn } = grant
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
    // A provider without an issuer of its own gets a name that nothing is compared with.
    issuer: endpoints.issuer ?? new URL(endpoints.authorizationEndpoint).origin,
    token_endpoint: endpoints.tokenEndpoint,
  }
}

/** Visible ASCII, so that it can stand in an Authorization header, and short enough for Node's 16 KiB of headers. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/

function toGrant(answer: oauth.TokenEndpointResponse): Grant {
  if (!TOKEN.test(answer.access_token)) throw new TokenError('unusable', 'the token is not well formed')
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
function toTokenError(error: unknown): TokenError {
  if (error instanceof TokenError) return error
  const code = errorCode(error)
  if (code !== undefined) return refusedWith(code)
  const kind: unknown = Object(error).code
  if (kind === oauth.RESPONSE_IS_NOT_JSON || kind === oauth.PARSE_ERROR) {
    return new TokenError('unavailable', 'the token endpoint answered something that is not JSON')
  }
  const why = typeof kind === 'string' ? ` (${kind})` : ''
  return new TokenError('unusable', `the token endpoint gave no token${why}`)
}

/** The `error` of an error answer, or of one that came with status 200. */
function errorCode(error: unknown): string | undefined {
  if (error instanceof oauth.ResponseBodyError) return error.error
  const code: unknown = Object(Object(Object(error).cause).body).error
  return typeof code === 'string' && code !== '' ? code : undefined
}
