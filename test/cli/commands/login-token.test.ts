import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { testContext } from '../../helpers/context.js'
import { scriptedServer } from '../../helpers/scripted-server.js'
import { DAY, piped, shell, startAlone, startServed } from '../rig.js'

const TOKEN = 'ghp_canary0123456789'

/** A GitHub that knows the token, and says this about it. */
const host = (headers: Record<string, string> = { 'x-oauth-scopes': 'repo' }) =>
  scriptedServer((request) => {
    const isKnown = request.headers.authorization === `Bearer ${TOKEN}`
    return isKnown
      ? { body: { login: 'mona' }, headers }
      : { status: 401, body: { message: 'Bad credentials' } }
  })
const at = (url: string, more = {}) => shell({ RELAY_PROVIDER: 'github', RELAY_PROVIDER_URL: url, ...more })
const NOT_ONE = 'Standard input is not one token: it has white space, or characters that no token has'
const LOGIN = ['login', '--with-token']

/** Makes a token in the sandbox's page, as a browser sends its form. */
async function make(url: string, scope: string): Promise<string> {
  const form = await (await fetch(`${url}/settings/tokens/new`)).text()
  const [, authenticity = ''] = /name="authenticity_token" value="([^"]+)"/.exec(form) ?? []
  const body = new URLSearchParams({ authenticity_token: authenticity, kind: 'classic', scope })
  const page = await (await fetch(`${url}/settings/tokens`, { method: 'POST', body })).text()
  return /<code id="token">([^<]+)</.exec(page)?.[1] ?? ''
}

describe('relay login --with-token', () => {
  it.each([
    ['with an instance', startServed],
    ['without one', startAlone],
  ] as const)(
    'stores a token of the sandbox, %s, and says that revoke cannot revoke it',
    async (_, start) => {
      await using place = await start()
      const { shell, sandbox } = place
      const token = await make(sandbox.url, 'repo')
      const { code, out, err } = await shell.run(LOGIN, { stdin: piped(`${token}\n`) })
      expect({ code, out }).toEqual({ code: 0, out: '' })
      expect(err).toMatch(
        new RegExp(
          `^signed in as octo at ${sandbox.url}, for user ada\nthe token is in \\S+ and expires \\S+\n$`,
        ),
      )
      expect((await shell.run(['token'])).out).toBe(`${token}\n`)
      expect(await shell.run(['comment', 'octo/demo#1', 'hello'])).toMatchObject({ code: 0, err: '' })
      expect(await shell.run(['revoke'])).toEqual({
        code: 8,
        out: '',
        err: `error: The token of ada is deleted here, but it is still valid at ${sandbox.url}: only its user can revoke it, in the settings there\n`,
      })
      expect((await shell.run(['token'])).code).toBe(4)
    },
  )

  it('names a scope that is missing, and stores the token all the same', async () => {
    await using place = await startAlone()
    const token = await make(place.sandbox.url, 'admin:repo_hook')
    const { code, err } = await place.shell.run(LOGIN, { stdin: piped(token) })
    expect(code).toBe(0)
    expect(err).toContain('warning: The token lacks the scope repo: some actions may be refused\n')
    expect((await place.shell.run(['token'])).out).toBe(`${token}\n`)
  })

  it('needs no OAuth client and no profile, and the profile remembers the code host', async () => {
    await using server = await host()
    const here = at(server.url)
    const ran = await here.run([...LOGIN, '--json'], { stdin: piped(TOKEN, '\r\n') })
    expect(ran).toMatchObject({ code: 0, err: '' })
    const { expiresAt, ...account } = JSON.parse(ran.out)
    expect(account).toMatchObject({ v: 1, user: 'ada', login: 'mona', providerUrl: server.url })
    expect(Math.abs(Date.parse(expiresAt) - Date.now() - 30 * DAY)).toBeLessThan(60_000)
    expect(server.received).toHaveLength(1)
    const whoami = await shell({}, here.home).run(['whoami'])
    expect(whoami).toMatchObject({ code: 0, out: expect.stringContaining(server.url) })
  })

  it('keeps the expiry that the code host names, or RELAY_TOKEN_TTL', async () => {
    await using server = await host({ 'github-authentication-token-expiration': '2099-12-31 00:00:00 UTC' })
    const ran = await at(server.url).run([...LOGIN, '--json'], { stdin: piped(TOKEN) })
    expect(JSON.parse(ran.out).expiresAt).toBe('2099-12-31T00:00:00.000Z')
    await using silent = await host()
    const short = await at(silent.url, { RELAY_TOKEN_TTL: '2h' }).run([...LOGIN, '--json'], {
      stdin: piped(TOKEN),
    })
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
    const here = at(server.url)
    expect(await here.run(LOGIN, { stdin: piped(stdin) })).toEqual({
      code,
      out: '',
      err: `error: ${message}\n`,
    })
    expect(server.received).toEqual([])
    expect(existsSync(path.join(here.home, 'default'))).toBe(false)
  })

  it('refuses a token that the code host does not accept, exit 4, and stores nothing', async () => {
    await using server = await host()
    const here = at(server.url)
    const ran = await here.run(LOGIN, { stdin: piped('ghp_other') })
    const err = `error: ${server.url} does not accept this token. Nothing is stored\n`
    expect(ran).toEqual({ code: 4, out: '', err })
    expect((await here.run(['token'])).code).toBe(4)
  })

  it("names a Gitea's missing scope in its own words, exit 8", async () => {
    const message = 'token does not have at least one of required scope(s): [read:user]'
    await using server = await scriptedServer(() => ({ status: 403, body: { message } }))
    const here = shell({ RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: server.url })
    const ran = await here.run(LOGIN, { stdin: piped(TOKEN) })
    expect(ran).toEqual({ code: 8, out: '', err: `error: Gitea refused: ${message}\n` })
  })

  it('refuses a terminal, which would show the token, exit 2', async () => {
    const { context } = testContext()
    const stdin = Object.assign(context.stdin, { isTTY: true })
    expect(await shell().run(LOGIN, { stdin })).toEqual({
      code: 2,
      out: '',
      err: 'error: A terminal would show the token. Pipe it in, for example relay login --with-token < token.txt\n',
    })
  })

  it('is refused with a store that would lose it, exit 2', async () => {
    const ran = await shell({ RELAY_STORE: 'memory' }).run(LOGIN, { stdin: piped(TOKEN) })
    expect(ran).toMatchObject({
      code: 2,
      err: expect.stringContaining('--store memory would lose the token'),
    })
  })
})
