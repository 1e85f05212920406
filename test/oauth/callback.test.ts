import { describe, expect, it } from 'vitest'
import { createRig, failure, nothing, REDIRECT_URI, result } from './rig.js'

describe('a callback without a usable code', () => {
  it('with nothing at all is the Cancel of Gitea; the state waits for its end', async () => {
    await using rig = await createRig()
    const { state } = await rig.begin()
    expect(await rig.come({})).toEqual(failure('access_denied'))
    expect(Object.keys(await rig.contents())).toEqual([`oauth-state:${state}`])
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
    expect(rig.log.lines).toEqual([`warn Sign-in failed: ${reason}: the provider said ${error}`])
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

  it('with the issuer twice fails also where no issuer is known', async () => {
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
  it('while the state is taken ends as storage_failed, before the provider is asked', async () => {
    await using rig = await createRig()
    const { approved, state } = await rig.begin()
    rig.broken.add('take')
    expect(await rig.come(approved)).toEqual(failure('storage_failed'))
    expect(Object.keys(await rig.contents())).toEqual([`oauth-state:${state}`])
    expect(rig.server.requests).toEqual([])
    expect(rig.log.lines).toEqual(['error Sign-in failed: storage_failed: The store failed'])
  })

  it('while the token is saved ends as storage_failed, and the state is spent', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    rig.broken.add('write')
    rig.broken.add('put')
    expect(await rig.come(approved)).toEqual(failure('storage_failed'))
    expect(await rig.contents()).toEqual({})
    rig.broken.clear()
    expect(await rig.come(approved)).toEqual(failure('invalid_state'))
  })

  it('in a way nobody expected ends as exchange_failed, with the cause in the log', async () => {
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
