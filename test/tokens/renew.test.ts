import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { createTokens, type TokenGrant } from '../../src/tokens/tokens.js'

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

function signIn(accessToken: string, refreshToken?: string, changes: Partial<TokenGrant> = {}): TokenGrant {
  return { accessToken, refreshToken, expiresAt: NOW + HOUR, origin: ORIGIN, ...changes }
}

const ENDS = '2026-01-01T01:00:00.000Z'
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The whole store when this is all there is; `before` is the token that was renewed. */
function rows(
  accessToken: string,
  refreshToken?: string,
  { expiresAt = ENDS, before }: { expiresAt?: string; before?: string } = {},
) {
  const token = sha256(accessToken)
  const previous = before !== undefined && { token: sha256(before), expiresAt: ENDS }
  return {
    'token:ann': { accessToken, expiresAt },
    'origin:ann': { origin: ORIGIN, token, ...(previous && { previous }) },
    [`bearer:${token}:ann`]: { origin: ORIGIN },
    ...(previous && { [`bearer:${previous.token}:ann`]: { origin: ORIGIN } }),
    ...(refreshToken !== undefined && { 'refresh:ann': { refreshToken, origin: ORIGIN } }),
  }
}

describe('a refresh token', () => {
  it('is available until it expires, even if its token has expired', async () => {
    await using rig = await open()
    expect(await rig.tokens.refreshable('ann')).toEqual(USED)
    rig.time.now += HOUR
    expect(await rig.tokens.refreshable('ann')).toEqual(USED)
    await rig.tokens.revoke('ann')
    expect(await rig.tokens.refreshable('ann')).toBeUndefined()
    expect(await rig.tokens.refreshable('bob')).toBeUndefined()
  })

  it('is removed alone, and only if it is the given one', async () => {
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
  it('replaces token and refresh token, and records the previous token', async () => {
    await using rig = await open()
    expect(await rig.tokens.renew('ann', USED, signIn('a2', 'r2'))).toBe(true)
    expect(await rig.contents()).toEqual(rows('a2', 'r2', { before: 'a1' }))
  })

  it('works when the token has expired and was removed', async () => {
    await using rig = await open()
    rig.time.now += HOUR
    await rig.store.sweep()
    expect(await rig.contents()).toEqual({ 'refresh:ann': USED })
    expect(await rig.tokens.renew('ann', USED, signIn('a2', 'r2', { expiresAt: NOW + 2 * HOUR }))).toBe(true)
    expect(await rig.contents()).toEqual(rows('a2', 'r2', { expiresAt: '2026-01-01T02:00:00.000Z' }))
  })

  it('keeps the refresh token without a new one', async () => {
    await using rig = await open()
    expect(await rig.tokens.renew('ann', USED, signIn('a2'))).toBe(true)
    expect(await rig.contents()).toEqual(rows('a2', 'r1', { before: 'a1' }))
  })

  it('stores the expiry of the new refresh token', async () => {
    await using rig = await open()
    await rig.tokens.renew('ann', USED, signIn('a2', 'r1', { refreshExpiresAt: NOW + 2 * HOUR }))
    rig.time.now = NOW + 2 * HOUR - 1
    expect(await rig.contents()).toEqual({ 'refresh:ann': USED })
    rig.time.now += 1
    expect(await rig.contents()).toEqual({})
  })

  it('does nothing when the user was revoked, signed in again, or was renewed by another process', async () => {
    await using rig = await open()
    await rig.tokens.renew('ann', USED, signIn('a2', 'r2'))
    expect(await rig.tokens.renew('ann', USED, signIn('a3', 'r3'))).toBe(false)
    expect(await rig.contents()).toEqual(rows('a2', 'r2', { before: 'a1' }))
    await rig.tokens.save('ann', signIn('a4'))
    expect(await rig.tokens.renew('ann', USED, signIn('a3', 'r3'))).toBe(false)
    expect(await rig.contents()).toEqual(rows('a4'))
    await rig.tokens.revoke('ann')
    expect(await rig.tokens.renew('ann', USED, signIn('a3', 'r3'))).toBe(false)
    expect(await rig.contents()).toEqual({})
  })

  it('happens once for concurrent calls with one refresh token', async () => {
    await using rig = await open()
    const attempts = Array.from({ length: 20 }, (_, i) =>
      rig.tokens.renew('ann', USED, signIn(`b${i}`, `s${i}`)),
    )
    const won = (await Promise.all(attempts)).flatMap((done, i) => (done ? [i] : []))
    expect(won).toHaveLength(1)
    expect(await rig.contents()).toEqual(rows(`b${won[0]}`, `s${won[0]}`, { before: 'a1' }))
  })

  it('never restores a token that is revoked at the same time', async () => {
    for (let round = 0; round < 50; round++) {
      await using rig = await open()
      const renewal = () => rig.tokens.renew('ann', USED, signIn('a2', 'r2'))
      const revocation = () => rig.tokens.revoke('ann')
      await Promise.all(round % 2 ? [renewal(), revocation()] : [revocation(), renewal()])
      expect(await rig.contents()).toEqual({})
    }
  })
})

describe('the token before a renewal', () => {
  const LONGER = { expiresAt: NOW + 2 * HOUR }
  const current = { userId: 'ann', accessToken: 'a2', expiresAt: NOW + 2 * HOUR, origin: ORIGIN }

  /** Ann's token is renewed to `a2`, which lives an hour longer. */
  async function renewed() {
    const rig = await open()
    await rig.tokens.renew('ann', USED, signIn('a2', 'r2', LONGER))
    return rig
  }

  it('finds the user with the new token until it expires', async () => {
    await using rig = await renewed()
    rig.time.now = NOW + HOUR - 1
    expect(await rig.tokens.findByBearer('a1')).toEqual(current)
    expect(await rig.tokens.findByBearer('a2')).toEqual(current)
    rig.time.now += 1
    expect(await rig.tokens.findByBearer('a1')).toBeUndefined()
    expect(await rig.tokens.findByBearer('a2')).toEqual(current)
    await rig.store.sweep()
    expect(await rig.store.list('bearer:')).toEqual([`bearer:${sha256('a2')}:ann`])
  })

  it('stops working when the user signs in again or is revoked, and leaves nothing', async () => {
    await using rig = await renewed()
    await rig.tokens.save('ann', signIn('b1', 's1'))
    expect(await rig.tokens.findByBearer('a1')).toBeUndefined()
    expect(await rig.contents()).toEqual(rows('b1', 's1'))

    await using other = await renewed()
    await other.tokens.revoke('ann')
    expect(await other.tokens.findByBearer('a1')).toBeUndefined()
    expect(await other.contents()).toEqual({})
  })

  it('is one: the second renewal removes the first token', async () => {
    await using rig = await renewed()
    await rig.tokens.renew('ann', { ...USED, refreshToken: 'r2' }, signIn('a3', 'r3', LONGER))
    expect(await rig.tokens.findByBearer('a1')).toBeUndefined()
    expect(await rig.tokens.findByBearer('a2')).toMatchObject({ accessToken: 'a3' })
    expect(await rig.store.list('bearer:')).toHaveLength(2)
  })

  it('counts only with the origin record of the same sign-in', async () => {
    await using rig = await renewed()
    // A write to a keychain that is interrupted leaves the new record with the other records of the previous sign-in.
    await rig.store.put('token:ann', { accessToken: 'b1', expiresAt: '2026-01-01T02:00:00.000Z' })
    expect(await rig.tokens.findByBearer('a1')).toBeUndefined()
  })

  it('that is returned unchanged is the current token', async () => {
    await using rig = await open()
    await rig.tokens.renew('ann', USED, signIn('a1', 'r2'))
    expect(await rig.contents()).toEqual(rows('a1', 'r2'))
  })
})
