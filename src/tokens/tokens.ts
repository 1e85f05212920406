import { hash, timingSafeEqual } from 'node:crypto'
import { type Clock, systemClock } from '../base/time.js'
import type { Records, Store } from '../store/kv.js'
import type { Tx } from '../store/sql.js'

/** 2 s for the keychain where other requests wait for it. It may ask the user, and then takes up to a minute. */
export const KEYCHAIN_LIMIT_MS = 2000

/** Result of a sign-in or a renewal. Times are milliseconds since 1970-01-01 UTC. */
export interface TokenGrant {
  readonly accessToken: string
  readonly expiresAt: number
  readonly refreshToken?: string | undefined
  /** Default: the refresh token stays until it is replaced or revoked. */
  readonly refreshExpiresAt?: number | undefined
  /** Redirect URI of the sign-in, if the code host requires it again for a renewal. */
  readonly redirectUri?: string | undefined
  /** The provider's origin, the only one to which the tokens may be sent. */
  readonly origin: string
  /** The provider's address, which can have a path. A renewal preserves it. */
  readonly url?: string | undefined
  /** Account at the provider. Null if the provider did not name it. A renewal preserves it. */
  readonly account?: string | null | undefined
}

/** An account at a provider. */
export interface AccountRef {
  readonly origin: string
  /** Account at the provider. Null or undefined if the provider did not name it. */
  readonly account?: string | null | undefined
}

/** The account of one of the application's users. */
export interface UserAccount extends AccountRef {
  readonly userId: string
}

/** A user who is signed in. `expiresAt` is milliseconds since 1970-01-01 UTC. */
export interface TokenOwner extends UserAccount {
  readonly accessToken: string
  readonly expiresAt: number
}

/** An account for which a command acts although `relay login` did not sign in as it. */
export interface OtherAccount {
  /** Null if the provider did not name it. */
  readonly account: string | null
  /** Account of the last `relay login` for this user. Null if there was none. */
  readonly lastLogin: string | null
}

/** A refresh token. It may outlive its access token. */
export interface Refreshable {
  readonly refreshToken: string
  /** The provider's origin, the only one to which the refresh token may be sent. */
  readonly origin: string
  /** As in {@link TokenGrant}. */
  readonly redirectUri?: string | undefined
  readonly url?: string | undefined
  /** As in {@link TokenOwner}. Needed because the record of the access token may have expired. */
  readonly account?: string | null | undefined
}

/** Tokens that a revocation removed. */
export interface Removed {
  /** The access token, unless it had expired. */
  readonly owner: TokenOwner | undefined
  readonly refreshable: Refreshable | undefined
}

/** Last instant whose ISO form has a four-digit year. */
const LATEST = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Record `token:{userId}`, with exactly these fields; `expiresAt` is ISO 8601 in UTC. */
type TokenRecord = {
  readonly accessToken: string
  readonly expiresAt: string
}

/** Record `origin:{userId}`. `token` is the token's hash, so that the origin of one token never applies to another. */
type OriginRecord = {
  readonly origin: string
  readonly url?: string | undefined
  readonly token: string
  readonly account?: string | null | undefined
  /**
   * Hash of the token before a renewal, which is accepted until it expires. One is enough, since a token is renewed in
   * its last minute.
   */
  readonly previous?: { readonly token: string; readonly expiresAt: string } | undefined
}

/** Record `last-login:{userId}`. */
type LoginRecord = {
  readonly origin: string
  readonly account: string
}

const PREFIX = 'token:'
const tokenKey = (userId: string): string => PREFIX + userId
const originKey = (userId: string): string => `origin:${userId}`
const REFRESH_PREFIX = 'refresh:'
const refreshKey = (userId: string): string => REFRESH_PREFIX + userId
/** Key of the record of {@link Tokens.rememberLogin}. Revoking a token preserves it. */
const loginKey = (userId: string): string => `last-login:${userId}`
/** Prefix of a token's index entry; the user's id follows. A plain hash is safe because tokens are long and random. */
const bearerPrefix = (tokenHash: string): string => `bearer:${tokenHash}:`

/**
 * Tokens of all users. A token that expired, was revoked or was replaced by a new sign-in is unknown to every method
 * from that moment on, even if another process did it. Every method rejects with RelayError `storage` when the store
 * fails.
 */
export class Tokens {
  readonly #store: Store
  readonly #clock: Clock

  constructor(secrets: Store, clock: Clock = systemClock) {
    this.#store = secrets
    this.#clock = clock
  }

  /** Replaces everything stored for the user, in one transaction. Resolves to the replaced tokens. */
  save(userId: string, grant: TokenGrant): Promise<Removed> {
    const clock = this.#clock
    return this.#store.update(function* (records): Tx<Removed> {
      const removed = yield* removeAll(records, userId, clock())
      yield* put(records, userId, grant)
      return removed
    })
  }

  /** Saves the account of a `relay login`, so that a command notices a sign-in by another program. */
  rememberLogin(userId: string, { origin, account }: LoginRecord): Promise<void> {
    return this.#store.put(loginKey(userId), { origin, account })
  }

  /** Account of the last `relay login` for the user. */
  lastLogin(userId: string): Promise<LoginRecord | undefined> {
    return this.#store.get<LoginRecord>(loginKey(userId))
  }

  /**
   * Account that this token acts for, if `relay login` did not sign the user in as it. Also undefined for a user whom
   * the caller names, if there was no `relay login`: the profile then belongs to an application, whose users
   * sign in on its own pages.
   */
  async otherAccount(
    { userId, origin, account = null }: UserAccount,
    { isNamed }: { readonly isNamed: boolean },
  ): Promise<OtherAccount | undefined> {
    const last = await this.lastLogin(userId)
    if (last?.origin === origin && last.account === account) return undefined
    if (!last && isNamed && (await this.#store.list(loginKey(''))).length === 0) return undefined
    return { account, lastLogin: last?.account ?? null }
  }

  async get(userId: string): Promise<TokenOwner | undefined> {
    return (await this.#find(userId))?.owner
  }

  /** All signed-in users, in the order of their ids. */
  async owners(): Promise<readonly TokenOwner[]> {
    const users = (await this.#store.list(PREFIX)).map((key) => key.slice(PREFIX.length))
    const found = await Promise.all(users.map((userId) => this.get(userId)))
    return found.flatMap((each) => each ?? [])
  }

  /**
   * Addresses of the code hosts at which users are signed in, or can renew a sign-in. Sign-ins stored by an earlier
   * relay have origins instead.
   */
  async addresses(): Promise<readonly string[]> {
    const keys = [...(await this.#store.list(REFRESH_PREFIX)), ...(await this.#store.list(PREFIX))]
    const users = [...new Set(keys.map((key) => key.slice(key.indexOf(':') + 1)))]
    const all = await Promise.all(
      users.map(async (userId) => [(await this.#find(userId))?.origin, await this.refreshable(userId)]),
    )
    return [...new Set(all.flat().flatMap((each) => (each ? [each.url ?? each.origin] : [])))]
  }

  /**
   * Finds the owner of a token, at the same cost for any number of users. A renewed token still finds its user until it
   * expires; the {@link TokenOwner} then has the new token, since GitHub ends the old one at the renewal.
   */
  async findByBearer(bearer: string): Promise<TokenOwner | undefined> {
    const given = sha256(bearer)
    const prefix = bearerPrefix(given)
    for (const key of await this.#store.list(prefix)) {
      // The index only names the user. The record decides whether the token is valid.
      const found = await this.#find(key.slice(prefix.length))
      if (!found) continue
      const { owner, origin } = found
      const { token, previous } = origin
      const isPrevious = previous && this.#clock() < Date.parse(previous.expiresAt)
      if (isSame(token, given) || (isPrevious && isSame(previous.token, given))) return owner
    }
    return undefined
  }

  refreshable(userId: string): Promise<Refreshable | undefined> {
    return this.#store.get<Refreshable>(refreshKey(userId))
  }

  /** True if the user is signed in at the code host with this origin, or can renew a sign-in there. */
  async isSignedIn(userId: string, origin: string): Promise<boolean> {
    const signIn = (await this.get(userId)) ?? (await this.refreshable(userId))
    return signIn?.origin === origin
  }

  /**
   * Replaces the user's token with the grant that `used` was exchanged for, in one transaction. Without a new refresh
   * token `used` stays. Returns false, with no change, if the user no longer has `used` (revoked, replaced or renewed).
   */
  renew(userId: string, used: Refreshable, grant: TokenGrant): Promise<boolean> {
    return this.#store.update(function* (records): Tx<boolean> {
      if (!(yield* isStored(records, userId, used))) return false
      const before = yield* records.get<TokenRecord>(tokenKey(userId))
      // A refresh token that is not replaced stays unchanged, with its own expiry.
      yield* removeToken(records, userId)
      yield* put(records, userId, { ...grant, url: used.url, account: used.account }, before)
      return true
    })
  }

  /** Removes a refresh token that the provider refuses. False if the user no longer has it. */
  dropRefresh(userId: string, used: Refreshable): Promise<boolean> {
    return this.#store.update(function* (records): Tx<boolean> {
      return (yield* isStored(records, userId, used)) && (yield* records.delete(refreshKey(userId)))
    })
  }

  /** Removes everything stored for the user, in one transaction. */
  revoke(userId: string): Promise<Removed> {
    const clock = this.#clock
    return this.#store.update(function* (records): Tx<Removed> {
      return yield* removeAll(records, userId, clock())
    })
  }

  async #find(
    userId: string,
  ): Promise<{ readonly owner: TokenOwner; readonly origin: OriginRecord } | undefined> {
    // A sign-in may happen between the two reads, which the hash reveals.
    for (let reads = 0; reads < 10; reads++) {
      const token = await this.#store.get<TokenRecord>(tokenKey(userId))
      if (!token) return undefined
      const origin = await this.#store.get<OriginRecord>(originKey(userId))
      if (origin?.token !== sha256(token.accessToken)) continue
      const owner = ownerOf(userId, token, origin, this.#clock())
      return owner && { owner, origin }
    }
    return undefined
  }
}

/** Owner of a token. Undefined if it has expired, or its origin belongs to another token. */
function ownerOf(
  userId: string,
  { accessToken, expiresAt: end }: TokenRecord,
  origin: OriginRecord | undefined,
  now: number,
): TokenOwner | undefined {
  const expiresAt = Date.parse(end)
  // The record's own time is also checked. An invalid one counts as past.
  const isValid = origin?.token === sha256(accessToken) && now < expiresAt
  return isValid
    ? { userId, accessToken, expiresAt, origin: origin.origin, account: origin.account }
    : undefined
}

/** Stores a grant. All its records expire with the token, except a longer-lived refresh token. */
function* put(records: Records, userId: string, grant: TokenGrant, before?: TokenRecord): Tx<void> {
  const { accessToken, refreshToken, origin, url, redirectUri, account } = grant
  const expiresAt = Math.min(Math.floor(grant.expiresAt), LATEST)
  const token = sha256(accessToken)
  const isRenewed = before !== undefined && before.accessToken !== accessToken
  const previous = isRenewed ? { token: sha256(before.accessToken), expiresAt: before.expiresAt } : undefined
  yield* records.put(
    tokenKey(userId),
    { accessToken, expiresAt: new Date(expiresAt).toISOString() },
    expiresAt,
  )
  const about = {
    origin,
    token,
    ...(url !== undefined && { url }),
    ...(account !== undefined && { account }),
  }
  yield* records.put(originKey(userId), { ...about, ...(previous && { previous }) }, expiresAt)
  yield* records.put(bearerPrefix(token) + userId, true, expiresAt)
  if (previous) {
    // Expires with the origin record at the latest, since a revocation finds this entry through that record.
    const end = Math.min(Date.parse(previous.expiresAt), expiresAt)
    yield* records.put(bearerPrefix(previous.token) + userId, true, end)
  }
  if (refreshToken === undefined) return
  const refresh = {
    refreshToken,
    origin,
    ...(url !== undefined && { url }),
    ...(redirectUri !== undefined && { redirectUri }),
    ...(account !== undefined && { account }),
  }
  yield* records.put(refreshKey(userId), refresh, grant.refreshExpiresAt)
}

function* removeAll(records: Records, userId: string, now: number): Tx<Removed> {
  const token = yield* records.get<TokenRecord>(tokenKey(userId))
  const origin = yield* records.get<OriginRecord>(originKey(userId))
  const refreshable = yield* records.get<Refreshable>(refreshKey(userId))
  yield* records.delete(refreshKey(userId))
  yield* removeToken(records, userId)
  return { owner: token && ownerOf(userId, token, origin, now), refreshable }
}

/** Removes the token with the index entries of the current and the previous one. */
function* removeToken(records: Records, userId: string): Tx<void> {
  const token = yield* records.get<TokenRecord>(tokenKey(userId))
  const origin = yield* records.get<OriginRecord>(originKey(userId))
  if (token) yield* records.delete(bearerPrefix(sha256(token.accessToken)) + userId)
  if (origin?.previous) yield* records.delete(bearerPrefix(origin.previous.token) + userId)
  yield* records.delete(tokenKey(userId))
  yield* records.delete(originKey(userId))
}

function* isStored(records: Records, userId: string, used: Refreshable): Tx<boolean> {
  const stored = yield* records.get<Refreshable>(refreshKey(userId))
  return stored?.refreshToken === used.refreshToken
}

function sha256(text: string): string {
  return hash('sha256', text)
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}
