import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { RelayError } from '../../../src/base/errors.js'
import { main } from '../../../src/cli/main.js'
import { testContext } from '../../helpers/context.js'
import { scriptedServer } from '../../helpers/scripted-server.js'
import { type Alone, type Ran, type Served, type Shell, shell, startAlone, startServed } from '../rig.js'

const INTERRUPTED = new RelayError('cancelled', 'Interrupted')

/** Runs `relay login …`, and calls `visit` with the address and the code that it prints. */
async function login(
  { env }: Pick<Shell, 'env'>,
  argv: readonly string[],
  visit: (address: string, code: string) => unknown,
  signal = new AbortController().signal,
): Promise<Ran> {
  let said = ''
  let visited = false
  const stderr = {
    write(text: string) {
      said += text
      const [, address = '', code = ''] = /\n {2}(http\S+)\n {2}(\S+)\n/.exec(said) ?? []
      if (code === '' || visited) return
      visited = true
      void visit(address, code)
    },
  }
  const { context, out } = testContext({ env, stderr, signal })
  return { code: await main(['login', ...argv], context), out: out(), err: said }
}

/** Enters the code in the sandbox's page, and presses a button of the next. */
const enter = (authorize: '0' | '1') => async (address: string, code: string) => {
  const post = (url: string, fields: Record<string, string>) =>
    fetch(url, { method: 'POST', body: new URLSearchParams(fields) })
  const page = await (await post(address, { user_code: code })).text()
  const [, token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(page) ?? []
  await post(`${address}/confirmation`, { authenticity_token: token, authorize })
}

const places = [
  ['with an instance', startServed],
  ['without one', startAlone],
] as const

// The sandbox asks for 5 s between two polls, so each of these waits once.
describe.each(places)('relay login --device, %s', { timeout: 20_000 }, (_, start) => {
  let place: Served | Alone
  beforeEach(async () => {
    place = await start()
    await place.shell.run(['revoke', '--local'])
  })
  afterEach(() => place[Symbol.asyncDispose]())

  it('signs in with the code, and needs no client secret next to an instance', async () => {
    const { sandbox } = place
    const ran = await login(place.shell, ['--device', '--json'], enter('1'))
    expect(ran.err).toMatch(
      /^Open this address in a browser on any machine, and enter the code:\n\n {2}\S+\/login\/device\n {2}[A-Z]{4}-[A-Z]{4}\n\nWaiting up to 15m for you to do so\. Ctrl-C cancels\.\n$/,
    )
    expect(JSON.parse(ran.out)).toMatchObject({ user: 'ada', login: 'octo', providerUrl: sandbox.url })
    expect((await place.shell.run(['token'])).out).toMatch(/^gho_\w+\n$/)
    // Named at once, so the first action need not.
    const comment = await place.shell.run(['comment', 'octo/demo#1', 'hello'])
    expect(comment).toMatchObject({ code: 0, err: '' })
    expect((await place.shell.run(['revoke'])).err).toContain('and revoked at ')
  })

  it('reports a refusal, exit 4', async () => {
    const { code, out, err } = await login(place.shell, ['--device'], enter('0'))
    expect({ code, out }).toEqual({ code: 4, out: '' })
    expect(err).toContain(`error: Signing in at ${place.sandbox.url} failed: access was denied there\n`)
    expect((await place.shell.run(['token'])).code).toBe(4)
  })

  it('is given up by Ctrl-C while it waits, exit 130, and stores nothing', async () => {
    const controller = new AbortController()
    const stop = (): void => controller.abort(INTERRUPTED)
    expect(await login(place.shell, ['--device'], stop, controller.signal)).toMatchObject({
      code: 130,
      out: '',
    })
    expect((await place.shell.run(['token'])).code).toBe(4)
  })

  it('is chosen where there is no display', async () => {
    const controller = new AbortController()
    const stop = (): void => controller.abort(INTERRUPTED)
    const env = { ...place.shell.env, SSH_CONNECTION: '10.0.0.1 22' }
    expect(await login({ env }, [], stop, controller.signal)).toMatchObject({
      code: 130,
      err: expect.stringContaining('/login/device'),
    })
  })
})

describe('an app without the device flow', () => {
  const SETTINGS = {
    RELAY_CLIENT_ID: 'id',
    RELAY_CLIENT_SECRET: 'secret',
    RELAY_PORT: '0',
    RELAY_PROVIDER: 'github',
  }

  it('is named by --device, exit 2; where it was only chosen, the browser is used', async () => {
    await using host = await scriptedServer(() => ({
      status: 400,
      body: { error: 'device_flow_disabled', error_description: 'no' },
    }))
    const here = shell({ ...SETTINGS, RELAY_PROVIDER_URL: host.url, SSH_CONNECTION: 'x' })
    expect(await here.run(['login', '--device'])).toEqual({
      code: 2,
      out: '',
      err: `error: Signing in at ${host.url} failed: the OAuth app id does not allow the device flow. Enable it in the app's settings there, or use relay login --with-token\n`,
    })
    const controller = new AbortController()
    let said = ''
    const stderr = {
      write(text: string) {
        said += text
        if (text.includes('Waiting up to 5 minutes')) controller.abort(INTERRUPTED)
      },
    }
    expect(await here.run(['login'], { stderr, signal: controller.signal })).toMatchObject({ code: 130 })
    expect(said).toMatch(/^Open this address in a browser:\n\n {2}http:\S+&login=/)
  })

  it('is that of a Gitea, exit 2', async () => {
    const url = 'https://git.example.org'
    const gitea = { ...SETTINGS, RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: url }
    expect(await shell(gitea).run(['login', '--device'])).toEqual({
      code: 2,
      out: '',
      err: `error: ${url} has no device flow. Use relay login --no-browser, or relay login --with-token\n`,
    })
  })

  it('is none at all, exit 2', async () => {
    const { code, err } = await shell().run(['login', '--device'])
    expect(code).toBe(2)
    expect(err).toContain('error: Sign-in at https://github.com is not set up. Run relay setup, ')
    expect(await shell().run(['login', '--device', '--with-token'])).toEqual({
      code: 2,
      out: '',
      err: 'error: --device and --with-token are two ways to sign in. Give one of them\n',
    })
  })
})
