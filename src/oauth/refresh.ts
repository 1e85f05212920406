import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { OAuthClient } from '../base/settings.js'
import { systemClock } from '../base/time.js'
import { outboundFetch } from '../providers/fetch.js'
import type { Holder, Refreshable, Tokens } from '../tokens/tokens.js'
import { oneAtATime } from './lock.js'
import type { OAuthParts } from './parts.js'
import { signInAgain } from './sign-in-again.js'
import { tokenFetch } from './token-fetch.js'

type Defaulted = Pick<OAuthParts, 'clock' | 'fetch' | 'exchangeTimeout'>

/** What renewing needs. */
export interface RenewOptions
  extends Pick<OAuthParts, 'provider' | 'client' | 'store' | 'tokenTtl' | 'log'>, Partial<Defaulted> {
  readonly tokens: Pick<Tokens, 'get' | 'refreshable' | 'renew' | 'dropRefresh'>
}

type RenewParts = RenewOptions & Defaulted

/** One minute: what a token must still live so that the work it is wanted for can be done with it. */
const MARGIN = 60_000

/** 10 s for the whole call to the token endpoint: well below the lifetime of the lock. */
const RENEWAL_TIMEOUT = 10_000

/**
 * The user's token, renewed if it has ended or lives less than a minute more and there is a refresh token (RFC 6749
 * section 6): once, however many ask at the same time, in however many processes. The new pair is stored before it is
 * given. `signal` ends the waiting for others; once the provider has been asked it is not heeded any more, because the
 * provider's answer is the only copy of the new pair.
 * @throws RelayError `unauthenticated`: never signed in, ended with nothing to renew it with, refused by the provider
 * (the refresh token is then forgotten), or from another provider (nothing is sent) · `not_configured`: the provider
 * does not know the OAuth client · `provider_failed`, `provider_timeout`: nothing has changed here · `timed_out`: others
 * are renewing it and do not finish · `storage`. AbortError, or the signal's reason, when `signal` aborts.
 */
export async function renew(
  options: RenewOptions,
  userId: string,
  cancellable: Cancellable = {},
): Promise<Holder> {
  const defaults = { clock: systemClock, fetch: outboundFetch, exchangeTimeout: RENEWAL_TIMEOUT }
  const parts: RenewParts = { ...defaults, ...options }
  const before = await parts.tokens.get(userId)
  const look = () => usable(parts, userId, before)
  const work = async (): Promise<Holder> => {
    // Another may have been done with it just before the lock was ours.
    const renewed = await look()
    if (renewed) return renewed
    cancellable.signal?.throwIfAborted()
    return renewWith(parts, userId, await means(parts, userId))
  }

  const holder = await look()
  if (holder) return holder
  // Who has nothing to renew need not wait for others.
  await means(parts, userId)
  return oneAtATime(parts, `refresh-lock:${userId}`, { look, work, ...cancellable })
}

/** The user's token if there is nothing to do about it: it lives on, is newer than `before`, or cannot be renewed. */
async function usable(
  { provider, client, tokens, clock }: RenewParts,
  userId: string,
  before: Holder | undefined,
): Promise<Holder | undefined> {
  const holder = await tokens.get(userId)
  if (!holder) return undefined
  if (holder.origin !== provider.origin) throw elsewhere(userId, holder.origin, provider.origin)
  const livesOn = holder.expiresAt - clock() >= MARGIN
  const isNew = holder.accessToken !== before?.accessToken
  const renewable = client !== undefined && (await tokens.refreshable(userId)) !== undefined
  return livesOn || isNew || !renewable ? holder : undefined
}

interface Means {
  readonly used: Refreshable
  readonly client: OAuthClient
}

/** What to renew the user's token with. */
async function means({ provider, client, tokens }: RenewParts, userId: string): Promise<Means> {
  const used = await tokens.refreshable(userId)
  if (!used)
    throw new RelayError('unauthenticated', `${userId} is not signed in, or no longer; sign in: relay login`)
  if (used.origin !== provider.origin) throw elsewhere(userId, used.origin, provider.origin)
  if (!client) {
    throw signInAgain(
      `The token of ${userId} has ended; renewing it needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
    )
  }
  return { used, client }
}

async function renewWith(parts: RenewParts, userId: string, { used, client }: Means): Promise<Holder> {
  const { provider, tokens, tokenTtl, clock, fetch, exchangeTimeout, log } = parts
  // Most commands find a token that lives on, and need nothing of this.
  const [{ refreshGrant, renewalError }, { toSignIn }] = await Promise.all([
    import('./refresh-grant.js'),
    import('./token-endpoint.js'),
  ])
  const { origin, oauth: endpoints } = provider
  const endpoint = { endpoints, client, fetch: tokenFetch(fetch, { timeout: exchangeTimeout }) }
  const grant = await refreshGrant(endpoint, used.refreshToken).catch((error: unknown) =>
    renewalError(error, userId),
  )
  if (grant instanceof RelayError) {
    // Refused, it is dead, unless another process took the lock over and has renewed the token.
    const overtaken = grant.kind === 'unauthenticated' && !(await tokens.dropRefresh(userId, used))
    const holder = overtaken ? await usable(parts, userId, undefined) : undefined
    if (holder) return holder
    throw grant
  }
  // From the provider's answer to the end of this write the pair is only here: nothing comes between.
  const renewed = toSignIn(grant, { origin, ttl: tokenTtl, now: clock() })
  if (await tokens.renew(userId, used, renewed)) {
    log.debug(`Renewed the token of ${userId}`)
    return { userId, accessToken: renewed.accessToken, expiresAt: renewed.expiresAt, origin }
  }
  const holder = await usable(parts, userId, undefined)
  if (!holder) throw signInAgain(`The token of ${userId} was revoked meanwhile`)
  return holder
}

function elsewhere(userId: string, from: string, to: string): RelayError {
  return signInAgain(`The token of ${userId} is from ${from} and is not sent to ${to}`)
}
