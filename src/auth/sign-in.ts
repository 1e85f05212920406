import { createHash, randomBytes } from 'node:crypto'
import type { Cancellable } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log, LogThrottle } from '../base/log.js'
import type { OAuthClient } from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import type { OAuthHost, TokenFacts } from '../codehost/host.js'
import type { Store } from '../store/kv.js'
import type { Tokens } from '../tokens/tokens.js'
import type { AccountParts } from './accounts.js'
import type { SignInLimiter } from './starts.js'
import { type CallOptions, missingScopes, TokenEndpoint, TokenError } from './token-endpoint.js'
import { fieldsOf } from '../json/parse.js'

/** Dependencies of a sign-in in the browser. */
export interface SignInParts extends Omit<CallOptions, 'signal'>, AccountParts {
  readonly host: OAuthHost
  /** Undefined: sign-in is not set up. */
  readonly client: OAuthClient | undefined
  readonly store: Store
  readonly tokens: Tokens
  /** Public address of the callback, as registered at the code host. */
  readonly redirectUri: () => string
  readonly clock: Clock
  readonly log: Log
  /** Rate limiter for lines that any web page can cause by opening the callback. */
  readonly throttle: LogThrottle
  readonly starts: SignInLimiter
  /** Called once the outcome of a sign-in is stored for the program that waits for it. Must not throw. */
  readonly onOutcome?: (() => void) | undefined
}

/**
 * Reasons of a failed sign-in, with which the browser is redirected. `invalid_state`: missing, unknown, used, expired,
 * or of another browser or code host · `access_denied`: the user refused · `provider_unavailable`: the code host
 * failed, gave no usable response in time, or gave a token without an account · `storage_failed` · `exchange_failed`:
 * everything else.
 */
export const SIGN_IN_FAILURE_REASONS = [
  'invalid_state',
  'access_denied',
  'provider_unavailable',
  'exchange_failed',
  'storage_failed',
] as const
export type SignInFailureReason = (typeof SIGN_IN_FAILURE_REASONS)[number]

/** Outcome of a sign-in, for the browser. */
export type SignInOutcome =
  | { readonly auth: 'success'; readonly userId: string }
  | { readonly auth: 'error'; readonly reason: SignInFailureReason }

/** Outcome of a sign-in, for the program that waits for it. */
export type LoginOutcome =
  | { readonly auth: 'success'; readonly userId: string; readonly account: string }
  | { readonly auth: 'error'; readonly reason: SignInFailureReason; readonly why: string }

/** Cookie that proves to the callback that this browser began the sign-in. Each sign-in has its own, so that two do not collide. */
export interface Cookie {
  readonly name: string
  readonly value: string
  /** Path of the callback. Browsers send the cookie nowhere else. */
  readonly path: string
  readonly secure: boolean
  /** Seconds. */
  readonly maxAge: number
}

/** Properties that identify a cookie to a browser, and are needed to delete it. */
type CookiePlace = Pick<Cookie, 'name' | 'path' | 'secure'>

export interface CallbackRequest {
  readonly query: URLSearchParams
  /** All cookies of the request, by name. */
  readonly cookies: Readonly<Record<string, string>>
}

/** A sign-in whose user is at the code host. */
interface PendingSignIn {
  readonly provider: string
  readonly origin: string
  readonly userId: string
  /** PKCE code verifier (RFC 7636 section 4.1). */
  readonly verifier: string
  /** Redirect URI as it was sent (RFC 6749 section 4.1.3), even if the settings have changed since. */
  readonly redirectUri: string
  /** Nonce under which a program waits for the outcome. */
  readonly login?: string | undefined
}

/** 10 minutes in milliseconds, the lifetime of GitHub's codes. */
const STATE_LIFETIME = 600_000
const COOKIE = 'relay_oauth_'

/**
 * Begins a sign-in: stores it for 10 minutes, and returns the address of the consent page (RFC 6749 section 4.1.1, RFC
 * 7636 section 4.3) with the cookie to set. With `login`, its outcome is published under that nonce.
 * @throws RelayError `not_configured` without an OAuth client; the code host's `refusal`; `rate_limited`; `storage`
 */
export async function beginSignIn(
  parts: SignInParts,
  userId: string,
  login?: string,
): Promise<{ readonly location: string; readonly cookie: Cookie }> {
  const { host, client, store, clock } = parts
  if (!client)
    throw new RelayError(
      'not_configured',
      'Sign-in is not configured: set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET',
    )
  // The user would enter a password there.
  if (host.refusal) throw host.refusal
  parts.starts.admit()
  const redirectUri = parts.redirectUri()
  const { calculatePKCECodeChallenge, generateRandomCodeVerifier } = await import('./oauth.js')
  const verifier = generateRandomCodeVerifier()
  const value = randomBytes(32).toString('base64url')
  const state = stateOf(value)
  const { name: provider, origin } = host
  const pending = { provider, origin, userId, verifier, redirectUri, ...(login !== undefined && { login }) }
  await store.put(stateKey(state), pending, clock() + STATE_LIFETIME)
  const { authorizationEndpoint, scopes } = host.oauth
  const url = new URL(authorizationEndpoint)
  const parameters = {
    response_type: 'code',
    client_id: client.id,
    redirect_uri: redirectUri,
    scope: scopes.join(' '),
    state,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    // Never `plain`: GitHub refuses it, and Gitea 1.15 stores it wrongly.
    code_challenge_method: 'S256',
  }
  for (const [name, text] of Object.entries(parameters)) url.searchParams.set(name, text)
  const place = placeOf(cookieName(state), redirectUri)
  return { location: url.href, cookie: { ...place, value, maxAge: STATE_LIFETIME / 1000 } }
}

/**
 * Completes a sign-in (RFC 6749 section 4.1.2): redeems its state, so that only one of several callbacks can succeed,
 * then exchanges the code, saves the token and publishes the outcome. `spent` are the cookies to delete. Never throws:
 * a failure is an outcome and a line in the log.
 */
export async function completeSignIn(
  parts: SignInParts,
  request: CallbackRequest,
): Promise<{ readonly outcome: SignInOutcome; readonly spent: readonly CookiePlace[] }> {
  const { query, cookies } = request
  // The Cancel button of Gitea 1.15 is a link without state or error (templates/user/auth/grant.tmpl). It ends every
  // sign-in of this browser.
  const isBareCancel = !['state', 'code', 'error'].some((name) => query.has(name))
  const given = query.get('state') ?? ''
  const ended = isBareCancel ? begunBy(cookies) : [{ state: given, name: cookieName(given) }]
  const logins: string[] = []
  let published: LoginOutcome
  let outcome: SignInOutcome
  try {
    let pending: PendingSignIn | undefined
    // Redeemed first, so that a state works once even if the rest fails.
    for (const { state } of ended) {
      pending = await redeemPending(parts.store, state)
      if (pending?.login !== undefined) logins.push(pending.login)
    }
    if (isBareCancel) throw new SignInFailure('access_denied', 'the user cancelled at the provider')
    const { userId, account } = await complete(parts, request, pending)
    outcome = { auth: 'success', userId }
    published = { ...outcome, account: account ?? '' }
  } catch (error) {
    const { reason, message, cause } = toFailure(error, parts)
    const line = `Sign-in failed: ${reason}: ${message}`
    if (cause === undefined) parts.throttle(line, () => parts.log.warn(line))
    else parts.throttle(line, () => parts.log.error(line, cause), 'error')
    outcome = { auth: 'error', reason }
    published = { ...outcome, why: message }
  }
  for (const login of logins) await publish(parts, login, published)
  const sent = ended.filter(({ name }) => cookies[name] !== undefined)
  const redirectUri = parts.redirectUri()
  return { outcome, spent: sent.map(({ name }) => placeOf(name, redirectUri)) }
}

/** Sign-ins whose cookie the browser has sent, by state and name of the cookie. */
function begunBy(cookies: CallbackRequest['cookies']) {
  return Object.entries(cookies)
    .filter(([name]) => name.startsWith(COOKIE))
    .map(([name, value]) => ({ state: stateOf(value), name }))
}

/**
 * Checks the callback, exchanges its code and saves the token. The account is null if the code host does not name it.
 */
async function complete(
  parts: SignInParts,
  { query, cookies }: CallbackRequest,
  pending: PendingSignIn | undefined,
): Promise<{ readonly userId: string; readonly account: string | null }> {
  const { host, client, log, tokens, onAccount } = parts
  const { origin, oauth } = host
  const [state = '', ...more] = query.getAll('state')
  const cookie = cookies[cookieName(state)]
  if (cookie === undefined)
    // A sign-in that begins at `localhost` returns to 127.0.0.1, which is another site to a browser.
    throw new SignInFailure(
      'invalid_state',
      `the browser sent no cookie for this sign-in; start it at ${new URL(parts.redirectUri()).origin}`,
    )
  const isOurs = pending?.provider === host.name && pending.origin === origin && stateOf(cookie) === state
  if (!isOurs || more.length > 0)
    throw new SignInFailure(
      'invalid_state',
      'the state is unknown, used or expired, or was made for another provider',
    )
  if (!client) throw new SignInFailure('exchange_failed', 'no OAuth client is configured')
  const { userId, redirectUri, verifier, login } = pending
  const endpoint = new TokenEndpoint(host, client, parts)
  const issued = await endpoint.exchange(query, { state, redirectUri, verifier })
  const missing = missingScopes(oauth, issued.scopes)
  if (missing.length > 0)
    log.warn(`The provider did not grant ${missing.join(', ')}: some actions may be refused`)
  const account = await accountOf(host, issued.accessToken).then(
    (facts) => facts.login,
    (error: unknown) => {
      // `relay login` names the account, so page and command must agree on whether there is one.
      if (login !== undefined) throw error
      log.warn(toRelayError(error).message)
      return null
    },
  )
  // The previous refresh token may have outlived its access token.
  const { owner, refreshable } = await tokens.save(userId, { ...issued, url: host.url, account })
  const before = owner ?? refreshable
  onAccount({ userId, origin, account, before: before && (before.account ?? null), login })
  return { userId, account }
}

/**
 * Reads the code host's information about a token that was just issued.
 * @throws RelayError as `Account.facts`, with a message that the API failed and not the token endpoint, and at which
 * address
 */
export async function accountOf(
  host: OAuthHost,
  accessToken: string,
  options: Cancellable = {},
): Promise<TokenFacts> {
  try {
    return await host.as(accessToken, options).facts()
  } catch (error) {
    if (!(error instanceof RelayError) || error.kind === 'cancelled') throw error
    const { kind, message, retryAfter } = error
    const what = `a token was issued, but the API at ${host.apiUrl} did not say whose it is`
    throw new RelayError(kind, `${what}: ${message}`, { retryAfter, cause: error })
  }
}

/**
 * Failure of a sign-in with its reason. The message is one line without code, token or secret; `cause` is an error of
 * relay itself.
 */
class SignInFailure extends Error {
  readonly reason: SignInFailureReason

  constructor(reason: SignInFailureReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

function toFailure(error: unknown, { host }: SignInParts): SignInFailure {
  if (error instanceof SignInFailure) return error
  if (error instanceof TokenError) {
    const { code, message, passing } = error
    // An error code may come from the browser instead of the endpoint.
    const where = code === undefined ? ` (${host.oauth.tokenEndpoint})` : ''
    if (passing) return new SignInFailure('provider_unavailable', message + where)
    return new SignInFailure(code === 'access_denied' ? code : 'exchange_failed', message)
  }
  if (!(error instanceof RelayError))
    return new SignInFailure('exchange_failed', 'internal error', { cause: error })
  const { kind, message } = error
  if (kind === 'storage') return new SignInFailure('storage_failed', message, { cause: error })
  return new SignInFailure('provider_unavailable', message)
}

function cookieName(state: string): string {
  return `${COOKIE}${createHash('sha256').update(state).digest('hex').slice(0, 8)}`
}

function placeOf(name: string, redirectUri: string): CookiePlace {
  const { pathname: path, protocol } = new URL(redirectUri)
  return { name, path, secure: protocol === 'https:' }
}

/**
 * State that belongs to a cookie: SHA-256 of its value, base64url (RFC 6749 section 10.12). It does not reveal the
 * cookie, but the cookie alone finds the sign-in.
 */
export function stateOf(cookie: string): string {
  return createHash('sha256').update(cookie).digest('base64url')
}

/** Syntax of a state: 32 bytes in base64url. Other text may be no valid key of the store. */
const STATE = /^[\w-]{43}$/
const stateKey = (state: string): string => `oauth-state:${state}`

/**
 * Redeems a pending sign-in, once. Undefined for a state that is unknown, used or expired. @throws RelayError `storage`
 */
async function redeemPending(store: Store, state: string): Promise<PendingSignIn | undefined> {
  const pending = STATE.test(state) ? await store.consume(stateKey(state)) : undefined
  return isPending(pending) ? pending : undefined
}

function isPending(value: unknown): value is PendingSignIn {
  const { login = '', ...fields } = fieldsOf(value)
  const names = ['provider', 'origin', 'userId', 'verifier', 'redirectUri']
  return [login, ...names.map((name) => fields[name])].every((field) => typeof field === 'string')
}

/** 5 minutes in milliseconds for a sign-in in the browser, and for reading its outcome. */
export const LOGIN_LIMIT_MS = 300_000
const loginKey = (login: string): string => `login:${login}`

/**
 * Parses the nonce under which a program waits for an outcome: 16 to 64 random characters of `[A-Za-z0-9_-]`.
 * @throws RelayError `bad_request`
 */
export function parseLogin(text: string): string {
  if (!/^[\w-]{16,64}$/.test(text)) throw new RelayError('bad_request', 'Invalid login')
  return text
}

/** Publishes an outcome. A failure is only logged, since the sign-in itself has ended. */
async function publish(
  { store, clock, log, onOutcome }: SignInParts,
  login: string,
  outcome: LoginOutcome,
): Promise<void> {
  try {
    await store.put(loginKey(login), { ...outcome }, clock() + LOGIN_LIMIT_MS)
    onOutcome?.()
  } catch (error) {
    log.error('The outcome of this sign-in could not be stored, so relay login does not see it', error)
  }
}

function isOutcome(value: unknown): value is LoginOutcome {
  const { auth } = fieldsOf(value)
  return auth === 'success' || auth === 'error'
}

/**
 * Waits for the outcome of the sign-in with this nonce, in any process, and returns it once.
 * @param looks yields whenever the store may have the outcome; the wait ends with it
 * @throws RelayError `timed_out` at that end; `storage`; errors of `looks`
 */
export async function awaitLogin(
  store: Store,
  login: string,
  wakeups: AsyncIterable<unknown>,
): Promise<LoginOutcome> {
  const key = loginKey(login)
  // By the wall clock, by which its state expires, too.
  const until = systemClock() + LOGIN_LIMIT_MS
  for await (const _ of wakeups) {
    const outcome = (await store.get(key)) === undefined ? undefined : await store.consume(key)
    if (isOutcome(outcome)) return outcome
    if (systemClock() >= until) break
  }
  throw new RelayError('timed_out', 'No sign-in was completed within 5 minutes')
}
