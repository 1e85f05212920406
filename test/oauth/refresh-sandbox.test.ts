import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import { renew } from '../../src/oauth/refresh.js'
import { revokeEverywhere } from '../../src/oauth/revoke.js'
import { createProvider } from '../../src/providers/open.js'
import { openDatabase } from '../../src/store/open.js'
import { Tokens } from '../../src/tokens/tokens.js'
import { CLIENT, getCode, json, NOW, redeem, start } from '../sandbox/rig.js'
import { contents } from './rig.js'

const HOUR = 3_600_000

/** Mona is signed in at a sandbox whose tokens last an hour, and its refresh tokens three. */
async function signedIn() {
  const time = { now: NOW }
  const clock = () => time.now
  const sandbox = await start({ clock, lifetimes: { access: 3600, refresh: 3 * 3600 } })
  const database = await openDatabase({ kind: 'memory', folder: '', clock })
  const provider = createProvider({ name: 'sandbox', url: sandbox.url })
  const tokens = new Tokens(database.store, clock)
  const client = { id: CLIENT.id, secret: new Secret(CLIENT.secret) }
  const parts = { provider, client, store: database.store, tokens, tokenTtl: HOUR, clock, log: silentLog }
  const granted = await json<{ access_token: string; refresh_token: string }>(
    redeem(sandbox, await getCode(sandbox)),
  )
  await tokens.save('mona', {
    accessToken: granted.access_token,
    refreshToken: granted.refresh_token,
    expiresAt: NOW + HOUR,
    refreshExpiresAt: NOW + 3 * HOUR,
    origin: provider.origin,
  })
  return {
    time,
    provider,
    tokens,
    parts,
    contents: () => contents(database.store),
    async [Symbol.asyncDispose]() {
      await sandbox.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

describe('at the sandbox, with expiring tokens and rotating refresh tokens', () => {
  it('a token is renewed repeatedly until its refresh token expires', async () => {
    await using rig = await signedIn()
    let last = await rig.tokens.get('mona')
    for (let hour = 1; hour <= 4; hour++) {
      rig.time.now = NOW + hour * HOUR - 30_000
      const renewed = await renew(rig.parts, 'mona')
      expect(renewed).toEqual({
        userId: 'mona',
        accessToken: renewed.accessToken,
        expiresAt: rig.time.now + HOUR,
        origin: rig.provider.origin,
      })
      expect(renewed.accessToken).not.toBe(last?.accessToken)
      expect(await rig.provider.whoAmI(renewed.accessToken)).toEqual({ login: 'octo' })
      await expect(rig.provider.whoAmI(last?.accessToken ?? '')).rejects.toMatchObject({
        kind: 'invalid_token',
      })
      last = renewed
    }
    rig.time.now += 3 * HOUR
    await expect(renew(rig.parts, 'mona')).rejects.toMatchObject({ kind: 'unauthenticated', exitCode: 4 })
    expect(await rig.contents()).toEqual({})
  })

  it('an unknown refresh token requires a new sign-in', async () => {
    await using rig = await signedIn()
    const used = await rig.tokens.refreshable('mona')
    const old = await rig.tokens.get('mona')
    await rig.provider.revokeToken?.(old?.accessToken ?? '', rig.parts.client)
    rig.time.now = NOW + HOUR
    expect(await rig.contents()).toEqual({ 'refresh:mona': used })
    await expect(renew(rig.parts, 'mona')).rejects.toMatchObject({
      kind: 'unauthenticated',
      message:
        'The token of mona could not be renewed (the provider answered bad_refresh_token); sign in again: relay login',
    })
    expect(await rig.contents()).toEqual({})
  })

  it('a token is revoked here and at the sandbox', async () => {
    await using rig = await signedIn()
    const { accessToken } = await renew(rig.parts, 'mona')
    expect(await rig.provider.whoAmI(accessToken)).toEqual({ login: 'octo' })
    expect(await revokeEverywhere(rig.parts, 'mona')).toEqual({ removed: true, upstream: 'revoked' })
    await expect(rig.provider.whoAmI(accessToken)).rejects.toMatchObject({ kind: 'invalid_token' })
    expect(await rig.contents()).toEqual({})
  })

  it('an unknown client gets an error', async () => {
    await using rig = await signedIn()
    rig.time.now = NOW + HOUR
    const client = { id: CLIENT.id, secret: new Secret('wrong') }
    const before = await rig.contents()
    await expect(renew({ ...rig.parts, client }, 'mona')).rejects.toMatchObject({ kind: 'not_configured' })
    expect(await rig.contents()).toEqual(before)
  })
})
