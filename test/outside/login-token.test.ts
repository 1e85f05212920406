import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { personalToken } from '../kit/pages.js'
import { type Place, place } from '../kit/place.js'
import { type Receiver, receiver, valuesOf } from '../kit/receiver.js'
import { fails } from '../kit/run.js'

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
    expect(err).toMatch(
      new RegExp(
        `^signed in as octo at ${sandbox.url}, for user ada\nthe token is in \\S+ and expires \\S+\n$`,
      ),
    )
    expect((await here.run('token')).out).toBe(`${token}\n`)
    expect(await here.run('comment', 'octo/demo#1', 'hello')).toMatchObject({ code: 0, err: '' })
    expect(await here.run('revoke')).toEqual(
      fails(
        8,
        `The token of ada is deleted here, but it is still valid at ${sandbox.url}: only its user can revoke it, in the settings there`,
      ),
    )
    expect((await here.run('token')).code).toBe(4)
  })

  it('names a scope that is missing, and stores the token all the same', async () => {
    await using server = await host({ 'x-oauth-scopes': 'admin:repo_hook' })
    await using here = await at(server.url)
    const token = TOKEN
    const { code, err } = await here.runWith({ stdin: token }, ...LOGIN)
    expect(code).toBe(0)
    expect(err).toContain('warning: The token lacks the scope repo: some actions may be refused\n')
    expect((await here.run('token')).out).toBe(`${token}\n`)
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
    expect(await here.runWith({ env }, 'whoami')).toMatchObject({
      code: 0,
      out: expect.stringContaining(server.url),
    })
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
    ['', 2, 'Standard input has no token'],
    ['\n', 2, 'Standard input has no token'],
    [`${TOKEN}\n\n`, 2, NOT_ONE],
    [`${TOKEN} ${TOKEN}`, 2, NOT_ONE],
    ['tökén', 2, NOT_ONE],
    ['x'.repeat(8_195), 2, 'Standard input is longer than any token (8 KiB)'],
  ])('refuses %j, exit %i, and asks nothing', async (stdin, code, message) => {
    await using server = await host()
    await using here = await at(server.url)
    expect(await here.runWith({ stdin }, ...LOGIN)).toEqual({
      code,
      out: '',
      err: `error: ${message}\n`,
    })
    expect(server.received).toEqual([])
    expect(readdirSync(here.home)).toEqual([])
  })

  it('refuses a token that the code host does not accept, exit 4, and stores nothing', async () => {
    await using server = await host()
    await using here = await at(server.url)
    const ran = await here.runWith({ stdin: 'ghp_other' }, ...LOGIN)
    const err = `error: ${server.url} does not accept this token. Nothing is stored\n`
    expect(ran).toEqual({ code: 4, out: '', err })
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
    expect(await here.runWith({ terminal: { streams: ['stdin'] } }, ...LOGIN)).toEqual(
      fails(
        2,
        'A terminal would show the token. Pipe it in, for example relay login --with-token < token.txt',
      ),
    )
  })

  it('is refused with a store that would lose it, exit 2', async () => {
    await using here = await place({ host: 'none', env: { RELAY_STORE: 'memory' } })
    expect(await here.runWith({ stdin: TOKEN }, ...LOGIN)).toMatchObject({
      code: 2,
      err: expect.stringContaining('--store memory would lose the token'),
    })
  })
})
