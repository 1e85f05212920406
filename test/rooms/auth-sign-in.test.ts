import { describe, expect, it } from 'vitest'
import { authorize, awaitLogin, callback, type SignInParts } from '../../src/auth/sign-in.js'
import { ACCESS_TOKEN, type Asked, createRig, REDIRECT_URI, type Reply, WEB } from './auth-rig.js'

const LOGIN = 'A-login_of-our0wn'
const API = `${WEB}/api/v3`
const isToken = ({ url }: Asked): boolean => url.endsWith('/access_token')
const GRANT = { access_token: ACCESS_TOKEN, token_type: 'bearer', scope: 'repo' }

/** A code host whose API says this of the token, and whose token endpoint answers with one. */
const host =
  (api: Reply = { body: { login: 'octo' } }, token: Reply = { body: GRANT }) =>
  (asked: Asked): Reply =>
    isToken(asked) ? token : api

type Rig = Awaited<ReturnType<typeof createRig>>

/** A browser that has begun to sign in, and what it comes back with. */
async function begin({ parts }: Pick<Rig, 'parts'>, login?: string, userId = 'ada') {
  const { location, cookie } = await authorize(parts, userId, login)
  const query = new URLSearchParams({
    code: 'a-code',
    state: new URL(location).searchParams.get('state') ?? '',
  })
  return { location, cookie, query, cookies: { [cookie.name]: cookie.value } }
}

describe('a sign-in that relay login waits for', () => {
  it('publishes the account, asked for before the token is stored, and asks nothing for one that is not waited for', async () => {
    const storedAt: unknown[] = []
    await using rig = await createRig(async (asked) => {
      storedAt.push(await rig.tokens.get('ada'))
      return host()(asked)
    })
    const visit = await begin(rig, LOGIN)
    expect((await callback(rig.parts, visit)).outcome).toEqual({ auth: 'success', userId: 'ada' })
    expect(await awaitLogin(rig.store, LOGIN)).toEqual({ auth: 'success', userId: 'ada', account: 'octo' })
    expect(storedAt).toEqual([undefined, undefined])
    expect(await rig.tokens.get('ada')).toMatchObject({ accessToken: ACCESS_TOKEN, origin: WEB })
    await callback(rig.parts, await begin(rig))
    expect(rig.asked.map(isToken)).toEqual([true, false, true])
  })

  it.each<[string, Reply, Reply, RegExp]>([
    ['an API elsewhere', { status: 404, body: { message: 'Not Found' } }, { body: GRANT }, new RegExp(API)],
    ['an API that fails', { status: 502 }, { body: GRANT }, new RegExp(API)],
    ['an API that is not reached', 'reset', { body: GRANT }, new RegExp(API)],
    ['an API that refuses the token', { status: 401 }, { body: GRANT }, new RegExp(API)],
    [
      'a token endpoint that fails',
      { body: { login: 'octo' } },
      { status: 502 },
      new RegExp(`^the token endpoint answered 502 \\(${WEB}/login/oauth/access_token\\)$`),
    ],
  ])(
    'fails in browser and command alike at %s, which is named, and stores nothing',
    async (_, api, token, why) => {
      await using rig = await createRig(host(api, token))
      const failed = { auth: 'error', reason: 'provider_unavailable' }
      expect((await callback(rig.parts, await begin(rig, LOGIN))).outcome).toEqual(failed)
      expect(await awaitLogin(rig.store, LOGIN)).toEqual({ ...failed, why: expect.stringMatching(why) })
      expect(await rig.contents()).toEqual({})
      expect(rig.log.text()).not.toContain(ACCESS_TOKEN)
    },
  )

  it('does not learn of it when the store fails, which does not change the sign-in', async () => {
    await using rig = await createRig(host())
    const visit = await begin(rig, LOGIN)
    rig.broken.add('put')
    expect((await callback(rig.parts, visit)).outcome).toEqual({ auth: 'success', userId: 'ada' })
    expect(rig.log.lines).toEqual([
      'error The outcome of this sign-in could not be stored, so relay login does not see it',
    ])
  })
})

describe('a callback', () => {
  const invalid = { auth: 'error', reason: 'invalid_state' }

  it('takes no record but a state', async () => {
    await using rig = await createRig(host())
    await rig.store.put('token:ada', 'stays')
    const strange = new URLSearchParams({ state: '../token:ada', code: 'x' })
    expect((await callback(rig.parts, { query: strange, cookies: {} })).outcome).toEqual(invalid)
    expect(await rig.contents()).toEqual({ 'token:ada': 'stays' })
  })

  it('sends verifier and redirect URI as they were stored, also after the settings changed', async () => {
    await using rig = await createRig(host())
    const { location, ...visit } = await begin(rig)
    const parts: SignInParts = { ...rig.parts, redirectUri: () => 'http://127.0.0.1:9/else' }
    expect((await callback(parts, visit)).outcome).toMatchObject({ auth: 'success' })
    const { form = {} } = rig.asked[0] ?? {}
    expect(form['redirect_uri']).toBe(REDIRECT_URI)
    const digest = await crypto.subtle.digest('SHA-256', Buffer.from(form['code_verifier'] ?? ''))
    const { searchParams } = new URL(location)
    expect(searchParams.get('code_challenge')).toBe(Buffer.from(digest).toString('base64url'))
    expect(searchParams.get('code_challenge_method')).toBe('S256')
  })

  it('of another code host is not completed', async () => {
    await using rig = await createRig(host())
    const visit = await begin(rig)
    const elsewhere = { ...rig.host, origin: 'https://elsewhere.example' }
    expect((await callback({ ...rig.parts, host: elsewhere }, visit)).outcome).toEqual(invalid)
    expect(rig.asked).toEqual([])
  })

  it('at 127.0.0.1 of a sign-in that began at localhost says where to begin', async () => {
    await using rig = await createRig(host())
    const { query } = await begin(rig)
    await callback(rig.parts, { query, cookies: {} })
    expect(rig.log.lines).toEqual([
      'warn Sign-in failed: invalid_state: the browser sent no cookie for this sign-in; start it at http://127.0.0.1:8787',
    ])
  })

  it('without parameters is Cancel of Gitea 1.15: it ends the sign-ins of this browser, and publishes that', async () => {
    await using rig = await createRig(host(), { name: 'gitea' })
    const elsewhere = await begin(rig, undefined, 'bob')
    const logins = ['first-login_0123456', 'other-login_0123456']
    const visits = [await begin(rig, logins[0]), await begin(rig, logins[1])]
    const cookies = { ...visits[0]?.cookies, ...visits[1]?.cookies, relay_oauth_01234567: 'strange', a: 'b' }
    const { outcome, spent } = await callback(rig.parts, { query: new URLSearchParams(), cookies })
    expect(outcome).toEqual({ auth: 'error', reason: 'access_denied' })
    expect(spent.map(({ name }) => name)).toEqual(Object.keys(cookies).filter((name) => name !== 'a'))
    for (const login of logins)
      expect(await awaitLogin(rig.store, login)).toMatchObject({ auth: 'error', reason: 'access_denied' })
    expect(Object.keys(await rig.contents())).toEqual([`oauth-state:${elsewhere.query.get('state')}`])
  })

  it.each<[string, (query: URLSearchParams) => unknown, string]>([
    ['server_error', (query) => query.set('error', 'server_error'), 'provider_unavailable'],
    [
      'temporarily_unavailable',
      (query) => query.set('error', 'temporarily_unavailable'),
      'provider_unavailable',
    ],
    ['another error', (query) => query.set('error', 'redirect_uri_mismatch'), 'exchange_failed'],
    ['an error that is no code', (query) => query.set('error', '\u{1b}[2J<script>'), 'exchange_failed'],
    ['two errors', (query) => (query.append('error', 'x'), query.append('error', 'x')), 'exchange_failed'],
    ['two codes', (query) => query.append('code', 'other'), 'exchange_failed'],
    ['no code', (query) => query.delete('code'), 'exchange_failed'],
    ['two states', (query) => query.append('state', 'other'), 'invalid_state'],
  ])('with %s asks for no token', async (_, change, reason) => {
    await using rig = await createRig(host())
    const visit = await begin(rig)
    change(visit.query)
    expect((await callback(rig.parts, visit)).outcome).toEqual({ auth: 'error', reason })
    expect(rig.asked).toEqual([])
    expect(await rig.contents()).toEqual({})
    expect(rig.log.text()).not.toMatch(/\\u001b|\[2J|<script>|https:/)
  })

  it('warns of scopes that were not granted', async () => {
    await using rig = await createRig(host(undefined, { body: { ...GRANT, scope: 'gist,read:user' } }))
    await callback(rig.parts, await begin(rig))
    expect(rig.log.lines).toEqual(['warn The provider did not grant repo: some actions may be refused'])
  })
})
