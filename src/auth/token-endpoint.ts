import * as oauth from 'oauth4webapi'
import { type Cancellable, deadline } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { isLoopback } from '../base/address.js'
import { readBounded, TooManyBytes } from '../base/bytes.js'
import { LIMITS } from '../base/seams.js'
import type { Secret } from '../base/secret.js'
import type { OAuthServer } from '../codehost/host.js'
import { type SendOnce, sendOnce as sendOverNetwork } from '../net/client.js'
import { describeWithoutQuote } from '../net/errors.js'
import type { TokenGrant } from '../tokens/tokens.js'

/** How the token endpoint is called. */
export interface CallOptions extends Cancellable {
  /** Default: over the network. */
  readonly sendOnce?: SendOnce | undefined
  /** For a whole call with its answer, in milliseconds. Default: 10 s. */
  readonly timeLimit?: number | undefined
}

/** An answer of the token endpoint. Lifetimes are in milliseconds; undefined where it names none that is usable. */
export interface TokenResponse {
  readonly accessToken: string
  readonly expiresIn: number | undefined
  readonly refreshToken: string | undefined
  readonly refreshExpiresIn: number | undefined
  /** Undefined where the code host does not name them (Gitea; a GitHub App). */
  readonly scopes: readonly string[] | undefined
}

/**
 * A call to the token endpoint that brought no token: `provider_timeout` without an answer in time, otherwise `provider_failed`. The
 * message is one line without a secret; it has no cause, which could quote request or response.
 */
export class TokenError extends RelayError {
  override readonly name = 'TokenError'
  /**
   * `error` of the answer (RFC 6749 section 5.2), whatever its status: GitHub refuses with 200. Empty if it does not look like an error
   * code, and is not repeated. Undefined if the answer has none, or there is no answer.
   */
  readonly code: string | undefined
  /** Whether the same call may succeed later: the endpoint was not reached, did not answer in time, failed, was busy or unreadable. */
  readonly passing: boolean

  constructor(message: string, { code, passing = false, late = false }: TokenErrorOptions = {}) {
    super(late ? 'provider_timeout' : 'provider_failed', message)
    this.code = code
    this.passing = passing || late
  }
}

interface TokenErrorOptions {
  readonly code?: string
  readonly passing?: boolean
  readonly late?: boolean
}

/** Codes of a server that is down or busy (RFC 6749 section 4.1.2.1). */
const PASSING: ReadonlySet<string> = new Set(['server_error', 'temporarily_unavailable'])

/** The error for a refusal with this `error`, in an answer or in the address that a browser returns to. */
export function refusedWith(code: string): TokenError {
  return /^[a-z_]{1,64}$/.test(code)
    ? new TokenError(`the provider answered ${code}`, { code, passing: PASSING.has(code) })
    : new TokenError('the provider gave an unknown error', { code: '' })
}

/** Codes for a wrong client: RFC 6749 section 5.2, GitHub. */
const UNKNOWN_CLIENT: ReadonlySet<string> = new Set(['invalid_client', 'incorrect_client_credentials'])

/** Whether the code host named a wrong client. A refresh token may still be valid then. */
export function isUnknownClient({ code = '' }: TokenError): boolean {
  return UNKNOWN_CLIENT.has(code)
}

/** What no server has issued. */
const NO_TOKEN = 'relay-asks-whether-this-client-is-known'

/**
 * The token endpoint of a code host, and the device endpoint next to it (RFC 8628), as an OAuth client calls them: one request for each
 * call, no redirect followed, the answer within 64 KiB. A client needs its secret for everything but the device flow. Every method
 * rejects with {@link TokenError} unless it says otherwise.
 */
export class TokenEndpoint {
  readonly #scope: string
  readonly #hasIssuer: boolean
  readonly #server: oauth.AuthorizationServer
  readonly #client: oauth.Client
  readonly #proof: oauth.ClientAuth
  readonly #options: oauth.TokenEndpointRequestOptions

  constructor(
    server: OAuthServer,
    { id, secret }: { readonly id: string; readonly secret?: Secret | undefined },
    options: CallOptions = {},
  ) {
    const { authorizationEndpoint, tokenEndpoint, deviceEndpoint, issuer, scopes } = server
    this.#scope = scopes.join(' ')
    this.#hasIssuer = issuer !== undefined
    this.#server = {
      // The library requires an issuer. Where none is known, nothing is compared with this one.
      issuer: issuer ?? new URL(authorizationEndpoint).origin,
      token_endpoint: tokenEndpoint,
      ...(deviceEndpoint !== undefined && { device_authorization_endpoint: deviceEndpoint }),
    }
    this.#client = { client_id: id }
    // Not Basic, which percent-encodes the id: Gitea's is a UUID, and Gitea does not decode it.
    this.#proof = secret ? oauth.ClientSecretPost(secret.reveal()) : oauth.None()
    this.#options = {
      [oauth.customFetch]: (url, request) => send(url, request, options),
      [oauth.allowInsecureRequests]: isLoopback(new URL(tokenEndpoint).hostname),
    }
  }

  /**
   * Exchanges the code of a callback (RFC 6749 section 4.1.3, RFC 7636 section 4.5).
   * @param callback the parameters as they came: `state` and `iss` are compared once more, and none may occur twice.
   */
  exchange(
    callback: URLSearchParams,
    sent: { readonly state: string; readonly redirectUri: string; readonly verifier: string },
  ): Promise<TokenResponse> {
    const received = new URLSearchParams(callback)
    if (!this.#hasIssuer) received.delete('iss')
    return this.#call(async (server, client, proof, options) => {
      const { state, redirectUri, verifier } = sent
      const checked = oauth.validateAuthResponse(server, client, received, state)
      const parameters = [checked, redirectUri, verifier] as const
      const answer = await oauth.authorizationCodeGrantRequest(server, client, proof, ...parameters, options)
      return toTokenResponse(await oauth.processAuthorizationCodeResponse(server, client, answer))
    })
  }

  /**
   * Exchanges a refresh token for a new pair, which ends the old one (RFC 6749 section 6). No scope is sent: the same ones, and GitHub
   * allows no other. `redirectUri`: only where the code host asks for it again.
   */
  refresh(refreshToken: string, redirectUri?: string): Promise<TokenResponse> {
    return this.#call(async (server, client, proof, options) => {
      const additionalParameters = redirectUri === undefined ? {} : { redirect_uri: redirectUri }
      const all = { ...options, additionalParameters }
      const answer = await oauth.refreshTokenGrantRequest(server, client, proof, refreshToken, all)
      return toTokenResponse(await oauth.processRefreshTokenResponse(server, client, answer))
    })
  }

  /** Asks for the codes of a device flow (RFC 8628 section 3.1). */
  deviceCodes(): Promise<oauth.DeviceAuthorizationResponse> {
    return this.#call(async (server, client, proof, options) => {
      const scope = { scope: this.#scope }
      const answer = await oauth.deviceAuthorizationRequest(server, client, proof, scope, options)
      return oauth.processDeviceAuthorizationResponse(server, client, answer)
    })
  }

  /** Asks once for the token of a device flow (section 3.4); code `authorization_pending` or `slow_down` until the user has decided. */
  deviceToken(deviceCode: string): Promise<TokenResponse> {
    return this.#call(async (server, client, proof, options) => {
      const answer = await oauth.deviceCodeGrantRequest(server, client, proof, deviceCode, options)
      return toTokenResponse(await oauth.processDeviceCodeResponse(server, client, answer))
    })
  }

  /**
   * Whether the code host knows the client. Asked by renewing a token that does not exist, since a client is refused before its token is
   * (section 5.2); not by a code, for which Gitea has the same error whether secret or code is wrong. Gitea 1.15 checks the id only.
   * Undefined if the code host did not say. Does not reject.
   */
  async knowsClient(): Promise<boolean | undefined> {
    try {
      await this.refresh(NO_TOKEN)
      return true
    } catch (error) {
      if (!(error instanceof TokenError) || error.code === undefined) return undefined
      // GitHub's error for an unknown client id is no code: `Not Found` (https://github.com/octokit/auth-oauth-user.js/issues/239).
      return error.code !== '' && !isUnknownClient(error)
    }
  }

  async #call<Result>(
    request: (
      server: oauth.AuthorizationServer,
      client: oauth.Client,
      proof: oauth.ClientAuth,
      options: oauth.TokenEndpointRequestOptions,
    ) => Promise<Result>,
  ): Promise<Result> {
    try {
      return await request(this.#server, this.#client, this.#proof, this.#options)
    } catch (error) {
      throw toTokenError(error)
    }
  }
}

export interface GrantTerms {
  /** Of the code host. */
  readonly origin: string
  /** Lifetime of a token for which the answer names none, in milliseconds. */
  readonly ttl: number
  /** When the answer came. */
  readonly now: number
  /** To be sent again at a renewal; undefined where the code host does not ask for it. */
  readonly redirectUri?: string | undefined
}

/** What is stored of an answer. */
export function toTokenGrant(
  { accessToken, expiresIn, refreshToken, refreshExpiresIn }: TokenResponse,
  { origin, ttl, now, redirectUri }: GrantTerms,
): TokenGrant {
  return {
    accessToken,
    expiresAt: now + (expiresIn ?? ttl),
    origin,
    refreshToken,
    refreshExpiresAt: refreshExpiresIn === undefined ? undefined : now + refreshExpiresIn,
    redirectUri,
  }
}

/** The scopes that relay needs and a token lacks; none where the code host does not name those of the token. */
export function missingScopes(
  { scopes }: Pick<OAuthServer, 'scopes'>,
  granted: readonly string[] | undefined,
): readonly string[] {
  return granted ? scopes.filter((scope) => !granted.includes(scope)) : []
}

/** 64 KiB: answers are below 4 KiB (GitHub), or a little larger where the tokens are JWTs (Gitea). */
const MAX_ANSWER = 65_536

/** The library's `fetch`: resolves once the whole answer is there. */
async function send(
  url: string,
  { headers, body }: { readonly headers: Record<string, string>; readonly body: URLSearchParams },
  { sendOnce = sendOverNetwork, timeLimit = LIMITS.tokenEndpoint, signal }: CallOptions,
): Promise<Response> {
  try {
    const request = {
      method: 'POST',
      headers,
      body: String(body),
      signal: deadline(timeLimit, signal),
    } as const
    const answer = await sendOnce(url, request)
    const bytes = await readBounded(answer.body, MAX_ANSWER)
    if (answer.status >= 500 || answer.status === 429) throw unavailable(`answered ${answer.status}`)
    const read = ['content-type', 'www-authenticate'].flatMap((name) => {
      const value = answer.header(name)
      return value === undefined ? [] : [[name, value] as const]
    })
    // A status such as 204 does not even allow an empty body.
    return new Response(bytes.length > 0 ? bytes : null, {
      status: answer.status,
      headers: Object.fromEntries(read),
    })
  } catch (error) {
    if (error instanceof TokenError) throw error
    if (error instanceof TooManyBytes) throw unavailable(`answered more than ${MAX_ANSWER} bytes`)
    if (error instanceof Error && error.name === 'TimeoutError')
      throw new TokenError('the token endpoint did not answer in time', { late: true })
    throw unavailable(`could not be reached (${describeWithoutQuote(error)})`)
  }
}

function unavailable(what: string): TokenError {
  return new TokenError(`the token endpoint ${what}`, { passing: true })
}

/** Visible ASCII, as an Authorization header requires, and short enough for Node's 16 KiB of headers. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/

function toTokenResponse(answer: oauth.TokenEndpointResponse): TokenResponse {
  if (!TOKEN.test(answer.access_token)) throw new TokenError('the token is not well formed')
  const scopes = answer.scope?.split(/[\s,]+/).filter((scope) => scope !== '')
  return {
    accessToken: answer.access_token,
    expiresIn: lifetime(answer.expires_in),
    refreshToken: answer.refresh_token,
    refreshExpiresIn: lifetime(Number(answer['refresh_token_expires_in'])),
    // GitHub separates them by commas, others by spaces (RFC 6749 section 3.3).
    scopes: scopes?.length ? scopes : undefined,
  }
}

/** 10 years in milliseconds: longer means "for ever", and the end must still be a valid date. */
const MAX_LIFETIME = 10 * 365 * 86_400_000

/** Seconds as milliseconds. Some servers send 0 for a token that does not expire. */
function lifetime(seconds: number | undefined): number | undefined {
  if (seconds === undefined || !(seconds > 0)) return undefined
  return Math.min(Math.floor(seconds * 1000), MAX_LIFETIME)
}

/** Of an error of the library only its code is used, since it contains request and response. */
function toTokenError(error: unknown): TokenError {
  if (error instanceof TokenError) return error
  const kind: unknown = Object(error).code
  const refusal: unknown =
    error instanceof oauth.ResponseBodyError ? error.error : Object(Object(Object(error).cause).body).error
  if (typeof refusal === 'string' && refusal !== '') return refusedWith(refusal)
  if (kind === oauth.RESPONSE_IS_NOT_JSON || kind === oauth.PARSE_ERROR)
    return new TokenError('the response of the token endpoint is not JSON', { passing: true })
  const why = typeof kind === 'string' ? ` (${kind})` : ''
  return new TokenError(`the token endpoint gave no token${why}`)
}
