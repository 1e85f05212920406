import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { hurryDevice } from '../kit/code-host.js'
import { device, deviceOf, personalToken } from '../kit/pages.js'
import { CLIENT, hostVariables, type Place, place } from '../kit/place.js'
import { receiver, type Receiver, valuesOf } from '../kit/receiver.js'
import { fails } from '../kit/run.js'
import { fresh } from './fixture.js'

describe('relay login --device', () => {
  const here = fresh(() => place())

  it('signs in with the code, and needs no client secret next to an instance', async () => {
    const { sandbox } = here
    await hurryDevice(here.sandbox)
    await here.serve()
    const env = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
    const running = here.startWith({ env }, 'login', '--device', '--json')
    const { address, code } = await deviceOf(running)
    await device(address, code)
    const ran = await running.ended
    expect(ran.err).toMatch(
      /^Open this address in a browser on any machine, and enter the code:\n\n {2}\S+\/login\/device\n {2}[A-Z]{4}-[A-Z]{4}\n\nWaiting up to 15m for you to do so\. Ctrl-C cancels\.\n$/,
    )
    expect(JSON.parse(ran.out)).toMatchObject({ user: 'ada', login: 'octo', providerUrl: sandbox.url })
    expect((await here.run('token')).out).toMatch(/^gho_\w+\n$/)
    // Named at once, so the first action need not.
    const comment = await here.run('comment', 'octo/demo#1', 'hello')
    expect(comment).toMatchObject({ code: 0, err: '' })
    expect((await here.run('revoke')).err).toContain('and revoked at ')
  })

  it('reports a refusal, exit 4', async () => {
    await hurryDevice(here.sandbox)
    const running = here.start('login', '--device')
    const { address, code: entered } = await deviceOf(running)
    await device(address, entered, 'cancel')
    const { code, out, err } = await running.ended
    expect({ code, out }).toEqual({ code: 4, out: '' })
    expect(err).toContain(`error: Signing in at ${here.sandbox.url} failed: access was denied there\n`)
    expect((await here.run('token')).code).toBe(4)
  })

  it('is chosen where there is no display', async () => {
    const running = here.startWith({ env: { SSH_CONNECTION: '10.0.0.1 22' } }, 'login')
    await deviceOf(running)
    const { code, err } = await running.stop('SIGINT')
    expect([code, err]).toEqual([130, expect.stringContaining('/login/device')])
  })
})

describe('an app without the device flow', () => {
  it('is named by --device, exit 2; where it was only chosen, the browser is used', async () => {
    const body = { error: 'device_flow_disabled', error_description: 'no' }
    await using host = await receiver({ status: 400, body })
    const client = hostVariables('github', host.url, { id: 'id', secret: 'secret' })
    await using here = await place({ host: 'none', env: { ...client, RELAY_PORT: '0', SSH_CONNECTION: 'x' } })
    const disabled = `Signing in at ${host.url} failed: the OAuth app id does not allow the device flow. Enable it in the app's settings there, or use relay login --with-token`
    expect(await here.run('login', '--device')).toEqual(fails(2, disabled))
    const running = here.start('login')
    await running.says('Waiting up to 5 minutes')
    const { code, err: said } = await running.stop('SIGINT')
    expect(code).toBe(130)
    expect(said).toMatch(/^Open this address in a browser:\n\n {2}http:\S+&login=/)
  })

  it('is that of a Gitea, exit 2', async () => {
    const url = 'https://git.example.org'
    const env = hostVariables('gitea', url, { id: 'id', secret: 'secret' })
    await using here = await place({ host: 'none', env })
    const none = `${url} has no device flow. Use relay login --no-browser, or relay login --with-token`
    expect(await here.run('login', '--device')).toEqual(fails(2, none))
  })
})

it('stores nothing where the API does not say whose token was issued, and names its address, exit 8', async () => {
  const codes = { device_code: 'x', user_code: 'WDJB-MJHT', expires_in: 900, interval: 1 }
  await using host = await receiver(({ path }) => {
    if (path === '/login/device/code')
      return { body: { ...codes, verification_uri: 'http://127.0.0.1:9/login/device' } }
    if (path === '/login/oauth/access_token') return { body: { access_token: 'gho_x', token_type: 'bearer' } }
    return { status: 404, body: { message: 'Not Found' } }
  })
  await using here = await place({ host: 'none', env: hostVariables('github', host.url, CLIENT) })
  const { code, err } = await here.run('login', '--device')
  const issued = `error: a token was issued, but the API at ${host.url}/api/v3 did not say whose it is: `
  expect([code, err]).toEqual([8, expect.stringContaining(issued)])
  expect((await here.run('token')).code).toBe(4)
})

const TOKEN = 'ghp_canary0123456789'
const DAY = 86_400_000

/** A GitHub that knows the token, and says this about it. */
function host(headers: Record<string, string> = { 'x-oauth-scopes': 'repo' }): Promise<Receiver> {
  return receiver((request) =>
    valuesOf(request, 'authorization')[0] === `Bearer ${TOKEN}`
      ? { body: { login: 'mona' }, headers }
      : { status: 401, body: { message: 'Bad credentials' } },
  )
}

/** A machine that knows the code host's address, and no OAuth application there. */
function at(url: string, more: Record<string, string> = {}, provider = 'github'): Promise<Place> {
  return place({ host: 'none', env: { RELAY_PROVIDER: provider, RELAY_PROVIDER_URL: url, ...more } })
}

const NOT_ONE = 'Standard input is not one token: it has white space, or characters that no token has'
const LOGIN = ['login', '--with-token']

describe('relay login --with-token', () => {
  it('stores a token of the sandbox, and says that revoke cannot revoke it', async () => {
    await using here = await place()
    const { sandbox } = here
    const token = await personalToken(sandbox.url)
    const { code, out, err } = await here.runWith({ stdin: `${token}\n` }, ...LOGIN)
    expect({ code, out }).toEqual({ code: 0, out: '' })
    const signedIn = `signed in as octo at ${sandbox.url}, for user ada\n`
    expect(err).toMatch(new RegExp(`^${signedIn}the token is in \\S+ and expires \\S+\n$`))
    expect((await here.run('token')).out).toBe(`${token}\n`)
    expect(await here.run('comment', 'octo/demo#1', 'hello')).toMatchObject({ code: 0, err: '' })
    const valid = `The token of ada is deleted here, but it is still valid at ${sandbox.url}: only its user can revoke it, in the settings there`
    expect(await here.run('revoke')).toEqual(fails(8, valid))
    expect((await here.run('token')).code).toBe(4)
  })

  it('names a scope that is missing, and stores the token all the same', async () => {
    await using server = await host({ 'x-oauth-scopes': 'admin:repo_hook' })
    await using here = await at(server.url)
    const { code, err } = await here.runWith({ stdin: TOKEN }, ...LOGIN)
    const lacks = 'warning: The token lacks the scope repo: some actions may be refused\n'
    expect([code, err]).toEqual([0, expect.stringContaining(lacks)])
    expect((await here.run('token')).out).toBe(`${TOKEN}\n`)
  })

  it('needs no OAuth client and no profile, and the profile remembers the code host', async () => {
    await using server = await host()
    await using here = await at(server.url)
    const ran = await here.runWith({ stdin: `${TOKEN}\r\n` }, ...LOGIN, '--json')
    expect(ran).toMatchObject({ code: 0, err: '' })
    const { expiresAt, ...account } = JSON.parse(ran.out)
    expect(account).toMatchObject({ v: 1, user: 'ada', login: 'mona', providerUrl: server.url })
    expect(Math.abs(Date.parse(expiresAt) - Date.now() - 30 * DAY)).toBeLessThan(60_000)
    expect(server.received).toHaveLength(1)
    const env = { RELAY_PROVIDER: undefined, RELAY_PROVIDER_URL: undefined }
    expect((await here.runWith({ env }, 'whoami')).out).toContain(server.url)
  })

  it('keeps the expiry that the code host names, or RELAY_TOKEN_TTL', async () => {
    await using server = await host({ 'github-authentication-token-expiration': '2099-12-31 00:00:00 UTC' })
    await using here = await at(server.url)
    const ran = await here.runWith({ stdin: TOKEN }, ...LOGIN, '--json')
    expect(JSON.parse(ran.out).expiresAt).toBe('2099-12-31T00:00:00.000Z')
    await using silent = await host()
    await using other = await at(silent.url, { RELAY_TOKEN_TTL: '2h' })
    const short = await other.runWith({ stdin: TOKEN }, ...LOGIN, '--json')
    expect(Math.abs(Date.parse(JSON.parse(short.out).expiresAt) - Date.now() - DAY / 12)).toBeLessThan(60_000)
  })

  it.each([
    ['', 'Standard input has no token'],
    ['\n', 'Standard input has no token'],
    [`${TOKEN}\n\n`, NOT_ONE],
    [`${TOKEN} ${TOKEN}`, NOT_ONE],
    ['tökén', NOT_ONE],
    ['x'.repeat(8_195), 'Standard input is longer than any token (8 KiB)'],
  ])('refuses %j, exit 2, and asks nothing', async (stdin, message) => {
    await using server = await host()
    await using here = await at(server.url)
    expect(await here.runWith({ stdin }, ...LOGIN)).toEqual(fails(2, message))
    expect(server.received).toEqual([])
    expect(readdirSync(here.home)).toEqual([])
  })

  it('refuses a token that the code host does not accept, exit 4, and stores nothing', async () => {
    await using server = await host()
    await using here = await at(server.url)
    const refused = `${server.url} does not accept this token. Nothing is stored`
    expect(await here.runWith({ stdin: 'ghp_other' }, ...LOGIN)).toEqual(fails(4, refused))
    expect(readdirSync(here.home)).toEqual([])
    expect((await here.run('token')).code).toBe(4)
  })

  it("names a Gitea's missing scope in its own words, exit 8", async () => {
    const message = 'token does not have at least one of required scope(s): [read:user]'
    await using server = await receiver({ status: 403, body: { message } })
    await using here = await at(server.url, {}, 'gitea')
    const ran = await here.runWith({ stdin: TOKEN }, ...LOGIN)
    expect(ran).toEqual(fails(8, `Gitea refused: ${message}`))
  })

  it('refuses a terminal, which would show the token, exit 2', async () => {
    await using here = await place({ host: 'none' })
    const shows =
      'A terminal would show the token. Pipe it in, for example relay login --with-token < token.txt'
    expect(await here.runWith({ terminal: { streams: ['stdin'] } }, ...LOGIN)).toEqual(fails(2, shows))
  })
})
