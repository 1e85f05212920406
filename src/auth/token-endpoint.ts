import type * as OAuth from 'oauth4webapi'
import { type Cancellable, deadline } from '../base/wait.js'
import { RelayError, isError } from '../base/errors.js'
import { isLoopback } from '../base/address.js'
import { readBounded, TooManyBytes } from '../base/bytes.js'
import { TIME_LIMITS } from '../base/seams.js'
import type { Secret } from '../base/secret.js'
import { DEFAULTS } from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import type { TokenHost, OAuthServer } from '../codehost/host.js'
import { type SendOnce, sendOnce as sendOverNetwork } from '../net/client.js'
import { excessOf, fieldsOf } from '../json/parse.js'
import { describeWithoutQuote } from '../net/errors.js'
import { redirectTarget } from '../net/redirect.js'
import type { Refreshable, TokenGrant } from '../tokens/tokens.js'

type OAuthLibrary = typeof import('./oauth.js')

/** Options for calls of the token endpoint. */
export interface CallOptions extends Cancellable {
  /** Default: over the network. */
  readonly sendOnce?: SendOnce | undefined
  /** Milliseconds for a whole call with its response. Default: 10 s. */
  readonly timeLimit?: number | undefined
  /** Lifetime of a token for which the response names none, in milliseconds. Default: 30 days. */
  readonly tokenTtl?: number | undefined
  readonly clock?: Clock | undefined
}

/** A token that the code host has issued. */
export interface IssuedToken extends TokenGrant {
  /** Undefined if the code host does not name them (Gitea; a GitHub App). */
  readonly scopes: readonly string[] | undefined
}

/**
 * Error of a call to the token endpoint that returned no token: `provider_timeout` without a response in time,
 * otherwise `provider_failed`. The message is one line without a secret. There is no cause, which could quote request
 * or response.
 */
export class TokenError extends RelayError {
  override readonly name = 'TokenError'
  /**
   * `error` of the response (RFC 6749 section 5.2), whatever its status: GitHub refuses with 200. Empty if it does not
   * look like an error code. Undefined if the response has none, or there is no response.
   */
  readonly code: string | undefined
  /** True if the same call may succeed later: the endpoint was unreachable, slow, failing, busy or unreadable. */
  readonly passing: boolean

  constructor(
    message: string,
    {
      code,
      passing = false,
      kind = 'provider_failed',
    }: { code?: string; passing?: boolean; kind?: 'provider_failed' | 'provider_timeout' } = {},
  ) {
    super(kind, message)
    this.code = code
    this.passing = passing
  }
}

/** Error codes for a wrong client: RFC 6749 section 5.2, GitHub. */
const UNKNOWN_CLIENT: ReadonlySet<string> = new Set(['invalid_client', 'incorrect_client_credentials'])

/** True if the code host named a wrong client. A refresh token may still be valid then. */
export function isUnknownClient({ code = '' }: TokenError): boolean {
  return UNKNOWN_CLIENT.has(code)
}

/** A token, code and state that no server has issued. */
const NO_TOKEN = 'relay-asks-whether-this-client-is-known'

/** Code of the error of a server without a device flow: not one that a server sends. */
export const NO_DEVICE_FLOW = 'no device flow'

/**
 * Token endpoint of a code host, and the device endpoint next to it (RFC 8628), as an OAuth client calls them. Each
 * call is one request, which follows no redirect and accepts a response of at most 64 KiB. A client needs its secret
 * for everything but the device flow, where only some servers take it. Every method rejects with {@link TokenError} unless documented otherwise.
 */
export class TokenEndpoint {
  readonly #host: TokenHost
  readonly #parties: readonly [OAuth.AuthorizationServer, OAuth.Client]
  readonly #secret: Secret | undefined
  readonly #options: CallOptions

  /** @throws RelayError the code host's `refusal` */
  constructor(
    host: TokenHost,
    { id, secret }: { readonly id: string; readonly secret?: Secret | undefined },
    options: CallOptions = {},
  ) {
    if (host.refusal) throw host.refusal
    const { authorizationEndpoint, tokenEndpoint, deviceEndpoint, issuer } = host.oauth
    this.#host = host
    this.#options = options
    const server = {
      // The library requires an issuer. If none is known, nothing is compared with this one.
      issuer: issuer ?? new URL(authorizationEndpoint).origin,
      token_endpoint: tokenEndpoint,
      ...(deviceEndpoint !== undefined && { device_authorization_endpoint: deviceEndpoint }),
    }
    this.#parties = [server, { client_id: id }]
    this.#secret = secret
  }

  /**
   * Checks the parameters of a callback as received (RFC 6749 section 4.1.2: none may occur twice; `iss`: RFC 9207),
   * and exchanges its code (RFC 6749 section 4.1.3, RFC 7636 section 4.5). An `error` among them is the {@link
   * TokenError}'s code.
   */
  async exchange(
    callback: URLSearchParams,
    sent: { readonly state: string; readonly redirectUri: string; readonly verifier: string },
  ): Promise<IssuedToken> {
    const { issuer, repeatsRedirectUri } = this.#host.oauth
    const { state, redirectUri, verifier } = sent
    const received = new URLSearchParams(callback)
    if (issuer === undefined) received.delete('iss')
    const checked = await this.#call(
      async ({ oauth }) => oauth.validateAuthResponse(...this.#parties, received, state),
      'the callback is not valid',
    )
    if (!checked.get('code')) throw new TokenError('the provider sent no code')
    return this.#call(async ({ oauth, sender, request }) => {
      const parameters = [checked, redirectUri, verifier, request] as const
      const answer = await oauth.authorizationCodeGrantRequest(...sender, ...parameters)
      const issued = await oauth.processAuthorizationCodeResponse(...this.#parties, answer)
      return this.#toToken(issued, repeatsRedirectUri ? redirectUri : undefined)
    })
  }

  /**
   * Exchanges a refresh token for a new pair, which ends the old one (RFC 6749 section 6). No scope is sent, so the
   * scopes stay the same; GitHub allows no other.
   */
  refresh({ refreshToken, redirectUri }: Omit<Refreshable, 'origin'>): Promise<IssuedToken> {
    const additionalParameters = redirectUri === undefined ? {} : { redirect_uri: redirectUri }
    return this.#call(async ({ oauth, sender, request }) => {
      const options = { ...request, additionalParameters }
      const answer = await oauth.refreshTokenGrantRequest(...sender, refreshToken, options)
      return this.#toToken(await oauth.processRefreshTokenResponse(...this.#parties, answer), redirectUri)
    })
  }

  /** Requests the codes of a device flow (RFC 8628 section 3.1). The code is {@link NO_DEVICE_FLOW} if the server has none. */
  deviceCodes(): Promise<OAuth.DeviceAuthorizationResponse> {
    const scope = { scope: this.#host.oauth.scopes.join(' ') }
    return this.#call(async ({ oauth, sender, request }) => {
      const answer = await oauth.deviceAuthorizationRequest(...sender, scope, request)
      // GitLab, with its feature flag off (app/controllers/oauth/device_codes_controller.rb).
      if (answer.status === 204) throw new TokenError('there is no device flow', { code: NO_DEVICE_FLOW })
      return oauth.processDeviceAuthorizationResponse(...this.#parties, answer)
    })
  }

  /**
   * Requests the token of a device flow once (section 3.4). The code is `authorization_pending` or `slow_down` until
   * the user has decided.
   */
  deviceToken(deviceCode: string): Promise<IssuedToken> {
    return this.#call(async ({ oauth, sender, request }) => {
      const answer = await oauth.deviceCodeGrantRequest(...sender, deviceCode, request)
      return this.#toToken(await oauth.processDeviceCodeResponse(...this.#parties, answer))
    })
  }

  /**
   * Checks that the code host knows the client, by renewing a token that does not exist, since a client is refused
   * before its token is (section 5.2). Exchanging a code would not do: Gitea's error is the same for a wrong secret and
   * a wrong code. GitLab refuses the token first, but a code after the client. Gitea 1.15 checks the id only. Returns
   * undefined if the code host did not say. Does not reject.
   */
  async knowsClient(): Promise<boolean | undefined> {
    const { checksTokenFirst = false, authorizationEndpoint: redirectUri } = this.#host.oauth
    const made = { state: NO_TOKEN, redirectUri, verifier: NO_TOKEN.repeat(2) }
    try {
      await (checksTokenFirst
        ? this.exchange(new URLSearchParams({ code: NO_TOKEN, state: NO_TOKEN }), made)
        : this.refresh({ refreshToken: NO_TOKEN }))
      return true
    } catch (error) {
      if (!(error instanceof TokenError) || error.code === undefined) return undefined
      // GitHub's error for an unknown client id is no error code: `Not Found`
      // (https://github.com/octokit/auth-oauth-user.js/issues/239).
      return error.code !== '' && !isUnknownClient(error)
    }
  }

  /** Calls the library. It is loaded here, since most commands find a token that needs no renewal. */
  async #call<Result>(
    work: (library: {
      readonly oauth: OAuthLibrary
      readonly sender: readonly [OAuth.AuthorizationServer, OAuth.Client, OAuth.ClientAuth]
      readonly request: OAuth.TokenEndpointRequestOptions
    }) => Promise<Result>,
    what = 'the token endpoint gave no token',
  ): Promise<Result> {
    const oauth = await import('./oauth.js')
    // Not Basic, which percent-encodes the id: Gitea's is a UUID, and Gitea does not decode it.
    const auth = this.#secret ? oauth.ClientSecretPost(this.#secret.reveal()) : oauth.None()
    const request: OAuth.TokenEndpointRequestOptions = {
      [oauth.customFetch]: (url, init) => send(url, init, this.#options),
      [oauth.allowInsecureRequests]: isLoopback(new URL(this.#host.oauth.tokenEndpoint).hostname),
    }
    try {
      return await work({ oauth, sender: [...this.#parties, auth], request })
    } catch (error) {
      throw toTokenError(error, oauth, what)
    }
  }

  /** @param redirectUri if a renewal has to send it again */
  #toToken(answer: OAuth.TokenEndpointResponse, redirectUri?: string): IssuedToken {
    const { tokenTtl = DEFAULTS.tokenTtl, clock = systemClock } = this.#options
    const { access_token: accessToken, refresh_token: refreshToken } = answer
    if (!TOKEN.test(accessToken)) throw new TokenError('the token is not well formed')
    const now = clock()
    const refreshLifetime = lifetime(Number(answer['refresh_token_expires_in']))
    const scopes = answer.scope?.split(/[\s,]+/).filter((scope) => scope !== '')
    return {
      accessToken,
      expiresAt: now + (lifetime(answer.expires_in) ?? tokenTtl),
      refreshToken,
      refreshExpiresAt: refreshLifetime === undefined ? undefined : now + refreshLifetime,
      redirectUri,
      origin: this.#host.origin,
      // GitHub separates scopes by commas, others by spaces (RFC 6749 section 3.3).
      scopes: scopes?.length ? scopes : undefined,
    }
  }
}

/** Scopes that relay needs and a token lacks. None if the code host does not name those of the token. */
export function missingScopes(
  { scopes }: Pick<OAuthServer, 'scopes'>,
  granted: readonly string[] | undefined,
): readonly string[] {
  return granted ? scopes.filter((scope) => !granted.includes(scope)) : []
}

/** 64 KiB: responses are below 4 KiB (GitHub), or a little larger if the tokens are JWTs (Gitea). */
const MAX_ANSWER = 65_536

/** Implements the library's `fetch`. Resolves once the whole response has arrived. @throws TokenError */
async function send(
  url: string,
  { headers, body }: { readonly headers: Record<string, string>; readonly body: URLSearchParams },
  { sendOnce = sendOverNetwork, timeLimit = TIME_LIMITS.tokenEndpoint, signal }: CallOptions,
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
    const elsewhere = redirectTarget(answer, url)
    if (elsewhere !== undefined) throw redirected(answer.status, elsewhere)
    // Checked here because the library parses it.
    if (excessOf(bytes.toString()) !== undefined) throw unavailable('answered JSON that is nested too deep')
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
    if (isError(error) && error.name === 'TimeoutError')
      throw new TokenError('the token endpoint did not answer in time', {
        passing: true,
        kind: 'provider_timeout',
      })
    throw unavailable(`could not be reached (${describeWithoutQuote(error)})`)
  }
}

/** Error for a redirect. It is not followed, because secrets are sent only to the configured endpoint. */
function redirected(status: number, elsewhere: string): TokenError {
  return new TokenError(
    `the token endpoint answered with a redirect that is not followed (${status}) to ${elsewhere}: if the code host has moved there, set RELAY_PROVIDER_URL`,
  )
}

function unavailable(what: string): TokenError {
  return new TokenError(`the token endpoint ${what}`, { passing: true })
}

/**
 * Syntax of a token: visible ASCII, as an Authorization header requires, and short enough for Node's 16 KiB of headers.
 */
const TOKEN = /^[\x21-\x7e]{1,8192}$/

/** 10 years in milliseconds. A longer lifetime means "for ever", and the end must still be a valid date. */
const MAX_LIFETIME = 10 * 365 * 86_400_000

/** Converts seconds to milliseconds. Some servers send 0 for a token that does not expire. */
function lifetime(seconds: number | undefined): number | undefined {
  if (seconds === undefined || !(seconds > 0)) return undefined
  return Math.min(Math.floor(seconds * 1000), MAX_LIFETIME)
}

/** Error codes of a server that is down or busy (RFC 6749 section 4.1.2.1). */
const PASSING: ReadonlySet<string> = new Set(['server_error', 'temporarily_unavailable'])

/** Converts an error of the library. Only its code is used, since it contains request and response. */
function toTokenError(error: unknown, oauth: OAuthLibrary, what: string): TokenError {
  if (error instanceof TokenError) return error
  const { code: kind, cause } = fieldsOf(error)
  const isRefusal =
    error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError
  const code: unknown = isRefusal ? error.error : fieldsOf(fieldsOf(cause)['body'])['error']
  if (typeof code === 'string' && code !== '')
    return /^[a-z_]{1,64}$/.test(code)
      ? new TokenError(`the provider answered ${code}`, { code, passing: PASSING.has(code) })
      : new TokenError('the provider gave an unknown error', { code: '' })
  if (kind === oauth.RESPONSE_IS_NOT_JSON || kind === oauth.PARSE_ERROR)
    return new TokenError('the response of the token endpoint is not JSON', { passing: true })
  return new TokenError(`${what}${typeof kind === 'string' ? ` (${kind})` : ''}`)
}
