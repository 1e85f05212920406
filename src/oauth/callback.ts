import type { Cancellable } from '../base/abort.js'
import { cookieName, signInCookies } from './cookie.js'
import { publishOutcome } from './login.js'
import { providerRefusal, SignInError, toSignInError, type Outcome } from './outcome.js'
import type { OAuthParts } from './parts.js'
import { stateOf, takeState, type PendingSignIn, type TakenSignIn } from './state.js'
import { missingScopes } from './scopes.js'
import type { TokenResponse } from './token-endpoint.js'
import { tokenFetch } from './token-fetch.js'

export interface CallbackRequest {
  readonly query: URLSearchParams
  /** All cookies of the request, by name. */
  readonly cookies: Readonly<Record<string, string>>
}

/**
 * Completes a sign-in (RFC 6749 section 4.1.2): takes the state, checks the issuer, exchanges the code, saves the token and
 * publishes the outcome. Never throws: a failure is an outcome and a log line.
 */
export async function callback(
  parts: OAuthParts,
  request: CallbackRequest,
  options: Cancellable = {},
): Promise<Outcome> {
  const logins: string[] = []
  let outcome: Outcome
  try {
    let taken: TakenSignIn | undefined
    // Always first, so that a state works once even if the rest fails.
    for (const { state, cookie } of endedSignIns(request)) {
      taken = await takeState(parts.store, state, cookie)
      if (taken?.pending.login !== undefined) logins.push(taken.pending.login)
    }
    if (isBareCancel(request)) throw new SignInError('access_denied', 'the user cancelled at the provider')
    outcome = {
      auth: 'success',
      userId: await signIn(parts, request, validateState(parts, request, taken), options),
    }
  } catch (error) {
    outcome = failure(parts, error)
  }
  for (const login of logins) await publishOutcome(parts, login, outcome)
  return outcome
}

/** Whether this is Cancel of Gitea 1.15, a link without state or error (templates/user/auth/grant.tmpl). */
function isBareCancel({ query }: CallbackRequest): boolean {
  return !['state', 'code', 'error'].some((name) => query.has(name))
}

/** A sign-in that a callback ends: its state, and the name and value of its cookie. */
interface EndedSignIn {
  readonly state: string
  readonly name: string
  readonly cookie: string | undefined
}

/** The sign-in that the callback names; if it names none, every sign-in whose cookie the browser sent. */
export function endedSignIns(request: CallbackRequest): EndedSignIn[] {
  const { query, cookies } = request
  if (isBareCancel(request))
    return signInCookies(cookies).map(([name, cookie]) => ({ state: stateOf(cookie), name, cookie }))
  const state = query.get('state') ?? ''
  const name = cookieName(state)
  return [{ state, name, cookie: cookies[name] }]
}

function failure({ log, throttle }: OAuthParts, error: unknown): Outcome {
  const { reason, message, cause } = toSignInError(error)
  const line = `Sign-in failed: ${reason}: ${message}`
  if (cause === undefined) throttle(line, () => log.warn(line))
  else throttle(line, () => log.error(line, cause), 'error')
  return { auth: 'error', reason }
}

async function signIn(
  parts: OAuthParts,
  { query }: CallbackRequest,
  pending: PendingSignIn,
  options: Cancellable,
): Promise<string> {
  checkIssuer(query, parts.provider.oauth.issuer)
  const error = single(query, 'error')
  if (error) throw providerRefusal(error)
  if (!single(query, 'code')) throw failed('the provider sent no code')
  if (!parts.client) throw failed('no OAuth client is configured')
  // Loaded late: most instances see no sign-in.
  const [{ exchange }, { toTokenGrant }] = await Promise.all([
    import('./grants.js'),
    import('./token-endpoint.js'),
  ])
  const response = await exchange({
    endpoints: parts.provider.oauth,
    client: parts.client,
    callback: query,
    state: query.get('state') ?? '',
    redirectUri: pending.redirectUri,
    verifier: pending.verifier,
    fetch: tokenFetch({ ...parts, ...options }),
  })
  warnOfMissingScopes(parts, response)
  const terms = { origin: parts.provider.origin, ttl: parts.tokenTtl, now: parts.clock() }
  await parts.tokens.save(pending.userId, toTokenGrant(response, terms))
  return pending.userId
}

/** Returns the pending sign-in if it was started here, with this provider and in this browser. */
function validateState(
  { provider, redirectUri }: OAuthParts,
  { query, cookies }: CallbackRequest,
  taken: TakenSignIn | undefined,
): PendingSignIn {
  const states = query.getAll('state')
  if (taken?.sameBrowser && states.length === 1) {
    const { pending } = taken
    if (pending.provider === provider.name && pending.origin === provider.origin) return pending
  }
  // A sign-in that starts at `localhost` returns to 127.0.0.1, which is another site to a browser.
  const why =
    cookies[cookieName(states[0] ?? '')] === undefined
      ? `the browser sent no cookie for this sign-in; start it at ${new URL(redirectUri()).origin}`
      : 'the state is unknown, used or expired, or was made for another provider'
  throw new SignInError('invalid_state', why)
}

/**
 * Checks `iss` (RFC 9207 section 2.4). A callback without one passes, and so does any where the provider's issuer is
 * unknown. Two of them always fail.
 */
function checkIssuer(query: URLSearchParams, issuer: string | undefined): void {
  const given = single(query, 'iss')
  if (issuer !== undefined && given !== undefined && given !== issuer) {
    throw failed('the callback came from another issuer')
  }
}

/** Value of a parameter. No parameter may come twice (RFC 6749 section 3.1). */
function single(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name)
  if (more.length > 0) throw failed(`the callback has ${name} twice`)
  return value
}

function failed(message: string): SignInError {
  return new SignInError('exchange_failed', message)
}

function warnOfMissingScopes({ provider, log }: OAuthParts, { scopes }: TokenResponse): void {
  const missing = missingScopes(provider, scopes)
  if (missing.length > 0) {
    log.warn(`The provider did not grant ${missing.join(', ')}: some actions may be refused`)
  }
}
