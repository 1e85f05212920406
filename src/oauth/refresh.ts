import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { OAuthClient } from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import { exclusively } from '../store/exclusively.js'
import type { TokenOwner, Refreshable, Tokens } from '../tokens/tokens.js'
import type { OAuthParts } from './parts.js'
import { renewalError, signInAgain } from './token-error.js'
import { tokenFetch } from './token-fetch.js'

export interface RenewOptions extends Omit<OAuthParts, 'tokens' | 'redirectUri' | 'clock' | 'throttle'> {
  readonly tokens: Pick<Tokens, 'get' | 'refreshable' | 'renew' | 'dropRefresh'>
  readonly clock?: Clock
}

type RenewParts = RenewOptions & Pick<OAuthParts, 'clock'>

/** Lifetime that a token must have left, so that the caller can finish its work: one minute. */
const MIN_LIFETIME_MS = 60_000

/** Time limit for getting the lock, in milliseconds: one owner that died, and another after it. */
const LOCK_WAIT = 45_000

/**
 * Returns the user's token. If it has expired or has less than a minute left, and there is a refresh token, it is renewed
 * first (RFC 6749 section 6). Concurrent calls, in any number of processes, renew it once. The new pair is stored before
 * it is returned. `signal` stops waiting for other processes. It has no effect once the request is sent to the provider,
 * because the response is the only copy of the new pair.
 * @throws RelayError `unauthenticated`: never signed in, expired without a refresh token, refused by the provider (which
 * removes the refresh token here), or from another provider (nothing is sent) · `not_configured`: the provider does not
 * know the OAuth client · `provider_failed`, `provider_timeout`: nothing changes here · `timed_out`: another process is
 * renewing it and does not finish · `storage`. AbortError, or the signal's reason, when `signal` aborts.
 */
export async function renew(
  options: RenewOptions,
  userId: string,
  cancellable: Cancellable = {},
): Promise<TokenOwner> {
  const parts: RenewParts = { clock: systemClock, ...options }
  const before = await parts.tokens.get(userId)
  const look = () => currentToken(parts, userId, before)
  const work = async (): Promise<TokenOwner> => {
    // Another process may have renewed it just before this one got the lock.
    const renewed = await look()
    if (renewed) return renewed
    cancellable.signal?.throwIfAborted()
    return renewWith(parts, userId, await refreshCredentials(parts, userId))
  }

  const current = await look()
  if (current) return current
  // Fails before it waits for other processes when there is nothing to renew.
  await refreshCredentials(parts, userId)
  const limits = { wait: LOCK_WAIT, what: 'renewing a token', clock: parts.clock }
  return exclusively(parts.store, `refresh-lock:${userId}`, { ...limits, look, ...cancellable }, work)
}

/** The user's token unless it has to be renewed: it is fresh, differs from `before`, or cannot be renewed. */
async function currentToken(
  { provider, client, tokens, clock }: RenewParts,
  userId: string,
  before: TokenOwner | undefined,
): Promise<TokenOwner | undefined> {
  const owner = await tokens.get(userId)
  if (!owner) return undefined
  if (owner.origin !== provider.origin) throw wrongOrigin(userId, owner.origin, provider.origin)
  const isNew = owner.accessToken !== before?.accessToken
  const renewable = client !== undefined && (await tokens.refreshable(userId)) !== undefined
  return isFresh(owner, clock()) || isNew || !renewable ? owner : undefined
}

/** Whether a token has at least a minute left. */
export function isFresh({ expiresAt }: Pick<TokenOwner, 'expiresAt'>, now: number): boolean {
  return expiresAt - now >= MIN_LIFETIME_MS
}

interface RefreshCredentials {
  readonly used: Refreshable
  readonly client: OAuthClient
}

/** Reads the credentials for renewing the user's token. */
async function refreshCredentials(
  { provider, client, tokens }: RenewParts,
  userId: string,
): Promise<RefreshCredentials> {
  const used = await tokens.refreshable(userId)
  if (!used)
    throw new RelayError(
      'unauthenticated',
      `${userId} is not signed in, or the sign-in has ended. Run relay login`,
    )
  if (used.origin !== provider.origin) throw wrongOrigin(userId, used.origin, provider.origin)
  if (!client) {
    throw signInAgain(
      `The token of ${userId} has ended; renewing it needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
    )
  }
  return { used, client }
}

async function renewWith(
  parts: RenewParts,
  userId: string,
  { used, client }: RefreshCredentials,
): Promise<TokenOwner> {
  const { provider, tokens, tokenTtl, clock, log } = parts
  // Loaded late: most commands find a fresh token and need none of this.
  const [{ refreshGrant }, { toTokenGrant }] = await Promise.all([
    import('./grants.js'),
    import('./token-endpoint.js'),
  ])
  const { origin, oauth: endpoints } = provider
  const endpoint = { endpoints, client, fetch: tokenFetch(parts) }
  const result = await refreshGrant(endpoint, used.refreshToken).catch((error: unknown) =>
    renewalError(error, userId),
  )
  if (result instanceof RelayError) {
    // The refresh token is invalid, unless another process took over the lock and renewed the token.
    const replaced = result.kind === 'unauthenticated' && !(await tokens.dropRefresh(userId, used))
    const current = replaced ? await currentToken(parts, userId, undefined) : undefined
    if (current) return current
    throw result
  }
  // Nothing may come between the response and this write: until then only this process has the pair.
  const renewed = toTokenGrant(result, { origin, ttl: tokenTtl, now: clock() })
  if (await tokens.renew(userId, used, renewed)) {
    log.debug(`Renewed the token of ${userId}`)
    return { userId, accessToken: renewed.accessToken, expiresAt: renewed.expiresAt, origin }
  }
  const current = await currentToken(parts, userId, undefined)
  if (!current) throw signInAgain(`The token of ${userId} was revoked meanwhile`)
  return current
}

function wrongOrigin(userId: string, from: string, to: string): RelayError {
  return signInAgain(`The token of ${userId} is from ${from} and is not sent to ${to}`)
}
