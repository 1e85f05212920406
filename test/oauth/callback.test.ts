import { describe, expect, it } from 'vitest'
import { createRig, failure, nothing, REDIRECT_URI, result } from './rig.js'

it('logs one line even if many pages open the callback', async () => {
  await using rig = await createRig()
  for (let i = 0; i < 1000; i++) await rig.come({ code: 'x', state: `s${i}` })
  expect(rig.log.lines.slice(0, 1)).toEqual([
    'warn Sign-in failed: invalid_state: the browser sent no cookie for this sign-in; start it at http://127.0.0.1:8787',
  ])
  // A slow machine takes more than a second, which is a line more.
  expect(rig.log.lines.slice(1).every((line) => line.includes(' more like it in the last second'))).toBe(true)
})

describe('a callback without a usable code', () => {
  it('without parameters is Gitea’s Cancel, and ends the sign-ins of the browser’s cookies', async () => {
    await using rig = await createRig()
    const elsewhere = new Map()
    const { state } = await rig.begin('bob', elsewhere)
    await rig.begin()
    rig.jar.set('relay_oauth_01234567', 'A'.repeat(43))
    rig.jar.set('other', [...elsewhere.values()].join(''))
    expect(await rig.come({})).toEqual(failure('access_denied'))
    expect(Object.keys(await rig.contents())).toEqual([`oauth-state:${state}`])
    expect(await rig.come({}, new Map())).toEqual(failure('access_denied'))
    expect(Object.keys(await rig.contents())).toEqual([`oauth-state:${state}`])
  })

  it('without parameters publishes an outcome for every pending login of the browser', async () => {
    await using rig = await createRig()
    const logins = ['first-login_0123456', 'other-login_0123456']
    for (const login of logins) {
      const { cookie } = await rig.oauth.authorize('alice', login)
      rig.jar.set(cookie.name, cookie.value)
    }
    expect(await rig.come({})).toEqual(failure('access_denied'))
    const left = logins.map((login) => [`login:${login}`, { v: 1, ...failure('access_denied') }])
    expect(await rig.contents()).toEqual(Object.fromEntries(left))
  })

  it.each([
    ['access_denied', 'access_denied'],
    ['server_error', 'provider_unavailable'],
    ['temporarily_unavailable', 'provider_unavailable'],
    ['redirect_uri_mismatch', 'exchange_failed'],
    ['application_suspended', 'exchange_failed'],
  ])('with error=%s ends as %s', async (error, reason) => {
    await using rig = await createRig()
    const { state } = await rig.begin()
    const query = new URLSearchParams({ error, state, error_description: 'why' })
    expect(await result(rig, query)).toEqual(nothing(reason))
    expect(rig.log.lines).toEqual([`warn Sign-in failed: ${reason}: the provider answered ${error}`])
  })

  it.each(['<script>', '\u001B[2J', 'two\nlines', 'x'.repeat(65)])(
    'does not repeat error=%j',
    async (error) => {
      await using rig = await createRig()
      const { state } = await rig.begin()
      expect(await result(rig, new URLSearchParams({ error, state }))).toEqual(nothing('exchange_failed'))
      expect(rig.log.lines).toEqual([
        'warn Sign-in failed: exchange_failed: the provider gave an unknown error',
      ])
    },
  )

  it.each([
    ['no code', (query: URLSearchParams) => query.delete('code')],
    ['an empty code', (query: URLSearchParams) => query.set('code', '')],
    ['two codes', (query: URLSearchParams) => query.append('code', 'another')],
    [
      'two errors',
      (query: URLSearchParams) => (query.append('error', 'access_denied'), query.append('error', 'x')),
    ],
    ['a response of another kind', (query: URLSearchParams) => query.set('response', 'jwt')],
    ['another issuer', (query: URLSearchParams) => query.set('iss', 'https://elsewhere.test/login/oauth')],
    ['almost the issuer', (query: URLSearchParams) => query.set('iss', `${query.get('iss')}/`)],
    ['an empty issuer', (query: URLSearchParams) => query.set('iss', '')],
    ['the issuer twice', (query: URLSearchParams) => query.append('iss', query.get('iss') ?? '')],
    [
      'an error of another issuer',
      (query: URLSearchParams) => (
        query.set('iss', 'https://elsewhere.test'),
        query.set('error', 'access_denied')
      ),
    ],
  ])('with %s ends as exchange_failed', async (_, change) => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    change(approved)
    expect(await result(rig, approved)).toEqual(nothing('exchange_failed'))
  })

  it('with the issuer twice fails even if no issuer is known', async () => {
    await using rig = await createRig()
    const oauth = { ...rig.server.endpoints, issuer: undefined }
    await using other = await createRig({ provider: { ...rig.parts.provider, oauth } })
    const { approved } = await other.begin()
    approved.append('iss', approved.get('iss') ?? '')
    expect(await result(other, approved)).toEqual(nothing('exchange_failed'))
  })

  it('fails when the client is no longer configured', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    await using other = await createRig({
      store: rig.parts.store,
      provider: rig.parts.provider,
      client: undefined,
    })
    expect(await other.come(approved, rig.jar)).toEqual(failure('exchange_failed'))
    expect(await rig.contents()).toEqual({})
    expect(rig.server.requests).toEqual([])
  })
})

describe('a store that fails', () => {
  it('while taking the state ends as storage_failed, before any request to the provider', async () => {
    await using rig = await createRig()
    const { approved, state } = await rig.begin()
    rig.broken.add('take')
    expect(await rig.come(approved)).toEqual(failure('storage_failed'))
    expect(Object.keys(await rig.contents())).toEqual([`oauth-state:${state}`])
    expect(rig.server.requests).toEqual([])
    expect(rig.log.lines).toEqual(['error Sign-in failed: storage_failed: The store failed'])
  })

  it('while saving the token ends as storage_failed and uses up the state', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    rig.broken.add('update')
    rig.broken.add('put')
    expect(await rig.come(approved)).toEqual(failure('storage_failed'))
    expect(await rig.contents()).toEqual({})
    rig.broken.clear()
    expect(await rig.come(approved)).toEqual(failure('invalid_state'))
  })

  it('with an unexpected error ends as exchange_failed and logs the cause', async () => {
    await using rig = await createRig({
      redirectUri: () => REDIRECT_URI,
      tokens: { save: () => Promise.reject(new TypeError('a bug')) },
    })
    const { approved } = await rig.begin()
    expect(await rig.come(approved)).toEqual(failure('exchange_failed'))
    expect(rig.log.lines).toEqual(['error Sign-in failed: exchange_failed: internal error'])
    expect(rig.log.text()).toContain('TypeError: a bug')
  })
})
