import { hash } from 'node:crypto'
import type { Operation } from '../store/contract.js'
import { isInstant, isText, shape } from '../store/shape.js'
import type { Refreshable, SignIn, TokenRecord } from './record.js'

/** The last instant whose ISO form has a four-digit year. */
const LATEST = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

export const tokenKey = (userId: string): string => `token:${userId}`
export const originKey = (userId: string): string => `origin:${userId}`
export const refreshKey = (userId: string): string => `refresh:${userId}`

/** All index keys of a token of this hash begin so; the user's id follows. The hash is as secret as the token is long. */
export const bearerPrefix = (tokenHash: string): string => `bearer:${tokenHash}:`

export const parseToken = shape<TokenRecord>({ accessToken: isText, expiresAt: isInstant })

/** Where a token came from; `token` is its hash, so that the origin of one token is never taken for that of another. */
export const parseOrigin = shape<{ readonly origin: string; readonly token: string }>({
  origin: isText,
  token: isText,
})

/** What the index tells beside the user: where the token came from, so that a look-up need not read that elsewhere. */
export const parseSource = shape<{ readonly origin: string }>({ origin: isText })

export const parseRefresh = shape<Refreshable>({ refreshToken: isText, origin: isText })

export function sha256(text: string): string {
  return hash('sha256', text)
}

/** A sign-in as the rows that make it up. All of them end with the token, but for a refresh token that may live longer. */
export function signInRows(userId: string, signIn: SignIn): Operation[] {
  const { accessToken, refreshToken, origin } = signIn
  const expiresAt = Math.min(Math.floor(signIn.expiresAt), LATEST)
  const record: TokenRecord = { accessToken, expiresAt: new Date(expiresAt).toISOString() }
  const token = sha256(accessToken)
  return [
    { type: 'put', key: tokenKey(userId), value: { ...record }, expiresAt },
    { type: 'put', key: originKey(userId), value: { origin, token }, expiresAt },
    { type: 'put', key: `${bearerPrefix(token)}${userId}`, value: { origin }, expiresAt },
    refreshToken === undefined
      ? { type: 'delete', key: refreshKey(userId) }
      : {
          type: 'put',
          key: refreshKey(userId),
          value: { refreshToken, origin },
          expiresAt: signIn.refreshExpiresAt,
        },
  ]
}

/** What removes a user's rows; `record` names the index that goes with them. */
export function removal(userId: string, record: TokenRecord | undefined): Operation[] {
  const keys = [tokenKey(userId), originKey(userId), refreshKey(userId)]
  if (record) keys.push(`${bearerPrefix(sha256(record.accessToken))}${userId}`)
  return keys.map((key) => ({ type: 'delete', key }))
}

/** What replaces a user's rows when the token was renewed: without a new refresh token the old one stays as it is. */
export function renewalRows(userId: string, record: TokenRecord | undefined, signIn: SignIn): Operation[] {
  const rows = [...removal(userId, record), ...signInRows(userId, signIn)]
  return signIn.refreshToken === undefined ? rows.filter(({ key }) => key !== refreshKey(userId)) : rows
}
