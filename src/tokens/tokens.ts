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
  parseSource,
  removal,
  renewalRows,
  sha256,
  signInRows,
  tokenKey,
  parseToken,
} from './rows.js'
import type { Holder, Refreshable, SignIn, TokenRecord } from './record.js'

export type { Holder, Refreshable, SignIn } from './record.js'

/**
 * The users' tokens. A token that was revoked, replaced, or has expired is unknown to every method from that moment on, also when
 * another process did it. Every method rejects with RelayError `storage` when the store fails.
 */
export interface Tokens {
  /** Replaces whatever the user had, in one atomic write. */
  save(userId: string, signIn: SignIn): Promise<void>
  get(userId: string): Promise<Holder | undefined>
  /** Who holds this token; at equal cost for any number of users. */
  findByBearer(bearer: string): Promise<Holder | undefined>
  refreshable(userId: string): Promise<Refreshable | undefined>
  /**
   * Replaces the user's token by what `used` was exchanged for, in one atomic write; without a new refresh token `used`
   * stays. False, and nothing done, when the user no longer has `used`: revoked, signed in anew, or renewed by another.
   */
  renew(userId: string, used: Refreshable, signIn: SignIn): Promise<boolean>
  /** Forgets a refresh token that turned out to be dead; false when the user no longer has it. */
  dropRefresh(userId: string, used: Refreshable): Promise<boolean>
  /** Forgets everything of the user's, in one atomic write; false when there was no token. */
  revoke(userId: string): Promise<boolean>
}

/** Each round that fails was won by another writer for the same user, so this many writers at once get through. */
const ROUNDS = 100

/** Token and origin are read one after the other; a save may come between, but hardly this often. */
const READS = 10

export function createTokens(store: Store, clock: Clock = systemClock): Tokens {
  return {
    async save(userId, signIn) {
      const rows = signInRows(userId, signIn)
      await replace(store, userId, (old) => [...removal(userId, old), ...rows])
    },
    get: findHolder,
    async findByBearer(bearer) {
      const tokenHash = sha256(bearer)
      const prefix = bearerPrefix(tokenHash)
      for (const key of await store.list(prefix)) {
        const userId = key.slice(prefix.length)
        const record = await liveRecord(userId)
        // The index only says where to look, and where the token came from: the record decides.
        if (!record || !sameHash(sha256(record.accessToken), tokenHash)) continue
        const source = parseSource(await store.get(key))
        if (source) return { userId, ...record, origin: source.origin }
        // An index written before it told the origin leaves that to a row of its own. Or the token was replaced just now.
        const holder = await findHolder(userId)
        if (holder && sameHash(sha256(holder.accessToken), tokenHash)) return holder
      }
      return undefined
    },
    async refreshable(userId) {
      return parseRefresh(await store.get(refreshKey(userId)))
    },
    async renew(userId, used, signIn) {
      const rows = (old: TokenRecord | undefined) => renewalRows(userId, old, signIn)
      return (await replace(store, userId, rows, [stillThere(userId, used)])) !== undefined
    },
    async dropRefresh(userId, used) {
      return store.write([{ type: 'delete', key: refreshKey(userId) }], [stillThere(userId, used)])
    },
    async revoke(userId) {
      const replaced = await replace(store, userId, (old) => removal(userId, old))
      return replaced?.old !== undefined
    },
  }

  async function findHolder(userId: string): Promise<Holder | undefined> {
    for (let read = 0; read < READS; read++) {
      const record = await liveRecord(userId)
      if (!record) return undefined
      const source = parseOrigin(await store.get(originKey(userId)))
      if (source?.token === sha256(record.accessToken)) return { userId, ...record, origin: source.origin }
    }
    return undefined
  }

  async function liveRecord(userId: string): Promise<Pick<Holder, 'accessToken' | 'expiresAt'> | undefined> {
    const record = parseToken(await store.get(tokenKey(userId)))
    if (!record) return undefined
    const expiresAt = Date.parse(record.expiresAt)
    return clock() < expiresAt ? { accessToken: record.accessToken, expiresAt } : undefined
  }
}

/**
 * Does the operations for the record there is now, and gives that record; undefined, and nothing done, when `expected` does
 * not hold. That the record is expected too sees to it that the index removed is that of the record replaced, also when
 * another process saves for the same user at the same time.
 */
async function replace(
  store: Store,
  userId: string,
  operations: (old: TokenRecord | undefined) => Operation[],
  expected: readonly Expectation[] = [],
): Promise<{ readonly old: TokenRecord | undefined } | undefined> {
  for (let round = 0; round < ROUNDS; round++) {
    const value = await store.get(tokenKey(userId))
    const old = parseToken(value)
    if (await store.write(operations(old), [{ key: tokenKey(userId), value }, ...expected])) return { old }
    // Nothing to do is done when all holds, so this tells which expectation failed.
    if (expected.length > 0 && !(await store.write([], expected))) return undefined
  }
  throw new RelayError('storage', 'Too many others are changing the same token')
}

function stillThere(userId: string, { refreshToken, origin }: Refreshable): Expectation {
  return { key: refreshKey(userId), value: { refreshToken, origin } }
}

function sameHash(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one), Buffer.from(other))
}
