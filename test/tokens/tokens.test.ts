import { describe, expect, it } from 'vitest'
import { createHash } from 'node:crypto'
import type { Store } from '../../src/store/contract.js'
import { openDatabase } from '../../src/store/open.js'
import { createTokens, type SignIn, type Tokens } from '../../src/tokens/tokens.js'

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

const signIn = (accessToken: string, over: Partial<SignIn> = {}): SignIn => ({
  accessToken,
  expiresAt: NOW + HOUR,
  origin: ORIGIN,
  ...over,
})

const holder = (userId: string, accessToken: string) => ({
  userId,
  accessToken,
  expiresAt: NOW + HOUR,
  origin: ORIGIN,
})
const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

describe('tokens', () => {
  it('are kept as the record, the refresh token, the origin and the index, and nothing else', async () => {
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
    const expected = holder(userId, `token of ${userId}`)
    expect(await rig.tokens.get(userId)).toEqual(expected)
    expect(await rig.tokens.findByBearer(`token of ${userId}`)).toEqual(expected)
    expect(await rig.tokens.revoke(userId)).toBe(true)
    expect(await rig.tokens.get(userId)).toBeUndefined()
    expect((await rig.store.list('')).length).toBe(3 * (USER_IDS.length - 1))
  })

  it('that nobody holds are nobody’s', async () => {
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

  it('stop working at once when they are revoked, and leave nothing behind', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('secret', { refreshToken: 'again' }))
    expect(await rig.tokens.revoke('ann')).toBe(true)
    expect(await rig.tokens.findByBearer('secret')).toBeUndefined()
    expect(await rig.store.list('')).toEqual([])
    expect(await rig.tokens.revoke('ann')).toBe(false)
  })

  it('stop working at once when they are replaced', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('first', { refreshToken: 'again' }))
    await rig.tokens.save('ann', signIn('second', { origin: 'https://code.example' }))
    expect(await rig.tokens.findByBearer('first')).toBeUndefined()
    const second = { ...holder('ann', 'second'), origin: 'https://code.example' }
    expect(await rig.tokens.findByBearer('second')).toEqual(second)
    expect(await rig.store.list('')).toEqual([`bearer:${hash('second')}:ann`, 'origin:ann', 'token:ann'])
  })

  it('can be saved again as they are', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('same'))
    await rig.tokens.save('ann', signIn('same', { expiresAt: NOW + 2 * HOUR }))
    expect(await rig.tokens.findByBearer('same')).toEqual({
      ...holder('ann', 'same'),
      expiresAt: NOW + 2 * HOUR,
    })
  })

  it('end at their instant, with all that belongs to them; a refresh token may outlive them', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('a', { refreshToken: 'r', refreshExpiresAt: NOW + 2 * HOUR }))
    await rig.tokens.save('bob', signIn('b'))
    rig.pass(HOUR - 1)
    expect(await rig.tokens.findByBearer('a')).toEqual(holder('ann', 'a'))
    rig.pass(1)
    expect(await rig.tokens.findByBearer('a')).toBeUndefined()
    expect(await rig.tokens.get('ann')).toBeUndefined()
    expect(await rig.store.list('')).toEqual(['refresh:ann'])
    expect(await rig.tokens.revoke('ann')).toBe(false)
    expect(await rig.store.list('')).toEqual([])
  })

  it('end at the instant their record names, also when it was put there to stay', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('a'))
    const record = await rig.store.get('token:ann')
    await rig.store.put('token:ann', record ?? null)
    expect(await rig.tokens.get('ann')).toEqual(holder('ann', 'a'))
    rig.pass(HOUR)
    expect(await rig.tokens.get('ann')).toBeUndefined()
  })

  it('may last longer than a date can be written', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('a', { expiresAt: Number.MAX_VALUE }))
    expect(await rig.store.get('token:ann')).toEqual({
      accessToken: 'a',
      expiresAt: '9999-12-31T23:59:59.999Z',
    })
    expect(await rig.tokens.get('ann')).toMatchObject({ accessToken: 'a' })
  })

  it('that two users share are the first one’s, until only the second has it', async () => {
    await using rig = await open()
    await rig.tokens.save('bob', signIn('shared'))
    await rig.tokens.save('ann', signIn('shared'))
    expect(await rig.tokens.findByBearer('shared')).toEqual(holder('ann', 'shared'))
    await rig.tokens.revoke('ann')
    expect(await rig.tokens.findByBearer('shared')).toEqual(holder('bob', 'shared'))
    await rig.tokens.save('bob', signIn('own'))
    expect(await rig.tokens.findByBearer('shared')).toBeUndefined()
  })

  it('are not found by an index that fits no record', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('real'))
    for (const userId of ['ann', 'nobody'])
      await rig.store.put(`bearer:${hash('forged')}:${userId}`, { origin: ORIGIN })
    expect(await rig.tokens.findByBearer('forged')).toBeUndefined()
  })

  it('are found by an index that does not tell the origin yet', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('mine'))
    await rig.store.put(`bearer:${hash('mine')}:ann`, true)
    expect(await rig.tokens.findByBearer('mine')).toEqual(holder('ann', 'mine'))
    await rig.tokens.revoke('ann')
    expect(await rig.store.list('')).toEqual([])
  })

  it.each([
    ['as it is', { origin: ORIGIN }],
    ['from before it told the origin', true],
  ])('are nobody’s when they are replaced while they are looked up, with an index %s', async (_, index) => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('old'))
    await rig.store.put(`bearer:${hash('old')}:ann`, index)
    const get: Store['get'] = async (key) => {
      const value = await rig.store.get(key)
      if (key === 'token:ann')
        await rig.tokens.save('ann', signIn('new', { origin: 'https://elsewhere.example' }))
      return value
    }
    const tokens = createTokens({ ...rig.store, get }, () => NOW)
    expect(await tokens.findByBearer('old')).toBeUndefined()
  })

  it('are not found by an index whose record is gone, whatever it tells', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('mine'))
    await rig.store.delete('token:ann')
    expect(await rig.tokens.findByBearer('mine')).toBeUndefined()
  })

  it('without an origin of their own are nobody’s: nobody knows where they may be sent', async () => {
    await using rig = await open()
    await rig.tokens.save('ann', signIn('mine'))
    await rig.store.put('origin:ann', { origin: 'https://elsewhere.example', token: hash('another') })
    await rig.store.put(`bearer:${hash('mine')}:ann`, true)
    expect(await rig.tokens.get('ann')).toBeUndefined()
    expect(await rig.tokens.findByBearer('mine')).toBeUndefined()
  })

  it('saved for one user many at a time end as one, with one index', async () => {
    await using rig = await open()
    await Promise.all(Array.from({ length: 30 }, (_, i) => rig.tokens.save('ann', signIn(`token ${i}`))))
    const kept = (await rig.tokens.get('ann'))?.accessToken ?? ''
    expect(await rig.store.list('bearer:')).toEqual([`bearer:${hash(kept)}:ann`])
  })
})
