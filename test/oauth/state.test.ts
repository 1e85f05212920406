import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createRig, failure, MINUTE, nothing, NOW, result, SIGNED_IN, signedIn, TOKEN_TTL } from './rig.js'

describe('a state', () => {
  it.each([
    ['missing', (query: URLSearchParams) => query.delete('state')],
    ['empty', (query: URLSearchParams) => query.set('state', '')],
    ['unknown', (query: URLSearchParams) => query.set('state', 'A'.repeat(43))],
    ['longer than any key', (query: URLSearchParams) => query.set('state', 'A'.repeat(5000))],
    ['another key of the store', (query: URLSearchParams) => query.set('state', '../token:alice')],
  ])('that is %s ends the sign-in, and the true one waits on', async (_, change) => {
    await using rig = await createRig()
    const { approved, state } = await rig.begin()
    const before = await rig.contents()
    const query = new URLSearchParams(approved)
    change(query)
    expect(await rig.come(query)).toEqual(failure('invalid_state'))
    expect(await rig.contents()).toEqual(before)
    expect(Object.keys(before)).toEqual([`oauth-state:${state}`])
    expect(rig.server.requests).toEqual([])
  })

  it('is rejected if unknown, even with an error instead of a code', async () => {
    await using rig = await createRig()
    expect(await rig.come({ error: 'access_denied', state: 'A'.repeat(43) })).toEqual(
      failure('invalid_state'),
    )
    expect(await rig.come({ error: 'access_denied' })).toEqual(failure('invalid_state'))
  })

  it('works once', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    expect(await rig.come(approved)).toEqual(SIGNED_IN)
    expect(await rig.come(approved)).toEqual(failure('invalid_state'))
    expect(await rig.contents()).toEqual(signedIn(rig, NOW + TOKEN_TTL))
    expect(rig.server.requests).toHaveLength(1)
  })

  it('lets one of many concurrent callbacks succeed', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => rig.come(approved)))
    expect(outcomes.filter(({ auth }) => auth === 'success')).toEqual([SIGNED_IN])
    expect(outcomes.filter(({ auth }) => auth === 'error')).toEqual(Array(19).fill(failure('invalid_state')))
    expect(await rig.contents()).toEqual(signedIn(rig, NOW + TOKEN_TTL))
    expect(rig.server.requests).toHaveLength(1)
  })

  it('expires after ten minutes', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    rig.time.now = NOW + 10 * MINUTE
    expect(await result(rig, approved)).toEqual(nothing('invalid_state'))
  })

  it('works until then', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    rig.time.now = NOW + 10 * MINUTE - 1
    expect(await rig.come(approved)).toEqual(SIGNED_IN)
  })

  it('is used up by another browser, which has no cookie', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    expect(await result(rig, approved, new Map())).toEqual(nothing('invalid_state'))
    expect(await rig.come(approved)).toEqual(failure('invalid_state'))
    expect(rig.log.lines).toEqual([
      'warn Sign-in failed: invalid_state: the browser sent no cookie for this sign-in; start it at http://127.0.0.1:8787',
      'warn Sign-in failed: invalid_state: the state is unknown, used or expired, or was made for another provider',
    ])
  })

  it('is the hash of the cookie', async () => {
    await using rig = await createRig()
    const { state, cookie } = await rig.begin()
    expect(cookie.value).toMatch(/^[\w-]{43}$/)
    expect(state).toBe(createHash('sha256').update(cookie.value).digest('base64url'))
  })

  it.each([
    ['of another sign-in', 'A'.repeat(43)],
    ['that is empty', ''],
    ['that is the hash itself', undefined],
  ])('is spent by a browser with a cookie %s', async (_, value) => {
    await using rig = await createRig()
    const { approved, cookie, state } = await rig.begin()
    expect(await result(rig, approved, new Map([[cookie.name, value ?? state]]))).toEqual(
      nothing('invalid_state'),
    )
  })

  it('is used up if it is for another provider', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    const elsewhere = { ...rig.parts.provider, name: 'gitea' as const }
    await using other = await createRig({ store: rig.parts.store, provider: elsewhere })
    expect(await other.come(approved, rig.jar)).toEqual(failure('invalid_state'))
    expect(await rig.contents()).toEqual({})
  })

  it('is used up if it is for another address of the same provider', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    const elsewhere = { ...rig.parts.provider, origin: 'https://ghes.test' }
    await using other = await createRig({ store: rig.parts.store, provider: elsewhere })
    expect(await other.come(approved, rig.jar)).toEqual(failure('invalid_state'))
    expect(await rig.contents()).toEqual({})
  })

  it('is used up if it is given twice', async () => {
    await using rig = await createRig()
    const { approved, state } = await rig.begin()
    approved.append('state', state)
    expect(await result(rig, approved)).toEqual(nothing('invalid_state'))
  })

  it('is rejected if its stored value is invalid', async () => {
    await using rig = await createRig()
    const { approved, state } = await rig.begin()
    await rig.parts.store.put(`oauth-state:${state}`, {
      provider: 'github',
      origin: rig.server.url,
      userId: 'alice',
    })
    expect(await result(rig, approved)).toEqual(nothing('invalid_state'))
  })
})
