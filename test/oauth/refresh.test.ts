import { describe, expect, it } from 'vitest'
import { renew } from '../../src/oauth/refresh.js'
import { CLIENT_ID, CLIENT_SECRET } from '../helpers/authorization-server.js'
import { createRenewRig, failed, github, HALF_YEAR, holder, NEW, OLD, rows } from './refresh-rig.js'
import { MINUTE, NOW, TOKEN_TTL } from './rig.js'

const DAY = 86_400_000

describe('a token that is about to end', () => {
  it('is renewed, as the protocols say, and replaced', async () => {
    await using rig = await createRenewRig({ expiresAt: NOW + MINUTE - 1 })
    const renewed = await rig.renew()

    expect(renewed).toEqual(holder(rig))
    expect(rig.server.requests).toEqual([
      {
        method: 'POST',
        path: '/login/oauth/access_token',
        contentType: 'application/x-www-form-urlencoded;charset=UTF-8',
        accept: 'application/json',
        authorization: undefined,
        form: {
          grant_type: 'refresh_token',
          refresh_token: OLD.refreshToken,
          client_id: CLIENT_ID,
          client_secret: CLIENT_SECRET,
        },
      },
    ])
    expect(await rig.contents()).toEqual(rows(rig.server.url, renewed, NEW.refreshToken))
    expect(await rig.tokens.findByBearer(OLD.accessToken)).toBeUndefined()
    expect(await rig.tokens.findByBearer(NEW.accessToken)).toEqual(renewed)
    expect(rig.log.lines).toEqual(['debug Renewed the token of alice'])
    rig.time.now = NOW + HALF_YEAR
    expect(await rig.contents()).toEqual({})
  })

  it('is renewed at Gitea, whose tokens are JWTs and which says nothing of the refresh token’s end', async () => {
    await using rig = await createRenewRig()
    const [accessToken, refreshToken] = [`e30.${'a'.repeat(900)}.sig`, `e30.${'r'.repeat(900)}.sig`]
    rig.server.grant = { access_token: accessToken, expires_in: 3600, refresh_token: refreshToken }
    const renewed = await rig.renew()
    expect(renewed).toEqual(holder(rig, { accessToken, lives: 3_600_000 }))
    expect(await rig.contents()).toEqual(rows(rig.server.url, renewed, refreshToken))
    rig.time.now = NOW + 1000 * DAY
    expect(Object.keys(await rig.contents())).toEqual(['refresh:alice'])
  })

  it('is renewed also when it has ended', async () => {
    await using rig = await createRenewRig()
    rig.time.now = NOW + DAY
    rig.server.grant = { ...github(NEW), expires_in: 60 }
    expect(await rig.renew()).toEqual(holder(rig, { lives: DAY + MINUTE }))
  })

  it('is renewed again with the refresh token that came last', async () => {
    await using rig = await createRenewRig()
    await rig.renew()
    rig.time.now = NOW + 28_800_000
    rig.server.refreshTokens.add(NEW.refreshToken)
    rig.server.grant = github({ accessToken: 'gho_3', refreshToken: 'ghr_3' })
    const third = await rig.renew()
    expect(third).toEqual(holder(rig, { accessToken: 'gho_3', lives: 2 * 28_800_000 }))
    expect(await rig.contents()).toEqual(rows(rig.server.url, third, 'ghr_3'))
  })

  it('keeps its refresh token, and that one’s end, when no new one comes', async () => {
    await using rig = await createRenewRig({ refreshExpiresAt: NOW + DAY })
    rig.server.grant = { access_token: NEW.accessToken, expires_in: 3600 }
    const renewed = await rig.renew()
    expect(await rig.contents()).toEqual(rows(rig.server.url, renewed, OLD.refreshToken))
    rig.time.now = NOW + DAY - 1
    expect(Object.keys(await rig.contents())).toEqual(['refresh:alice'])
    rig.time.now = NOW + DAY
    expect(await rig.contents()).toEqual({})
  })

  it.each([
    { expires_in: '3600', lives: 3_600_000 },
    { expires_in: 0.5, lives: 500 },
    { expires_in: undefined, lives: TOKEN_TTL },
    { expires_in: 0, lives: TOKEN_TTL },
    { expires_in: 1e300, lives: 3650 * DAY },
  ])('lives as long as expires_in says, within reason: $expires_in', async ({ expires_in, lives }) => {
    await using rig = await createRenewRig()
    rig.server.grant = { ...github(NEW), expires_in }
    expect(await rig.renew()).toEqual(holder(rig, { lives }))
    expect(await rig.tokens.get('alice')).toEqual(holder(rig, { lives }))
  })
})

describe('a token is left as it is', () => {
  it('when it lives a minute more', async () => {
    await using rig = await createRenewRig({ expiresAt: NOW + MINUTE })
    const before = await rig.contents()
    expect(await rig.renew()).toEqual(holder(rig, { accessToken: OLD.accessToken, lives: MINUTE }))
    expect([rig.server.requests, await rig.contents()]).toEqual([[], before])
  })

  it('while it lives, when there is nothing to renew it with', async () => {
    const old = { accessToken: OLD.accessToken, lives: MINUTE / 2 }
    await using rig = await createRenewRig({ refreshToken: undefined })
    expect(await rig.renew()).toEqual(holder(rig, old))
    await using other = await createRenewRig()
    expect(await renew({ ...other.parts, client: undefined }, 'alice')).toEqual(holder(other, old))
    expect([...rig.server.requests, ...other.server.requests]).toEqual([])
  })
})

describe('who has to sign in', () => {
  it('never did', async () => {
    await using rig = await createRenewRig()
    expect(await failed(rig, rig.renew('bob'))).toEqual({
      kind: 'unauthenticated',
      message: 'bob is not signed in, or no longer; sign in: relay login',
      told: [],
    })
  })

  it('has a token that ended, and nothing to renew it with', async () => {
    await using rig = await createRenewRig({ refreshToken: undefined })
    rig.time.now = NOW + MINUTE
    expect(await failed(rig)).toEqual({
      kind: 'unauthenticated',
      message: 'alice is not signed in, or no longer; sign in: relay login',
      told: [],
    })
    expect(await rig.contents()).toEqual({})
  })

  it('has no OAuth client to renew a token with that ended', async () => {
    await using rig = await createRenewRig()
    rig.time.now = NOW + MINUTE
    expect(await failed(rig, renew({ ...rig.parts, client: undefined }, 'alice'))).toEqual({
      kind: 'unauthenticated',
      message:
        'The token of alice has ended; renewing it needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET; sign in again: relay login',
      told: [],
    })
    expect(Object.keys(await rig.contents())).toEqual(['refresh:alice'])
  })

  it.each([0, MINUTE / 2, DAY])(
    'is signed in elsewhere: neither token goes to another provider, %i ms later either',
    async (later) => {
      await using rig = await createRenewRig()
      const before = await rig.contents()
      const provider = { ...rig.parts.provider, origin: 'https://elsewhere.test' }
      rig.time.now += later
      expect(await failed(rig, renew({ ...rig.parts, provider }, 'alice'))).toEqual({
        kind: 'unauthenticated',
        message: `The token of alice is from ${rig.server.url} and is not sent to https://elsewhere.test; sign in again: relay login`,
        told: [],
      })
      expect(rig.server.requests).toEqual([])
      rig.time.now = NOW
      expect(await rig.contents()).toEqual(before)
    },
  )

  it('is signed in elsewhere with a token that lives on', async () => {
    await using rig = await createRenewRig({ expiresAt: NOW + DAY })
    const provider = { ...rig.parts.provider, origin: 'https://elsewhere.test' }
    expect(await failed(rig, renew({ ...rig.parts, provider }, 'alice'))).toMatchObject({
      kind: 'unauthenticated',
    })
  })
})
