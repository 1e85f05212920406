import { timingSafeEqual } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { systemClock, type Clock } from '../base/time.js'
import type { Expectation, Operation, Store } from '../store/contract.js'
import {
  bearerPrefix,
  originKey,
  parseOrigin,
  refreshKey,
  parseRefresh,
  parseIndexEntry,
  removeOperations,
  renewOperations,
  type OldRecords,
  type OriginRecord,
  type Refreshable,
  type TokenGrant,
  type TokenOwner,
  type Unconfirmed,
  sha256,
  saveOperations,
  TOKEN_PREFIX,
  tokenKey,
  parseToken,
  parseUnconfirmed,
  unconfirmedKey,
  unconfirmedOperation,
} from './records.js'

export type { Refreshable, TokenGrant, TokenOwner, Unconfirmed } from './records.js'

/**
 * The users' tokens. A token that expired, was revoked or was replaced by a new sign-in is unknown to every method from
 * that moment on, even if another process did it. Every method rejects with RelayError `storage` when the store fails.
 */
export interface Tokens {
  /** Replaces everything stored for the user, in one atomic write. */
  save(userId: string, grant: TokenGrant): Promise<void>
  get(userId: string): Promise<TokenOwner | undefined>
  /** Everyone who is signed in, in the order of their ids. */
  owners(): Promise<readonly TokenOwner[]>
  /**
   * Finds the owner of a token, at the same cost for any number of users. A renewed token still finds its user until it
   * expires. The {@link TokenOwner} then has the token that replaced it, since GitHub ends the old one at the renewal.
   */
  findByBearer(bearer: string): Promise<TokenOwner | undefined>
  /** Undefined when the user's sign-in is confirmed, or was stored by a program of this profile's owner. */
  unconfirmed(userId: string): Promise<Unconfirmed | undefined>
  /** Confirms the user's sign-in; false when it is no longer `seen`. */
  confirm(userId: string, seen: Unconfirmed): Promise<boolean>
  refreshable(userId: string): Promise<Refreshable | undefined>
  /**
   * Replaces the user's token with the grant that `used` was exchanged for, in one atomic write. Without a new refresh
   * token `used` stays. False, with no change, when the user no longer has `used` (revoked, replaced or renewed).
   */
  renew(userId: string, used: Refreshable, grant: TokenGrant): Promise<boolean>
  /** Removes a refresh token that the provider refuses; false when the user no longer has it. */
  dropRefresh(userId: string, used: Refreshable): Promise<boolean>
  /** Removes everything stored for the user, in one atomic write; false when there was no token. */
  revoke(userId: string): Promise<boolean>
}

/** Write attempts. Each that fails was won by another writer for the same user, so up to 100 at once succeed. */
const MAX_WRITES = 100

/** Read attempts: token and origin are read one after the other, and a save may come between. */
const MAX_READS = 10

export function createTokens(store: Store, clock: Clock = systemClock): Tokens {
  const parts = { store, clock }
  return {
    async save(userId, grant) {
      const operations = [...saveOperations(userId, grant), unconfirmedOperation(userId, grant)]
      await replace(store, userId, (old) => [...removeOperations(userId, old), ...operations])
    },
    async get(userId) {
      return (await findWithOrigin(parts, userId))?.owner
    },
    async owners() {
      const users = (await store.list(TOKEN_PREFIX)).map((key) => key.slice(TOKEN_PREFIX.length))
      const found = await Promise.all(users.map((userId) => findWithOrigin(parts, userId)))
      return found.flatMap((each) => (each ? [each.owner] : []))
    },
    findByBearer: (bearer) => findByBearer(parts, bearer),
    async unconfirmed(userId) {
      return parseUnconfirmed(await store.get(unconfirmedKey(userId)))
    },
    async confirm(userId, seen) {
      const key = unconfirmedKey(userId)
      return store.write([{ type: 'delete', key }], [{ key, value: { ...seen } }])
    },
    async refreshable(userId) {
      return parseRefresh(await store.get(refreshKey(userId)))
    },
    async renew(userId, used, grant) {
      const operations = (old: OldRecords) => renewOperations(userId, old, grant)
      return (await replace(store, userId, operations, [isStored(userId, used)])) !== undefined
    },
    async dropRefresh(userId, used) {
      return store.write([{ type: 'delete', key: refreshKey(userId) }], [isStored(userId, used)])
    },
    async revoke(userId) {
      const confirmation: Operation = { type: 'delete', key: unconfirmedKey(userId) }
      const replaced = await replace(store, userId, (old) => [...removeOperations(userId, old), confirmation])
      return replaced?.record !== undefined
    },
  }
}

interface TokenParts {
  readonly store: Store
  readonly clock: Clock
}

async function findByBearer(parts: TokenParts, bearer: string): Promise<TokenOwner | undefined> {
  const tokenHash = sha256(bearer)
  const prefix = bearerPrefix(tokenHash)
  for (const key of await parts.store.list(prefix)) {
    const userId = key.slice(prefix.length)
    const record = await liveRecord(parts, userId)
    if (!record) continue
    // The index only gives the user and the origin. The record decides whether the token is valid.
    if (sameHash(sha256(record.accessToken), tokenHash)) {
      const entry = parseIndexEntry(await parts.store.get(key))
      if (entry) return { userId, ...record, origin: entry.origin }
    } else {
      const found = await findWithOrigin(parts, userId)
      if (found && isPrevious(found.origin, tokenHash, parts.clock())) return found.owner
    }
  }
  return undefined
}

async function findWithOrigin(
  parts: TokenParts,
  userId: string,
): Promise<{ readonly owner: TokenOwner; readonly origin: OriginRecord } | undefined> {
  for (let read = 0; read < MAX_READS; read++) {
    const record = await liveRecord(parts, userId)
    if (!record) return undefined
    const origin = parseOrigin(await parts.store.get(originKey(userId)))
    if (origin?.token === sha256(record.accessToken))
      return { owner: { userId, ...record, origin: origin.origin }, origin }
  }
  return undefined
}

function isPrevious({ previous }: OriginRecord, tokenHash: string, now: number): boolean {
  return previous !== undefined && now < Date.parse(previous.expiresAt) && sameHash(previous.token, tokenHash)
}

async function liveRecord(
  { store, clock }: TokenParts,
  userId: string,
): Promise<Pick<TokenOwner, 'accessToken' | 'expiresAt'> | undefined> {
  const record = parseToken(await store.get(tokenKey(userId)))
  if (!record) return undefined
  const expiresAt = Date.parse(record.expiresAt)
  return clock() < expiresAt ? { accessToken: record.accessToken, expiresAt } : undefined
}

/**
 * Applies `operations` to the user's current records and returns those. Undefined, with no change, when `expected` does
 * not hold. The write also expects the token record to be unchanged, so it removes the index entry of the record that it
 * replaces even if another process saves for this user at the same time. The origin record changes only with the token.
 */
async function replace(
  store: Store,
  userId: string,
  operations: (old: OldRecords) => Operation[],
  expected: readonly Expectation[] = [],
): Promise<OldRecords | undefined> {
  for (let round = 0; round < MAX_WRITES; round++) {
    const value = await store.get(tokenKey(userId))
    const origin = parseOrigin(await store.get(originKey(userId)))
    const old: OldRecords = { record: parseToken(value), origin }
    if (await store.write(operations(old), [{ key: tokenKey(userId), value }, ...expected])) return old
    // A write without operations succeeds when `expected` holds, so this shows which expectation failed.
    if (expected.length > 0 && !(await store.write([], expected))) return undefined
  }
  throw new RelayError('storage', 'Too many processes are changing the same token')
}

function isStored(userId: string, { refreshToken, origin }: Refreshable): Expectation {
  return { key: refreshKey(userId), value: { refreshToken, origin } }
}

function sameHash(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one), Buffer.from(other))
}
