import { describe, expect, it } from 'vitest'
import { deviceOf, addressOf, beginSignIn } from '../kit/pages.js'
import { place } from '../kit/place.js'
import { fails } from '../kit/run.js'
import { fresh, json } from './fixture.js'

/** A server with a path, as `relative_url_root` gives it one. */
const here = fresh(async () => {
  const made = await place({ host: 'gitlab', gitlab: { path: '/git' } })
  made.gitlab.state.oauth.client.redirectUris.push('http://127.0.0.1/auth/gitlab/callback')
  return made
})

/** A person agrees on GitLab's page, or cancels, and comes back to relay. */
async function decide(address: string, cancels = false): Promise<string> {
  const { authorize, cookie } = await beginSignIn(address)
  const page = await fetch(authorize)
  if (!page.ok) throw new Error(await page.text())
  const form = new URL(authorize).searchParams
  if (cancels) form.set('_method', 'delete')
  const url = `${here.gitlab.url}/oauth/authorize`
  const decided = await fetch(url, { method: 'POST', body: form, redirect: 'manual' })
  const back = await fetch(decided.headers.get('location') ?? '', { headers: { cookie }, redirect: 'manual' })
  return back.headers.get('location') ?? ''
}

async function signIn(cancels = false) {
  await using login = here.startWith({ env: { RELAY_PORT: '0' } }, 'login', '--no-browser', '--json')
  await decide(await addressOf(login), cancels)
  return await login.ended
}

const tokens = () => [...here.gitlab.state.oauth.tokens.values()]
const formsOf = () => here.gitlab.state.oauth.forms

describe('signing in at a GitLab', () => {
  it('exchanges the code with PKCE for a token of the scope api, and names its scopes and end', async () => {
    const { code, out } = await signIn()
    expect(code).toBe(0)
    const { url } = here.gitlab
    expect(JSON.parse(out)).toMatchObject({
      user: 'ada',
      login: 'mona',
      provider: 'gitlab',
      providerUrl: url,
    })
    expect(formsOf()).toMatchObject([{ grant_type: 'authorization_code', code_verifier: expect.any(String) }])
    const { login, scopes, expiresAt } = await json(here.run('whoami', '--json'))
    expect([login, scopes]).toEqual(['mona', ['api']])
    expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(7_000_000)
  })

  it('ends where access is denied', async () => {
    const { code, err } = await signIn(true)
    expect([code, err]).toEqual([
      4,
      expect.stringContaining('access was denied at the code host (access_denied)'),
    ])
  })

  it('renews the pair with the redirect URI of the sign-in, and stores what came', async () => {
    await signIn()
    const [first] = tokens()
    const [{ redirect_uri: redirectUri } = {}] = formsOf()
    const before = (await here.run('token')).out
    const later = { seams: { clock: () => Date.now() + 7_190_000 } }
    const after = (await here.runWith(later, 'token')).out
    expect(after).not.toBe(before)
    expect(formsOf()[1]).toMatchObject({ grant_type: 'refresh_token', redirect_uri: redirectUri })
    expect([first?.revoked, tokens().length]).toEqual([true, 2])
    expect(await here.run('token')).toMatchObject({ code: 0, out: after })
  })

  it('is revoked there, with its refresh token', async () => {
    await signIn()
    expect(await here.run('revoke')).toMatchObject({
      code: 0,
      err: expect.stringContaining('and revoked at '),
    })
    expect(tokens()).toMatchObject([{ revoked: true }])
  })

  it('says that the client is unknown, where revoking needs it', async () => {
    await signIn()
    const env = { RELAY_CLIENT_SECRET: 'another' }
    const { err } = await here.runWith({ env }, 'revoke')
    expect(err).toContain('GitLab refused: it does not know this client id and secret')
    expect(tokens()).toMatchObject([{ kind: 'oauth', ends: expect.any(Number) }])
  })

  it.each([
    ['a confidential application', true, {}],
    ['a public application, without its secret', false, { RELAY_CLIENT_SECRET: undefined }],
  ])('goes by a code that is entered on another machine, of %s', async (_, confidential, env) => {
    here.gitlab.state.oauth.client.confidential = confidential
    await here.serve()
    const login = here.startWith({ env }, 'login', '--device', '--json')
    const { address, code } = await deviceOf(login)
    expect([address, code]).toEqual([expect.stringMatching(/\/oauth\/device$/), '0A44L90H'])
    const [device] = here.gitlab.state.oauth.devices.values()
    if (device) device.says = 'agreed'
    const ended = await login.ended
    expect([ended.code, JSON.parse(ended.out)]).toMatchObject([0, { login: 'mona' }])
  })

  it('says that a code for a confidential application needs its secret', async () => {
    await here.serve()
    const env = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
    const { code, err } = await here.runWith({ env }, 'login', '--device')
    expect([code, err]).toEqual([2, expect.stringContaining('RELAY_CLIENT_SECRET')])
  })

  it('says that an administrator has the codes off, and goes by the browser if it was not asked for them', async () => {
    here.gitlab.state.oauth.noDevices = true
    const off = `${here.gitlab.url} has no device flow. Use relay login --no-browser, or relay login --with-token`
    expect(await here.run('login', '--device')).toEqual(fails(2, off))
    const env = { RELAY_PORT: '0', SSH_CONNECTION: '10.0.0.1 22' }
    await using login = here.startWith({ env }, 'login')
    await login.says('Waiting up to 5 minutes')
  })
})

describe('relay login --with-token at a GitLab', () => {
  const withToken = (token: string, ...more: string[]) =>
    here.runWith({ stdin: token }, 'login', '--with-token', ...more)

  it('stores a personal token with the scopes and the last day that GitLab names', async () => {
    const token = here.gitlab.token({ expiresAt: '2030-01-31' })
    expect(JSON.parse((await withToken(token, '--json')).out)).toMatchObject({
      login: 'mona',
      expiresAt: '2030-01-31T00:00:00.000Z',
    })
    expect(await json(here.run('whoami', '--json'))).toMatchObject({ login: 'mona', scopes: ['api'] })
  })

  it.each(['project_7_bot_4b1c', 'group_3_bot_9f2e'])(
    'stores the token of %s, the bot of such a token',
    async (bot) => {
      const token = here.gitlab.token({ username: bot, expiresAt: '2030-01-31' })
      expect(JSON.parse((await withToken(token, '--json')).out)).toMatchObject({ login: bot })
      expect(await json(here.run('whoami', '--json'))).toMatchObject({
        login: bot,
        scopes: ['api'],
        expiresAt: '2030-01-31T00:00:00.000Z',
      })
    },
  )

  it('leaves a personal token valid there, which the user has made', async () => {
    await withToken(here.gitlab.token())
    const { code, err } = await here.run('revoke')
    expect([code, err]).toEqual([
      8,
      expect.stringContaining('only its user can revoke it, in the settings there'),
    ])
    expect(tokens()).toEqual([{ kind: 'personal', username: 'mona', scopes: ['api'] }])
  })

  it('warns of a token that may only read', async () => {
    const { code, err } = await withToken(here.gitlab.token({ scopes: ['read_api'] }))
    expect([code, err]).toEqual([
      0,
      expect.stringMatching(/^warning: The token lacks the scope api: some actions may be refused\n/),
    ])
  })

  it.each([
    ['is unknown', () => 'glpat-unknown'],
    ['has ended', () => here.gitlab.token({ expiresAt: '2020-01-01' })],
  ])('refuses a token that %s, exit 4', async (_, token) => {
    expect(await withToken(token())).toEqual(
      fails(4, `${here.gitlab.url} does not accept this token. Nothing is stored`),
    )
  })

  it('names the scopes that are needed, exit 8', async () => {
    const { code, err } = await withToken(here.gitlab.token({ scopes: ['read_repository'] }))
    expect([code, err]).toEqual([
      8,
      'error: GitLab refused: The request requires higher privileges than provided by the access token.\n',
    ])
  })
})

describe('settings for a GitLab', () => {
  it('have gitlab.com as their address', async () => {
    await using alone = await place({ host: 'none', env: { RELAY_PROVIDER: 'gitlab' } })
    expect((await alone.run('config', '--reveal', 'providerUrl')).out).toBe('https://gitlab.com\n')
  })
})
