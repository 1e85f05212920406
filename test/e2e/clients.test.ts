import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { startSandbox } from '../../src/testing/index.js'
import { CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { startKeyring } from '../helpers/keyring.js'
import { describeWith } from '../helpers/needs.js'
import { Program, relay } from '../helpers/program.js'
import { signIn } from '../helpers/sign-in.js'

const SANDBOX = ['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json']

async function statusAt(sandbox: string, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` }
  return (await fetch(`${sandbox}/api/v3/user`, { headers })).status
}

describeWith('keyring', 'relay serve --store keychain, in a terminal that knows nothing of it', () => {
  it('shows, uses and revokes the token in the keychain', async () => {
    await using keyring = await startKeyring()
    const env = { ...keyring.env, RELAY_HOME: emptyFolder(), RELAY_USER: 'ada' }
    await using program = new Program([...SANDBOX, '--store', 'keychain'], env)
    const { url, sandbox } = await program.listening()
    await signIn(url, 'ada')
    const found = `Using profile sandbox, which runs at ${url}\n`

    const whoami = await relay(['whoami', '--json'], env)
    expect({ code: whoami.code, err: whoami.err }).toEqual({ code: 0, err: found })
    expect(JSON.parse(whoami.out)).toMatchObject({
      login: 'octo',
      store: 'the keychain, service relay:sandbox',
    })
    expect(await relay(['comment', 'octo/demo#1', 'hello'], env)).toMatchObject({ code: 0 })
    const token = (await relay(['token'], env)).out.trim()
    expect(await statusAt(sandbox, token)).toBe(200)

    expect(await relay(['token'], { ...env, RELAY_STORE: 'file' })).toEqual({
      code: 2,
      signal: null,
      out: '',
      err: `${found}error: RELAY_STORE is file, but process ${program.pid} serves profile sandbox with --store keychain. Unset the variable, or name another profile with --profile\n`,
    })

    expect(await relay(['revoke'], env)).toEqual({
      code: 0,
      signal: null,
      out: '',
      err: `${found}the token of ada is deleted here, and revoked at ${sandbox}\n`,
    })
    expect(await statusAt(sandbox, token)).toBe(401)
    expect(await relay(['token'], env)).toMatchObject({ code: 4, out: '' })
    await program.stop()
    const { out } = await relay(['profiles', '--json'], env)
    expect(JSON.parse(out)).toMatchObject({
      name: 'sandbox',
      sandbox: true,
      store: 'keychain',
      running: null,
    })
  })
})

describeWith('keyring', 'a profile that changed from the keychain to the file store', () => {
  it('has the tokens of both revoked', async () => {
    await using keyring = await startKeyring()
    await using host = await startSandbox({ client: CLIENT })
    const env = { ...keyring.env, RELAY_HOME: emptyFolder(), RELAY_USER: 'ada', ...codeHost(host) }
    const tokens: string[] = []
    for (const store of ['keychain', 'file']) {
      await using program = new Program(['serve', '--port', '0', '--json', '--store', store], env)
      await signIn(await program.url(), 'ada')
      tokens.push((await relay(['token'], env)).out.trim())
      await program.stop()
    }
    const statuses = async (): Promise<number[]> =>
      Promise.all(tokens.map(async (token) => statusAt(host.url, token)))
    expect(await statuses()).toEqual([200, 200])
    expect(await relay(['revoke'], env)).toMatchObject({ code: 0 })
    expect(await statuses()).toEqual([401, 401])
    expect((await relay(['revoke'], env)).err).toBe('ada was not signed in, so there was nothing to revoke\n')
  })
})

describe('relay serve --store memory, in another terminal', () => {
  it('takes deliveries, and every command that needs its data says why it cannot', async () => {
    const env = { RELAY_HOME: emptyFolder(), RELAY_USER: 'ada' }
    await using program = new Program([...SANDBOX, '--store', 'memory'], env)
    const url = await program.url()
    const found = `Using profile sandbox, which runs at ${url}\n`
    const trigger = await relay(['trigger', 'push'], env)
    expect({ code: trigger.code, err: trigger.err }).toEqual({ code: 0, err: `${found}1 sent\n` })
    await program.object({ event: 'push' })
    const only = (what: string): string =>
      `${found}error: Process ${program.pid} serves profile sandbox with --store memory, so no other process can read ${what}. Start it with --store file\n`
    for (const argv of [['log'], ['wait', 'push'], ['replay', 'last'], ['show', '1']])
      expect(await relay(argv, env)).toEqual({ code: 2, signal: null, out: '', err: only('its journal') })
    for (const argv of [['login'], ['whoami'], ['comment', 'octo/demo#1', 'hello'], ['revoke']])
      expect(await relay(argv, env)).toEqual({ code: 2, signal: null, out: '', err: only('its tokens') })
    await program.stop()
    expect(readdirSync(env.RELAY_HOME)).toEqual(['.running'])
    expect(readdirSync(path.join(env.RELAY_HOME, '.running'))).toEqual([])
  })
})

describe('a forgotten profile', () => {
  it('is that of the only relay that runs; of several, one must be named', async () => {
    const env = { RELAY_HOME: emptyFolder(), RELAY_USER: 'ada' }
    await using program = new Program(SANDBOX, env)
    const url = await program.url()
    const found = `Using profile sandbox, which runs at ${url}\n`
    expect(await relay(['trigger', 'issues'], env)).toMatchObject({ code: 0, err: `${found}1 sent\n` })
    const { code, out, err } = await relay(['log', '--json', '--event', 'issues'], env)
    expect({ code, err, repo: JSON.parse(out).repo }).toEqual({ code: 0, err: found, repo: 'octo/demo' })
    expect(await relay(['wait', 'issues', '--since', '1h', '--timeout', '20s'], env)).toMatchObject({
      code: 0,
      err: found,
    })

    await using other = new Program(['serve', '--port', '0', '--json'], env)
    const second = await other.url()
    const named = await relay(['log'], env)
    expect({ code: named.code, out: named.out }).toEqual({ code: 2, out: '' })
    expect(named.err).toContain('error: Several relays are running: ')
    expect(named.err).toContain(`sandbox (process ${program.pid} at ${url})`)
    expect(named.err).toContain(`default (process ${other.pid} at ${second})`)
    expect(named.err).toContain('Name one with --profile\n')
    expect(await relay(['trigger', 'issues', '--profile', 'default'], env)).toMatchObject({
      code: 0,
      err: '1 sent\n',
    })
  })
})

describe('a stopped sandbox with a name of its own', () => {
  it('is named with the command that starts it, and never mistaken for GitHub', async () => {
    const home = emptyFolder()
    const env = { RELAY_HOME: home, RELAY_USER: 'ada' }
    await using program = new Program([...SANDBOX, '--profile', 'play'], env)
    await signIn(await program.url(), 'ada')
    await program.stop()
    const start = 'relay serve --sandbox --profile play'
    const stopped = {
      code: 1,
      signal: null,
      out: '',
      err: `error: The sandbox is not running. Start it with ${start}\n`,
    }
    for (const argv of [['login'], ['whoami'], ['comment', 'octo/demo#1', 'hello']]) {
      expect(await relay(argv, env)).toEqual(stopped)
      expect(await relay([...argv, '--profile', 'play'], env)).toEqual(stopped)
    }
    expect((await relay(['trigger', 'push', '--profile', 'play'], env)).err).toContain(start)
    expect((await relay(['wait', 'push', '--profile', 'play'], env)).err).toContain(start)
    expect(await relay(['serve', '--profile', 'play', '--port', '0'], env)).toEqual({
      code: 2,
      signal: null,
      out: '',
      err: `error: Profile play belongs to a sandbox. Start it with ${start}, or choose another profile with --profile\n`,
    })
    expect(await relay(['log', '--profile', 'plya'], env)).toEqual({
      code: 2,
      signal: null,
      out: '',
      err: 'error: There is no profile plya (did you mean play?). There are: play. relay serve --profile plya creates it\n',
    })
    expect(readdirSync(home).toSorted()).toEqual(['.running', 'play'])

    const asked = await relay(['reset', '--profile', 'play'], env)
    expect({ code: asked.code, kept: existsSync(path.join(home, 'play')) }).toEqual({ code: 2, kept: true })
    expect(asked.err).toContain('tokens      of ada\n')
    expect(asked.err).toContain('error: Nothing was removed. To remove it without being asked, give --yes\n')
    expect(await relay(['reset', '--profile', 'play', '--yes'], env)).toMatchObject({ code: 0, out: '' })
    expect(readdirSync(home)).toEqual(['.running'])
  })
})
