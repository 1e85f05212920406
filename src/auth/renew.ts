import type { Cancellable } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { OAuthClient } from '../base/settings.js'
import { systemClock } from '../base/time.js'
import type { OAuthHost } from '../codehost/host.js'
import { withLock } from '../store/lock.js'
import type { StoreReader, StoreUpdater } from '../store/kv.js'
import type { AccountRef, TokenOwner, Tokens } from '../tokens/tokens.js'
import {
  type CallOptions,
  type IssuedToken,
  isUnknownClient,
  TokenEndpoint,
  TokenError,
} from './token-endpoint.js'

/** Dependencies of renewing and revoking a token. */
export interface RenewParts extends Omit<CallOptions, 'signal'> {
  readonly host: OAuthHost
  /** Undefined: no token can be renewed. */
  readonly client: OAuthClient | undefined
  readonly store: StoreReader & StoreUpdater
  readonly tokens: Tokens
  readonly log: Log
}

/** Remaining lifetime below which a token is renewed, for the caller's work: one minute, in milliseconds. */
const MIN_LIFETIME_MS = 60_000
/** Wait for a process that died while renewing, and another one after it. Milliseconds. */
const LOCK_WAIT_MS = 45_000

/** True if a token needs no renewal because it is valid for at least a minute. */
export function isFresh({ expiresAt }: { readonly expiresAt: number }, now = systemClock()): boolean {
  return expiresAt - now >= MIN_LIFETIME_MS
}

/** Error that only a new sign-in resolves. The command that shows it adds how to sign in. */
export function signInAgain(why: string): RelayError {
  return new RelayError('unauthenticated', why)
}

/**
 * Returns the user's token. If it has expired, or is valid for less than a minute, it is first renewed if possible (RFC
 * 6749 section 6). Only one process renews, since that ends the previous pair, and the new pair is stored before it is
 * returned. The previous token stays a valid bearer until it expires. `signal` stops the wait for other processes, but
 * not the exchange.
 * @throws RelayError `unauthenticated`: not signed in, expired without a refresh token, refused by the code host (which
 * removes the refresh token here), or of another code host (nothing is sent) · `not_configured`: the code host does not
 * know the OAuth client · `provider_failed`, `provider_timeout`: nothing changes here · `timed_out`: another process
 * renews it and does not finish · `storage`. The signal's reason, or an AbortError, when `signal` aborts.
 */
export async function renewToken(
  parts: RenewParts,
  userId: string,
  { signal }: Cancellable = {},
): Promise<TokenOwner> {
  const { client, store, tokens, clock = systemClock } = parts
  const before = await tokens.get(userId)
  const look = async (): Promise<TokenOwner | undefined> => {
    const owner = await stored(parts, userId)
    if (!owner || owner.accessToken !== before?.accessToken) return owner
    const stays = isFresh(owner, clock()) || !client || !(await tokens.refreshable(userId))
    return stays ? owner : undefined
  }
  const current = await look()
  if (current) return current
  await credentials(parts, userId)
  const options = { what: 'renewing a token', wait: LOCK_WAIT_MS, look, signal, clock }
  return withLock(store, `refresh-lock:${userId}`, options, async () => {
    // Another process may have renewed it just before this one got the lock.
    const renewed = await look()
    if (renewed) return renewed
    signal?.throwIfAborted()
    return exchange(parts, userId)
  })
}

/** Reads the user's token. @throws RelayError `unauthenticated` if it is of another code host */
async function stored({ host, tokens }: RenewParts, userId: string): Promise<TokenOwner | undefined> {
  const owner = await tokens.get(userId)
  if (owner) checkOrigin(host, userId, owner)
  return owner
}

function checkOrigin(host: RenewParts['host'], userId: string, { origin }: AccountRef): void {
  if (origin === host.origin) return
  throw signInAgain(`The token of ${userId} is from ${origin} and is not sent to ${host.origin}`)
}

/**
 * Reads the refresh token and the client. @throws RelayError `unauthenticated` without a refresh token of this code
 * host, or without an OAuth client
 */
async function credentials({ host, client, tokens }: RenewParts, userId: string) {
  const used = await tokens.refreshable(userId)
  if (!used) throw signInAgain(`${userId} is not signed in, or the sign-in has ended`)
  checkOrigin(host, userId, used)
  if (!client)
    throw signInAgain(
      `The token of ${userId} has ended; renewing it needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
    )
  return { used, client }
}

/**
 * Exchanges the refresh token and stores the new pair. A concurrent revocation or sign-in wins, and the new pair is
 * revoked.
 */
async function exchange(parts: RenewParts, userId: string): Promise<TokenOwner> {
  const { host, tokens, log } = parts
  const { used, client } = await credentials(parts, userId)
  let issued: IssuedToken
  try {
    // Without the signal, because the response is the only copy of the new pair.
    issued = await new TokenEndpoint(host, client, parts).refresh(used)
  } catch (error) {
    if (!(error instanceof TokenError)) throw error
    const isInvalid = INVALID_TOKEN.has(error.code ?? '')
    // A refresh token that another process or a new sign-in has replaced is not the refused one.
    const isReplaced = isInvalid && !(await tokens.dropRefresh(userId, used))
    const current = isReplaced ? await stored(parts, userId) : undefined
    if (current) return current
    const what = `The token of ${userId} could not be renewed (${error.message})`
    if (isInvalid) throw signInAgain(what)
    if (!isUnknownClient(error)) throw new RelayError(error.kind, what)
    throw new RelayError('not_configured', `${what}; check RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`)
  }
  const { accessToken, expiresAt, origin } = issued
  const owner = { userId, accessToken, expiresAt, origin, account: used.account }
  let failure: RelayError | undefined
  const store = (): Promise<boolean> => tokens.renew(userId, used, issued)
  // The pair is stored directly after the response. A failed write is repeated, since a shared store may have committed
  // it all the same.
  const isStored = await store()
    .catch(store)
    .catch((error: unknown) => {
      failure = toRelayError(error)
      return false
    })
  if (isStored || (await tokens.get(userId))?.accessToken === accessToken) {
    log.debug(`Renewed the token of ${userId}`)
    return owner
  }
  // A pair that is not stored must not stay valid at the code host.
  await drop(parts, owner)
  if (failure) throw failure
  const current = await stored(parts, userId)
  if (!current) throw signInAgain(`The token of ${userId} was revoked meanwhile`)
  return current
}

/** Error codes for an invalid refresh token: RFC 6749 section 5.2, GitHub, Gitea (for a used one). */
const INVALID_TOKEN: ReadonlySet<string> = new Set([
  'invalid_grant',
  'bad_refresh_token',
  'unauthorized_client',
])

/** Revokes a token that is not stored, or warns that it stays valid. */
async function drop(parts: RenewParts, owner: TokenOwner): Promise<void> {
  const ended = await revokeAt(parts, owner)
  if (ended === 'revoked') return
  const why = typeof ended === 'object' ? `: ${ended.failed.message}` : ''
  parts.log.warn(
    `A renewed token of ${owner.userId} was dropped, and may still be valid at ${owner.origin}${why}`,
  )
}

export interface RevokeOptions extends Cancellable {
  /** Does not revoke the token at the code host. */
  readonly local?: boolean | undefined
}

export interface Revocation {
  /** False if nothing was stored for the user. */
  readonly removed: boolean
  /**
   * Result at the code host. `unsupported`: only the user can revoke it there · `skipped`: not requested, nothing to
   * revoke, or the code host refused to renew it, so that it has ended · `elsewhere`: it is of another code host · `no
   * client`: revoking needs the OAuth client · `expired`: its refresh token, which ends only with a valid token, may
   * still be valid, and could not be renewed.
   */
  readonly upstream:
    | 'revoked'
    | 'unsupported'
    | 'skipped'
    | 'elsewhere'
    | 'no client'
    | 'expired'
    | { readonly failed: RelayError }
}

/**
 * Removes all tokens of the user here, then revokes the removed one at its code host. An expired one is renewed first,
 * so that its refresh token ends, too. A failure at the code host is part of the result.
 * @throws RelayError `storage`; the signal's reason, or an AbortError, when `signal` aborts before anything was removed
 */
export async function revokeToken(
  parts: RenewParts,
  userId: string,
  { local = false, signal }: RevokeOptions = {},
): Promise<Revocation> {
  const { tokens } = parts
  const isExpired = !(await tokens.get(userId)) && (await tokens.refreshable(userId)) !== undefined
  if (isExpired && !local)
    await renewToken(parts, userId, { signal }).catch((error: unknown) => {
      signal?.throwIfAborted()
      // The remaining refresh token, if any, decides what may still be valid.
      if (!(error instanceof RelayError) || error.kind === 'storage') throw error
    })
  // Another process may have renewed the token, so the removed one counts.
  const { owner, refreshable } = await tokens.revoke(userId)
  const removed = isExpired || owner !== undefined || refreshable !== undefined
  if (local) return { removed, upstream: 'skipped' }
  if (owner) return { removed, upstream: await revokeAt(parts, owner, { signal }) }
  return { removed, upstream: refreshable ? 'expired' : 'skipped' }
}

async function revokeAt(
  { host, client }: RenewParts,
  { accessToken, origin }: TokenOwner,
  options: Cancellable = {},
): Promise<Revocation['upstream']> {
  if (origin !== host.origin) return 'elsewhere'
  const account = host.as(accessToken, options)
  if (!account.revoke) return 'unsupported'
  if (!client) return 'no client'
  try {
    await account.revoke(client)
    return 'revoked'
  } catch (error) {
    return { failed: toRelayError(error) }
  }
}
