import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { renew, type RenewOptions } from '../../src/oauth/refresh.js'
import type { Json } from '../../src/store/kv.js'
import type { TokenGrant } from '../../src/tokens/tokens.js'
import { createRig, MINUTE, NOW, type Rig } from './rig.js'

export const OLD = { accessToken: 'gho_old', refreshToken: 'ghr_old' }
export const NEW = { accessToken: 'gho_new', refreshToken: 'ghr_new' }
export const HALF_YEAR = 15_897_600_000

export type RenewRig = Awaited<ReturnType<typeof createRenewRig>>

/** Alice is signed in with a refresh token and a token that expires in half a minute, unless `changes` say otherwise. */
export async function createRenewRig(changes: Partial<TokenGrant> = {}) {
  const rig = await createRig()
  const old: TokenGrant = { ...OLD, expiresAt: NOW + MINUTE / 2, origin: rig.server.url, ...changes }
  await rig.tokens.save('alice', old)
  rig.server.refreshTokens.add(OLD.refreshToken)
  rig.server.grant = github(NEW)
  const parts: RenewOptions = { ...rig.parts, tokens: rig.tokens }
  return { ...rig, parts, renew: (userId = 'alice', options = {}) => renew(parts, userId, options) }
}

/** GitHub's response (docs.github.com, "Refreshing user access tokens"). */
export function github({ accessToken, refreshToken }: typeof NEW) {
  return {
    access_token: accessToken,
    expires_in: 28_800,
    refresh_token: refreshToken,
    refresh_token_expires_in: HALF_YEAR / 1000,
    scope: '',
    token_type: 'bearer',
  }
}

/** Alice as token owner after a renewal. */
export function owner(rig: Pick<Rig, 'server'>, { accessToken = NEW.accessToken, lives = 28_800_000 } = {}) {
  return { userId: 'alice', accessToken, expiresAt: NOW + lives, origin: rig.server.url }
}

interface Lives {
  readonly accessToken: string
  readonly expiresAt: number
}

/** Alice's token before any renewal. */
export const BEFORE: Lives = { accessToken: OLD.accessToken, expiresAt: NOW + MINUTE / 2 }

/** The whole store when Alice has only this token; `before` is a renewed token that has not expired yet. */
export function records(
  origin: string,
  { accessToken, expiresAt }: Lives,
  refreshToken?: string,
  before?: Lives,
): Record<string, Json> {
  const token = sha256(accessToken)
  const previous = before && {
    token: sha256(before.accessToken),
    expiresAt: new Date(before.expiresAt).toISOString(),
  }
  return {
    'token:alice': { accessToken, expiresAt: new Date(expiresAt).toISOString() },
    'origin:alice': { origin, token, ...(previous && { previous }) },
    [`bearer:${token}:alice`]: true,
    ...(previous && { [`bearer:${previous.token}:alice`]: true }),
    ...(refreshToken !== undefined && { 'refresh:alice': { refreshToken, origin } }),
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Error of a failed renewal, and the secrets that the error or the log reveals. */
export async function failed(rig: RenewRig, attempt: Promise<unknown> = rig.renew()) {
  const error: unknown = await attempt.then(
    (value) => ({ kind: 'none', message: inspect(value) }),
    (thrown: unknown) => thrown,
  )
  const { kind, message } = Object(error)
  const secrets = [OLD.refreshToken, OLD.accessToken, NEW.accessToken, NEW.refreshToken, 'the-client-secret']
  const shown = inspect(error, { depth: 10, showHidden: true }) + rig.log.text()
  return { kind, message, leaked: secrets.filter((secret) => shown.includes(secret)) }
}
