import type { Cancellable } from '../base/abort.js'
import type { Log } from '../base/log.js'
import { cookieName } from './cookie.js'
import { exchange } from './exchange.js'
import { leaveOutcome } from './login.js'
import { providerRefusal, SignInError, toSignInError, type Outcome } from './outcome.js'
import type { OAuthParts } from './parts.js'
import { takeState, type PendingSignIn, type TakenSignIn } from './state.js'
import { toSignIn, type Grant } from './token-endpoint.js'
import { tokenFetch } from './token-fetch.js'

export interface CallbackRequest {
  readonly query: URLSearchParams
  readonly cookie: (name: string) => string | undefined
}

/**
 * Ends a sign-in (RFC 6749 section 4.1.2): takes the state, checks the issuer, exchanges the code and saves the token; then
 * tells who waits for it. Never throws: a failure is an outcome, and a line in the log.
 */
export async function callback(
  parts: OAuthParts,
  request: CallbackRequest,
  options: Cancellable = {},
): Promise<Outcome> {
  let login: string | undefined
  let outcome: Outcome
  try {
    // First in every case: whatever comes of it, this state has had its chance.
    const taken = await takeSignIn(parts, request)
    login = taken?.pending.login
    outcome = {
      auth: 'success',
      userId: await signIn(parts, request, rightful(parts, request, taken), options),
    }
  } catch (error) {
    outcome = failure(parts.log, error)
  }
  if (login !== undefined) await leaveOutcome(parts, login, outcome)
  return outcome
}

function failure(log: Log, error: unknown): Outcome {
  const { reason, message, cause } = toSignInError(error)
  const line = `Sign-in failed: ${reason}: ${message}`
  if (cause === undefined) log.warn(line)
  else log.error(line, cause)
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
  const grant = await exchange({
    endpoints: parts.provider.oauth,
    client: parts.client,
    callback: query,
    state: query.get('state') ?? '',
    redirectUri: pending.redirectUri,
    verifier: pending.verifier,
    fetch: tokenFetch(parts.fetch, { timeout: parts.exchangeTimeout, ...options }),
  })
  warnOfMissingScopes(parts, grant)
  const terms = { origin: parts.provider.origin, ttl: parts.tokenTtl, now: parts.clock() }
  await parts.tokens.save(pending.userId, toSignIn(grant, terms))
  return pending.userId
}

async function takeSignIn(
  { store }: OAuthParts,
  { query, cookie }: CallbackRequest,
): Promise<TakenSignIn | undefined> {
  // The Cancel of older Gitea is a plain link to the callback.
  if (!['state', 'code', 'error'].some((name) => query.has(name))) {
    throw new SignInError('access_denied', 'the user turned back at the provider')
  }
  const state = query.get('state') ?? ''
  return takeState(store, state, cookie(cookieName(state)))
}

/** What was begun here, with this provider, in this browser. */
function rightful(
  { provider, redirectUri }: OAuthParts,
  { query, cookie }: CallbackRequest,
  taken: TakenSignIn | undefined,
): PendingSignIn {
  const states = query.getAll('state')
  if (taken?.sameBrowser && states.length === 1) {
    const { pending } = taken
    if (pending.provider === provider.name && pending.origin === provider.origin) return pending
  }
  // Who began at `localhost` comes back to 127.0.0.1, which to a browser is another site.
  const why =
    cookie(cookieName(states[0] ?? '')) === undefined
      ? `the browser brought no cookie of this sign-in; it must begin at ${new URL(redirectUri()).origin}`
      : 'the state is unknown, used or expired, or was made for another provider'
  throw new SignInError('invalid_state', why)
}

/**
 * RFC 9207 section 2.4. A provider that sends no `iss` may start to; one whose issuer we cannot know is not compared,
 * but two of them are always wrong.
 */
function checkIssuer(query: URLSearchParams, issuer: string | undefined): void {
  const given = single(query, 'iss')
  if (issuer !== undefined && given !== undefined && given !== issuer) {
    throw failed('the callback came from another issuer')
  }
}

/** A parameter's value. No parameter may be sent twice (RFC 6749 section 3.1). */
function single(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name)
  if (more.length > 0) throw failed(`the callback has ${name} twice`)
  return value
}

function failed(message: string): SignInError {
  return new SignInError('exchange_failed', message)
}

function warnOfMissingScopes({ provider, log }: OAuthParts, { scopes }: Grant): void {
  const missing = provider.oauth.scopes.filter((scope) => scopes && !scopes.includes(scope))
  if (missing.length > 0) {
    log.warn(`The provider did not grant ${missing.join(', ')}: some actions may be refused`)
  }
}
