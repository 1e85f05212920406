import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { renew, type RenewOptions } from '../../src/oauth/refresh.js'
import type { Json } from '../../src/store/contract.js'
import type { SignIn } from '../../src/tokens/tokens.js'
import { createRig, MINUTE, NOW, type Rig } from './rig.js'

export const OLD = { accessToken: 'gho_old', refreshToken: 'ghr_old' }
export const NEW = { accessToken: 'gho_new', refreshToken: 'ghr_new' }
export const HALF_YEAR = 15_897_600_000

export type RenewRig = Awaited<ReturnType<typeof createRenewRig>>

/** Alice is signed in with a token that ends in half a minute and a refresh token, except for what `changes` say. */
export async function createRenewRig(changes: Partial<SignIn> = {}) {
  const rig = await createRig()
  const old: SignIn = { ...OLD, expiresAt: NOW + MINUTE / 2, origin: rig.server.url, ...changes }
  await rig.tokens.save('alice', old)
  rig.server.refreshTokens.add(OLD.refreshToken)
  rig.server.grant = github(NEW)
  const parts: RenewOptions = { ...rig.parts, tokens: rig.tokens }
  return { ...rig, parts, renew: (userId = 'alice', options = {}) => renew(parts, userId, options) }
}

/** What GitHub answers (docs.github.com, "Refreshing user access tokens"). */
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

/** Who renewing makes of alice. */
export function holder(rig: Pick<Rig, 'server'>, { accessToken = NEW.accessToken, lives = 28_800_000 } = {}) {
  return { userId: 'alice', accessToken, expiresAt: NOW + lives, origin: rig.server.url }
}

/** The whole store when this is all that alice has. */
export function rows(
  origin: string,
  { accessToken, expiresAt }: { accessToken: string; expiresAt: number },
  refreshToken?: string,
): Record<string, Json> {
  const token = createHash('sha256').update(accessToken).digest('hex')
  return {
    'token:alice': { accessToken, expiresAt: new Date(expiresAt).toISOString() },
    'origin:alice': { origin, token },
    [`bearer:${token}:alice`]: { origin },
    ...(refreshToken !== undefined && { 'refresh:alice': { refreshToken, origin } }),
  }
}

/** What became of a renewal that fails: the error, with all that it holds as text, and the whole store. */
export async function failed(rig: RenewRig, attempt: Promise<unknown> = rig.renew()) {
  const error: unknown = await attempt.then(
    (value) => ({ kind: 'none', message: inspect(value) }),
    (thrown: unknown) => thrown,
  )
  const { kind, message } = Object(error)
  const secrets = [OLD.refreshToken, OLD.accessToken, NEW.accessToken, NEW.refreshToken, 'the-client-secret']
  const shown = inspect(error, { depth: 10, showHidden: true }) + rig.log.text()
  return { kind, message, told: secrets.filter((secret) => shown.includes(secret)) }
}
