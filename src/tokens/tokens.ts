import { timingSafeEqual } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { systemClock, type Clock } from '../base/time.js'
import type { Operation, Store } from '../store/contract.js'
import {
  bearerPrefix,
  originKey,
  originSchema,
  removal,
  sha256,
  signInRows,
  tokenKey,
  tokenSchema,
} from './rows.js'

/** Exactly what lies under `token:{userId}`; `expiresAt` is an ISO 8601 instant in UTC. */
export interface TokenRecord {
  readonly accessToken: string
  readonly expiresAt: string
}

/** What a sign-in brings. Instants are milliseconds since 1970-01-01 UTC. */
export interface SignIn {
  readonly accessToken: string
  readonly expiresAt: number
  readonly refreshToken?: string | undefined
  /** Default: the refresh token stays until it is replaced or revoked. */
  readonly refreshExpiresAt?: number | undefined
  /** The provider's origin: the only place the tokens may be sent to. */
  readonly origin: string
}

/** A user who is signed in. */
export interface Holder {
  readonly userId: string
  readonly accessToken: string
  readonly expiresAt: number
  readonly origin: string
}

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
      const prefix = bearerPrefix(bearer)
      for (const key of await store.list(prefix)) {
        const holder = await findHolder(key.slice(prefix.length))
        // The index only says where to look: the record decides.
        if (holder && sameToken(holder.accessToken, bearer)) return holder
      }
      return undefined
    },
    async revoke(userId) {
      return (await replace(store, userId, (old) => removal(userId, old))) !== undefined
    },
  }

  async function findHolder(userId: string): Promise<Holder | undefined> {
    for (let read = 0; read < READS; read++) {
      const record = tokenSchema.safeParse(await store.get(tokenKey(userId))).data
      if (!record) return undefined
      const source = originSchema.safeParse(await store.get(originKey(userId))).data
      if (source?.token !== sha256(record.accessToken)) continue
      const expiresAt = Date.parse(record.expiresAt)
      return clock() < expiresAt
        ? { userId, accessToken: record.accessToken, expiresAt, origin: source.origin }
        : undefined
    }
    return undefined
  }
}

/**
 * Does the operations for the record there is now, and gives that record. The expectation sees to it that the index removed
 * is that of the record replaced, also when another process saves for the same user at the same time.
 */
async function replace(
  store: Store,
  userId: string,
  operations: (old: TokenRecord | undefined) => Operation[],
): Promise<TokenRecord | undefined> {
  for (let round = 0; round < ROUNDS; round++) {
    const value = await store.get(tokenKey(userId))
    const old = tokenSchema.safeParse(value).data
    if (await store.write(operations(old), [{ key: tokenKey(userId), value }])) return old
  }
  throw new RelayError('storage', 'Too many others are changing the same token')
}

function sameToken(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(sha256(one)), Buffer.from(sha256(other)))
}
