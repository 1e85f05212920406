import { hash } from 'node:crypto'
import type { Operation } from '../store/contract.js'
import { isInstant, isText, shape } from '../store/shape.js'

/** Record under `token:{userId}`, with exactly these fields. `expiresAt` is ISO 8601 in UTC. */
export interface TokenRecord {
  readonly accessToken: string
  readonly expiresAt: string
}

/** Result of a sign-in or a renewal. Times are milliseconds since 1970-01-01 UTC. */
export interface TokenGrant {
  readonly accessToken: string
  readonly expiresAt: number
  readonly refreshToken?: string | undefined
  /** Default: the refresh token stays until it is replaced or revoked. */
  readonly refreshExpiresAt?: number | undefined
  /** The provider's origin, and the only place the tokens may be sent to. */
  readonly origin: string
  /** Time of a sign-in over HTTP, which needs no proof of its author: see {@link Unconfirmed}. */
  readonly unconfirmedSince?: number | undefined
}

/**
 * A sign-in whose account no command has shown to the user yet. Any local program can sign in an account of its own for
 * any user. `token` is a hash that identifies this sign-in.
 */
export interface Unconfirmed {
  /** ISO 8601 in UTC. */
  readonly since: string
  readonly token: string
}

/** A user who is signed in. `expiresAt` is milliseconds since 1970-01-01 UTC. */
export interface TokenOwner {
  readonly userId: string
  readonly accessToken: string
  readonly expiresAt: number
  readonly origin: string
}

/** A refresh token. It may outlive its access token. */
export interface Refreshable {
  readonly refreshToken: string
  /** The provider's origin, and the only place the refresh token may be sent to. */
  readonly origin: string
}

/** The last instant whose ISO form has a four-digit year. */
const LATEST = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Prefix of the keys of token records; the user's id follows. */
export const TOKEN_PREFIX = 'token:'
export const tokenKey = (userId: string): string => `${TOKEN_PREFIX}${userId}`
export const originKey = (userId: string): string => `origin:${userId}`
export const unconfirmedKey = (userId: string): string => `unconfirmed:${userId}`
export const refreshKey = (userId: string): string => `refresh:${userId}`

/** Prefix of a token's index keys; the user's id follows. A plain hash is safe because tokens are long and random. */
export const bearerPrefix = (tokenHash: string): string => `bearer:${tokenHash}:`

export const parseToken = shape<TokenRecord>({ accessToken: isText, expiresAt: isInstant })

/** Hash of a token that was renewed. The token is accepted until `expiresAt`. */
type PreviousToken = { readonly token: string; readonly expiresAt: string }

/** Origin of a token. `token` is the token's hash, so that the origin of one token never applies to another. */
export interface OriginRecord {
  readonly origin: string
  readonly token: string
  /** One is enough: a token is renewed in its last minute, when its predecessor has already expired. */
  readonly previous?: PreviousToken | undefined
}

const parsePrevious = shape<PreviousToken>({ token: isText, expiresAt: isInstant })

export const parseOrigin = shape<OriginRecord>({
  origin: isText,
  token: isText,
  previous: (value) => value === undefined || parsePrevious(value) !== undefined,
})

/** Value of an index entry: the token's origin, so that a look-up needs no second read. */
export const parseIndexEntry = shape<{ readonly origin: string }>({ origin: isText })

export const parseUnconfirmed = shape<Unconfirmed>({ since: isInstant, token: isText })

export const parseRefresh = shape<Refreshable>({ refreshToken: isText, origin: isText })

export function sha256(text: string): string {
  return hash('sha256', text)
}

export interface OldRecords {
  readonly record: TokenRecord | undefined
  readonly origin: OriginRecord | undefined
}

/** Operations that store a grant. All its records expire with the token, except a longer-lived refresh token. */
export function saveOperations(userId: string, grant: TokenGrant, previous?: PreviousToken): Operation[] {
  const { accessToken, refreshToken, origin } = grant
  const expiresAt = Math.min(Math.floor(grant.expiresAt), LATEST)
  const record: TokenRecord = { accessToken, expiresAt: new Date(expiresAt).toISOString() }
  const token = sha256(accessToken)
  return [
    { type: 'put', key: tokenKey(userId), value: { ...record }, expiresAt },
    {
      type: 'put',
      key: originKey(userId),
      value: { origin, token, ...(previous && { previous }) },
      expiresAt,
    },
    { type: 'put', key: indexKey(userId, token), value: { origin }, expiresAt },
    refreshToken === undefined
      ? { type: 'delete', key: refreshKey(userId) }
      : {
          type: 'put',
          key: refreshKey(userId),
          value: { refreshToken, origin },
          expiresAt: grant.refreshExpiresAt,
        },
  ]
}

/**
 * Operation that sets or clears the user's `unconfirmed` record. It is a separate record because renewals do not change
 * it. It expires with the refresh token of the grant.
 */
export function unconfirmedOperation(userId: string, grant: TokenGrant): Operation {
  const { accessToken, refreshToken, unconfirmedSince } = grant
  const key = unconfirmedKey(userId)
  if (unconfirmedSince === undefined) return { type: 'delete', key }
  const value = { since: new Date(unconfirmedSince).toISOString(), token: sha256(accessToken) }
  const expiresAt = refreshToken === undefined ? grant.expiresAt : grant.refreshExpiresAt
  return { type: 'put', key, value, expiresAt }
}

/** Operations that remove a user's records, with the index entries of the current and the previous token. */
export function removeOperations(userId: string, { record, origin }: OldRecords): Operation[] {
  const keys = [tokenKey(userId), originKey(userId), refreshKey(userId)]
  if (record) keys.push(indexKey(userId, sha256(record.accessToken)))
  if (origin?.previous) keys.push(indexKey(userId, origin.previous.token))
  return keys.map((key) => ({ type: 'delete', key }))
}

/**
 * Operations that replace a user's records after a renewal. Without a new refresh token the old one stays. The old token's
 * index entry stays until the old or the new token expires.
 */
export function renewOperations(userId: string, old: OldRecords, grant: TokenGrant): Operation[] {
  const previous = previousToken(old.record, grant)
  const operations = [...removeOperations(userId, old), ...saveOperations(userId, grant, previous)]
  if (previous)
    operations.push({
      type: 'put',
      key: indexKey(userId, previous.token),
      value: { origin: grant.origin },
      // No later than the origin record, through which a revocation finds this entry.
      expiresAt: Math.min(Date.parse(previous.expiresAt), Math.floor(grant.expiresAt)),
    })
  return grant.refreshToken === undefined
    ? operations.filter(({ key }) => key !== refreshKey(userId))
    : operations
}

function previousToken(
  record: TokenRecord | undefined,
  { accessToken }: TokenGrant,
): PreviousToken | undefined {
  if (!record || record.accessToken === accessToken) return undefined
  return { token: sha256(record.accessToken), expiresAt: record.expiresAt }
}

function indexKey(userId: string, tokenHash: string): string {
  return `${bearerPrefix(tokenHash)}${userId}`
}
