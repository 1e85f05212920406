import { describe, expect, it } from 'vitest'
import { createHash } from 'node:crypto'
import type { Store } from '../../src/store/contract.js'
import { openDatabase } from '../../src/store/open.js'
import { createTokens, type TokenGrant, type Tokens } from '../../src/tokens/tokens.js'

const NOW = Date.UTC(2026, 0, 1)
const HOUR = 3_600_000
const ORIGIN = 'https://github.com'
const USER_IDS = [
  'ann',
  '__proto__',
  'constructor',
  'a:b',
  ':',
  '*',
  'Ünï😀',
  'x'.repeat(256),
  '😀'.repeat(64),
]

interface Rig extends AsyncDisposable {
  readonly store: Store
  readonly tokens: Tokens
  pass(ms: number): void
}

async function open(): Promise<Rig> {
  let now = NOW
  const clock = () => now
  const database = await openDatabase({ kind: 'memory', folder: '', clock })
  return {
    store: database.store,
    tokens: createTokens(database.store, clock),
    pass: (ms) => void (now += ms),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

const signIn = (accessToken: string, over: Partial<TokenGrant> = {}): TokenGrant => ({
  accessToken,
  expiresAt: NOW + HOUR,
  origin: ORIGIN,
  ...over,
})

const owner = (userId: string, accessToken: string) => ({
  userId,
  accessToken,
  expiresAt: NOW + HOUR,
  origin: ORIGIN,
})
const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

describe('tokens', () => {
  it('are stored as token, refresh token, origin and index entry, and nothing else', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('secret', { refreshToken: 'again' }))
    const rows = await Promise.all(
      (await rig.store.list('')).map(async (key) => [key, await rig.store.get(key)]),
    )
    expect(rows).toEqual([
      [`bearer:${hash('secret')}:ann`, { origin: ORIGIN }],
      ['origin:ann', { origin: ORIGIN, token: hash('secret') }],
      ['refresh:ann', { refreshToken: 'again', origin: ORIGIN }],
      ['token:ann', { accessToken: 'secret', expiresAt: '2026-01-01T01:00:00.000Z' }],
    ])
  })

  it.each(USER_IDS)('are found by user and by bearer: %s', async (userId) => {
    await using rig = await open()
    for (const other of USER_IDS) await rig.tokens.save(other, signIn(`token of ${other}`))
    const expected = owner(userId, `token of ${userId}`)
    expect(await rig.tokens.get(userId)).toEqual(expected)
    expect(await rig.tokens.findByBearer(`token of ${userId}`)).toEqual(expected)
    expect(await rig.tokens.revoke(userId)).toBe(true)
    expect(await rig.tokens.get(userId)).toBeUndefined()
    expect((await rig.store.list('')).length).toBe(3 * (USER_IDS.length - 1))
  })

  it('that do not exist have no owner', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('secret'))
    for (const bearer of [
      '',
      'secre',
      'secret ',
      'SECRET',
      hash('secret'),
      'ann',
      'x'.repeat(100_000),
      '\ud83d',
    ]) {
      expect(await rig.tokens.findByBearer(bearer)).toBeUndefined()
    }
    expect(await rig.tokens.get('bob')).toBeUndefined()
    expect(await rig.tokens.revoke('bob')).toBe(false)
  })

  it('stop working at once when revoked, and leave nothing behind', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('secret', { refreshToken: 'again' }))
    expect(await rig.tokens.revoke('ann')).toBe(true)
    expect(await rig.tokens.findByBearer('secret')).toBeUndefined()
    expect(await rig.store.list('')).toEqual([])
    expect(await rig.tokens.revoke('ann')).toBe(false)
  })

  it('stop working at once when replaced', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('first', { refreshToken: 'again' }))
    await rig.tokens.save('ann', signIn('second', { origin: 'https://code.example' }))
    expect(await rig.tokens.findByBearer('first')).toBeUndefined()
    const second = { ...owner('ann', 'second'), origin: 'https://code.example' }
    expect(await rig.tokens.findByBearer('second')).toEqual(second)
    expect(await rig.store.list('')).toEqual([`bearer:${hash('second')}:ann`, 'origin:ann', 'token:ann'])
  })

  it('can be saved again unchanged', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('same'))
    await rig.tokens.save('ann', signIn('same', { expiresAt: NOW + 2 * HOUR }))
    expect(await rig.tokens.findByBearer('same')).toEqual({
      ...owner('ann', 'same'),
      expiresAt: NOW + 2 * HOUR,
    })
  })

  it('expire with all their records; a refresh token may outlive them', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('a', { refreshToken: 'r', refreshExpiresAt: NOW + 2 * HOUR }))
    await rig.tokens.save('bob', signIn('b'))
    rig.pass(HOUR - 1)
    expect(await rig.tokens.findByBearer('a')).toEqual(owner('ann', 'a'))
    rig.pass(1)
    expect(await rig.tokens.findByBearer('a')).toBeUndefined()
    expect(await rig.tokens.get('ann')).toBeUndefined()
    expect(await rig.store.list('')).toEqual(['refresh:ann'])
    expect(await rig.tokens.revoke('ann')).toBe(false)
    expect(await rig.store.list('')).toEqual([])
  })

  it('expire at the time in their record, even if the record itself does not expire', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('a'))
    const record = await rig.store.get('token:ann')
    await rig.store.put('token:ann', record ?? null)
    expect(await rig.tokens.get('ann')).toEqual(owner('ann', 'a'))
    rig.pass(HOUR)
    expect(await rig.tokens.get('ann')).toBeUndefined()
  })

  it('may expire after the last valid date', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('a', { expiresAt: Number.MAX_VALUE }))
    expect(await rig.store.get('token:ann')).toEqual({
      accessToken: 'a',
      expiresAt: '9999-12-31T23:59:59.999Z',
    })
    expect(await rig.tokens.get('ann')).toMatchObject({ accessToken: 'a' })
  })

  it('that two users share belong to the first, until only the second has them', async () => {
    await using rig = await open()
    await rig.tokens.save('bob', signIn('shared'))
    await rig.tokens.save('ann', signIn('shared'))
    expect(await rig.tokens.findByBearer('shared')).toEqual(owner('ann', 'shared'))
    await rig.tokens.revoke('ann')
    expect(await rig.tokens.findByBearer('shared')).toEqual(owner('bob', 'shared'))
    await rig.tokens.save('bob', signIn('own'))
    expect(await rig.tokens.findByBearer('shared')).toBeUndefined()
  })

  it('are not found by an index entry without a matching record', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('real'))
    for (const userId of ['ann', 'nobody'])
      await rig.store.put(`bearer:${hash('forged')}:${userId}`, { origin: ORIGIN })
    expect(await rig.tokens.findByBearer('forged')).toBeUndefined()
  })

  it('have no owner when replaced during the look-up', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('old'))
    const get: Store['get'] = async (key) => {
      const value = await rig.store.get(key)
      if (key === 'token:ann')
        await rig.tokens.save('ann', signIn('new', { origin: 'https://elsewhere.example' }))
      return value
    }
    const tokens = createTokens({ ...rig.store, get }, () => NOW)
    expect(await tokens.findByBearer('old')).toBeUndefined()
  })

  it('are not found by an index entry without its record', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('mine'))
    await rig.store.delete('token:ann')
    expect(await rig.tokens.findByBearer('mine')).toBeUndefined()
  })

  it('without an origin record have no owner, because they may be sent nowhere', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('mine'))
    await rig.store.put('origin:ann', { origin: 'https://elsewhere.example', token: hash('another') })
    await rig.store.put(`bearer:${hash('mine')}:ann`, true)
    expect(await rig.tokens.get('ann')).toBeUndefined()
    expect(await rig.tokens.findByBearer('mine')).toBeUndefined()
  })

  it('of an unconfirmed sign-in stay unconfirmed until confirmed, replaced or revoked', async () => {
    await using rig = await open()
    const stranger = signIn('s', { refreshToken: 'r', unconfirmedSince: NOW })
    const unconfirmed = { since: '2026-01-01T00:00:00.000Z', token: hash('s') }
    await rig.tokens.save('ann', stranger)
    expect(await rig.tokens.unconfirmed('ann')).toEqual(unconfirmed)
    expect(await rig.tokens.unconfirmed('bob')).toBeUndefined()
    // Also when the token was renewed, and when it had ended before.
    rig.pass(HOUR)
    await rig.store.sweep()
    const later = { expiresAt: NOW + 3 * HOUR, refreshToken: 'r2' }
    await rig.tokens.renew('ann', { refreshToken: 'r', origin: ORIGIN }, signIn('s2', later))
    expect(await rig.tokens.unconfirmed('ann')).toEqual(unconfirmed)

    await rig.tokens.save('ann', signIn('t', { ...later, unconfirmedSince: NOW + HOUR }))
    expect(await rig.tokens.confirm('ann', unconfirmed)).toBe(false)
    const second = { since: '2026-01-01T01:00:00.000Z', token: hash('t') }
    expect(await rig.tokens.unconfirmed('ann')).toEqual(second)
    expect(await rig.tokens.confirm('ann', second)).toBe(true)
    expect(await rig.tokens.unconfirmed('ann')).toBeUndefined()
    expect(await rig.tokens.get('ann')).toMatchObject({ accessToken: 't' })

    await rig.tokens.save('ann', stranger)
    await rig.tokens.revoke('ann')
    expect(await rig.store.list('')).toEqual([])
    await rig.tokens.save('ann', stranger)
    await rig.tokens.save('ann', signIn('own', later))
    expect(await rig.tokens.unconfirmed('ann')).toBeUndefined()
  })

  it('saved concurrently for one user leave one token with one index entry', async () => {
    await using rig = await open()
    await Promise.all(Array.from({ length: 30 }, (_, i) => rig.tokens.save('ann', signIn(`token ${i}`))))
    const kept = (await rig.tokens.get('ann'))?.accessToken ?? ''
    expect(await rig.store.list('bearer:')).toEqual([`bearer:${hash(kept)}:ann`])
  })
})
