import { describe, expect, it } from 'vitest'
import { renew } from '../../src/oauth/refresh.js'
import { CLIENT_ID, CLIENT_SECRET } from '../helpers/authorization-server.js'
import { BEFORE, createRenewRig, failed, github, HALF_YEAR, owner, NEW, OLD, records } from './refresh-rig.js'
import { MINUTE, NOW, TOKEN_TTL } from './rig.js'

const DAY = 86_400_000

describe('a token that is about to expire', () => {
  it('is renewed according to the RFCs and replaced', async () => {
    await using rig = await createRenewRig({ expiresAt: NOW + MINUTE - 1 })
    const renewed = await rig.renew()

    expect(renewed).toEqual(owner(rig))
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
    const before = { ...BEFORE, expiresAt: NOW + MINUTE - 1 }
    expect(await rig.contents()).toEqual(records(rig.server.url, renewed, NEW.refreshToken, before))
    // What was fetched before works on, with the new token, until its own end.
    expect(await rig.tokens.findByBearer(OLD.accessToken)).toEqual(renewed)
    expect(await rig.tokens.findByBearer(NEW.accessToken)).toEqual(renewed)
    expect(rig.log.lines).toEqual(['debug Renewed the token of alice'])
    rig.time.now = NOW + HALF_YEAR
    expect(await rig.contents()).toEqual({})
  })

  it('is renewed at Gitea, which uses JWTs and names no expiry of the refresh token', async () => {
    await using rig = await createRenewRig()
    const [accessToken, refreshToken] = [`e30.${'a'.repeat(900)}.sig`, `e30.${'r'.repeat(900)}.sig`]
    rig.server.grant = { access_token: accessToken, expires_in: 3600, refresh_token: refreshToken }
    const renewed = await rig.renew()
    expect(renewed).toEqual(owner(rig, { accessToken, lives: 3_600_000 }))
    expect(await rig.contents()).toEqual(records(rig.server.url, renewed, refreshToken, BEFORE))
    rig.time.now = NOW + 1000 * DAY
    expect(Object.keys(await rig.contents())).toEqual(['refresh:alice'])
  })

  it('is renewed after it has expired', async () => {
    await using rig = await createRenewRig()
    rig.time.now = NOW + DAY
    rig.server.grant = { ...github(NEW), expires_in: 60 }
    expect(await rig.renew()).toEqual(owner(rig, { lives: DAY + MINUTE }))
  })

  it('is renewed again with the latest refresh token', async () => {
    await using rig = await createRenewRig()
    await rig.renew()
    rig.time.now = NOW + 28_800_000
    rig.server.refreshTokens.add(NEW.refreshToken)
    rig.server.grant = github({ accessToken: 'gho_3', refreshToken: 'ghr_3' })
    const third = await rig.renew()
    expect(third).toEqual(owner(rig, { accessToken: 'gho_3', lives: 2 * 28_800_000 }))
    expect(await rig.contents()).toEqual(records(rig.server.url, third, 'ghr_3'))
  })

  it('keeps its refresh token and that one’s expiry when no new one comes', async () => {
    await using rig = await createRenewRig({ refreshExpiresAt: NOW + DAY })
    rig.server.grant = { access_token: NEW.accessToken, expires_in: 3600 }
    const renewed = await rig.renew()
    expect(await rig.contents()).toEqual(records(rig.server.url, renewed, OLD.refreshToken, BEFORE))
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
  ])('expires after expires_in, within limits: $expires_in', async ({ expires_in, lives }) => {
    await using rig = await createRenewRig()
    rig.server.grant = { ...github(NEW), expires_in }
    expect(await rig.renew()).toEqual(owner(rig, { lives }))
    expect(await rig.tokens.get('alice')).toEqual(owner(rig, { lives }))
  })
})

describe('a token is not renewed', () => {
  it('when it has a minute left', async () => {
    await using rig = await createRenewRig({ expiresAt: NOW + MINUTE })
    const before = await rig.contents()
    expect(await rig.renew()).toEqual(owner(rig, { accessToken: OLD.accessToken, lives: MINUTE }))
    expect([rig.server.requests, await rig.contents()]).toEqual([[], before])
  })

  it('before it expires, without a refresh token or client', async () => {
    const old = { accessToken: OLD.accessToken, lives: MINUTE / 2 }
    await using rig = await createRenewRig({ refreshToken: undefined })
    expect(await rig.renew()).toEqual(owner(rig, old))
    await using other = await createRenewRig()
    expect(await renew({ ...other.parts, client: undefined }, 'alice')).toEqual(owner(other, old))
    expect([...rig.server.requests, ...other.server.requests]).toEqual([])
  })
})

describe('a sign-in is required for a user', () => {
  it('who never signed in', async () => {
    await using rig = await createRenewRig()
    expect(await failed(rig, rig.renew('bob'))).toEqual({
      kind: 'unauthenticated',
      message: 'bob is not signed in, or the sign-in has ended. Run relay login',
      leaked: [],
    })
  })

  it('whose token expired without a refresh token', async () => {
    await using rig = await createRenewRig({ refreshToken: undefined })
    rig.time.now = NOW + MINUTE
    expect(await failed(rig)).toEqual({
      kind: 'unauthenticated',
      message: 'alice is not signed in, or the sign-in has ended. Run relay login',
      leaked: [],
    })
    expect(await rig.contents()).toEqual({})
  })

  it('whose token expired without an OAuth client', async () => {
    await using rig = await createRenewRig()
    rig.time.now = NOW + MINUTE
    expect(await failed(rig, renew({ ...rig.parts, client: undefined }, 'alice'))).toEqual({
      kind: 'unauthenticated',
      message:
        'The token of alice has ended; renewing it needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET; sign in again: relay login',
      leaked: [],
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
        leaked: [],
      })
      expect(rig.server.requests).toEqual([])
      rig.time.now = NOW
      expect(await rig.contents()).toEqual(before)
    },
  )

  it('with a valid token of another provider', async () => {
    await using rig = await createRenewRig({ expiresAt: NOW + DAY })
    const provider = { ...rig.parts.provider, origin: 'https://elsewhere.test' }
    expect(await failed(rig, renew({ ...rig.parts, provider }, 'alice'))).toMatchObject({
      kind: 'unauthenticated',
    })
  })
})
