import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { createTokens, type SignIn } from '../../src/tokens/tokens.js'

const NOW = Date.UTC(2026, 0, 1)
const HOUR = 3_600_000
const ORIGIN = 'https://github.com'
const USED = { refreshToken: 'r1', origin: ORIGIN }

/** Ann is signed in with `a1` and `r1`. */
async function open() {
  const time = { now: NOW }
  const database = await openDatabase({ kind: 'memory', folder: '', clock: () => time.now })
  const { store } = database
  const tokens = createTokens(store, () => time.now)
  await tokens.save('ann', signIn('a1', 'r1'))
  return {
    time,
    store,
    tokens,
    contents: async () => {
      const keys = await store.list('')
      return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await store.get(key)])))
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

function signIn(accessToken: string, refreshToken?: string, changes: Partial<SignIn> = {}): SignIn {
  return { accessToken, refreshToken, expiresAt: NOW + HOUR, origin: ORIGIN, ...changes }
}

/** The whole store when this is all there is. */
function rows(accessToken: string, refreshToken?: string, expiresAt = '2026-01-01T01:00:00.000Z') {
  const hash = createHash('sha256').update(accessToken).digest('hex')
  return {
    'token:ann': { accessToken, expiresAt },
    'origin:ann': { origin: ORIGIN, token: hash },
    [`bearer:${hash}:ann`]: { origin: ORIGIN },
    ...(refreshToken !== undefined && { 'refresh:ann': { refreshToken, origin: ORIGIN } }),
  }
}

describe('a refresh token', () => {
  it('is there as long as it is kept, also when the token has ended', async () => {
    await using rig = await open()
    expect(await rig.tokens.refreshable('ann')).toEqual(USED)
    rig.time.now += HOUR
    expect(await rig.tokens.refreshable('ann')).toEqual(USED)
    await rig.tokens.revoke('ann')
    expect(await rig.tokens.refreshable('ann')).toBeUndefined()
    expect(await rig.tokens.refreshable('bob')).toBeUndefined()
  })

  it('is dropped alone, and only while it is the one meant', async () => {
    await using rig = await open()
    expect(await rig.tokens.dropRefresh('ann', { ...USED, refreshToken: 'r0' })).toBe(false)
    expect(await rig.tokens.dropRefresh('ann', { ...USED, origin: 'https://code.example' })).toBe(false)
    expect(await rig.contents()).toEqual(rows('a1', 'r1'))
    expect(await rig.tokens.dropRefresh('ann', USED)).toBe(true)
    expect(await rig.contents()).toEqual(rows('a1'))
    expect(await rig.tokens.dropRefresh('ann', USED)).toBe(false)
  })
})

describe('renewing', () => {
  it('replaces token, index and refresh token', async () => {
    await using rig = await open()
    expect(await rig.tokens.renew('ann', USED, signIn('a2', 'r2'))).toBe(true)
    expect(await rig.contents()).toEqual(rows('a2', 'r2'))
  })

  it('works when the token has ended and was swept', async () => {
    await using rig = await open()
    rig.time.now += HOUR
    await rig.store.sweep()
    expect(await rig.contents()).toEqual({ 'refresh:ann': USED })
    expect(await rig.tokens.renew('ann', USED, signIn('a2', 'r2', { expiresAt: NOW + 2 * HOUR }))).toBe(true)
    expect(await rig.contents()).toEqual(rows('a2', 'r2', '2026-01-01T02:00:00.000Z'))
  })

  it('keeps the refresh token when none came', async () => {
    await using rig = await open()
    expect(await rig.tokens.renew('ann', USED, signIn('a2'))).toBe(true)
    expect(await rig.contents()).toEqual(rows('a2', 'r1'))
  })

  it('gives the refresh token that came its own end', async () => {
    await using rig = await open()
    await rig.tokens.renew('ann', USED, signIn('a2', 'r1', { refreshExpiresAt: NOW + 2 * HOUR }))
    rig.time.now = NOW + 2 * HOUR - 1
    expect(await rig.contents()).toEqual({ 'refresh:ann': USED })
    rig.time.now += 1
    expect(await rig.contents()).toEqual({})
  })

  it('does nothing when the user was revoked, has signed in anew, or was renewed by another', async () => {
    await using rig = await open()
    await rig.tokens.renew('ann', USED, signIn('a2', 'r2'))
    expect(await rig.tokens.renew('ann', USED, signIn('a3', 'r3'))).toBe(false)
    expect(await rig.contents()).toEqual(rows('a2', 'r2'))
    await rig.tokens.save('ann', signIn('a4'))
    expect(await rig.tokens.renew('ann', USED, signIn('a3', 'r3'))).toBe(false)
    expect(await rig.contents()).toEqual(rows('a4'))
    await rig.tokens.revoke('ann')
    expect(await rig.tokens.renew('ann', USED, signIn('a3', 'r3'))).toBe(false)
    expect(await rig.contents()).toEqual({})
  })

  it('of many at once with one refresh token happens once', async () => {
    await using rig = await open()
    const attempts = Array.from({ length: 20 }, (_, i) =>
      rig.tokens.renew('ann', USED, signIn(`b${i}`, `s${i}`)),
    )
    const won = (await Promise.all(attempts)).flatMap((done, i) => (done ? [i] : []))
    expect(won).toHaveLength(1)
    expect(await rig.contents()).toEqual(rows(`b${won[0]}`, `s${won[0]}`))
  })

  it('never brings back what is revoked at the same time', async () => {
    for (let round = 0; round < 50; round++) {
      await using rig = await open()
      const renewal = () => rig.tokens.renew('ann', USED, signIn('a2', 'r2'))
      const revocation = () => rig.tokens.revoke('ann')
      await Promise.all(round % 2 ? [renewal(), revocation()] : [revocation(), renewal()])
      expect(await rig.contents()).toEqual({})
    }
  })
})
