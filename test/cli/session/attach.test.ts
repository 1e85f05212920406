import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { saveProfile } from '../../../src/instance/saved-profile.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { startTarget } from '../../helpers/target.js'
import { fill, opened } from '../journal-rig.js'
import { keepToken, serveFor, shell, startAlone, startServed, USER } from '../rig.js'

const SANDBOX = {
  store: 'file',
  provider: 'sandbox',
  providerUrl: 'http://127.0.0.1:8788',
  sandbox: true,
} as const

describe('no command that reads', () => {
  it.each([
    'whoami',
    'token',
    'revoke',
    'comment octo/demo#1 hello',
    'merge octo/demo#1',
    'react octo/demo#1 rocket',
    'login --no-browser',
    'log',
    'wait push',
    'show last',
    'trigger push',
    'replay last',
    'profiles',
    'reset',
    'config',
    'doctor --port 0 --provider sandbox',
  ])('makes a profile: %s', async (line) => {
    const here = shell()
    await here.run(line.split(' '))
    const named = [...line.split(' '), '--profile', 'typo']
    const { err } = await here.run(named)
    const names = err.includes('error: There is no profile typo. There are none yet. ')
    expect(names).toBe(!['profiles', 'config'].includes(line))
    expect(readdirSync(here.home)).toEqual([])
  })
})

describe('a profile', () => {
  it('remembers its code host when nothing runs', async () => {
    await using alone = await startAlone()
    const { env, home } = alone.shell
    const serving = await serveFor(testContext({ env: { ...env, RELAY_PORT: '0' } }).context)
    await serving[Symbol.asyncDispose]()
    const client = { RELAY_CLIENT_ID: 'relay-test', RELAY_CLIENT_SECRET: 'client-secret-canary' }
    expect(await shell(client, home).run(['whoami', '--json'])).toMatchObject({
      code: 0,
      out: expect.stringContaining(`"providerUrl":"${alone.sandbox.url}"`),
    })
    expect(await shell(client, home).run(['revoke'])).toMatchObject({
      code: 0,
      err: `the token of ada is deleted here, and revoked at ${alone.sandbox.url}\n`,
    })
  })

  it('does not remember a code host that only the working folder names', async () => {
    await using alone = await startAlone()
    const { RELAY_HOME = '' } = alone.shell.env
    const cwd = emptyFolder()
    const file = { provider: 'gitea', providerUrl: alone.sandbox.url }
    writeFileSync(path.join(cwd, 'relay.json'), JSON.stringify(file))
    const serving = await serveFor(testContext({ env: { RELAY_HOME, RELAY_PORT: '0' }, cwd }).context)
    await serving[Symbol.asyncDispose]()
    const { out } = await shell({}, alone.shell.home).run(['profiles', '--json'])
    expect(JSON.parse(out)).toMatchObject({ provider: null, providerUrl: null })
  })

  it('of a sandbox is offered where nothing runs and nothing else is set up', async () => {
    const here = shell()
    saveProfile(path.join(here.home, 'play'), SANDBOX)
    const stopped = {
      code: 1,
      out: '',
      err: 'error: The sandbox is not running. Start it with relay serve --sandbox --profile play\n',
    }
    for (const line of ['login', 'trigger push', 'log', 'wait push', 'whoami', 'doctor'])
      expect(await here.run(line.split(' '))).toEqual(stopped)
    const github = { RELAY_CLIENT_ID: 'id', RELAY_CLIENT_SECRET: 'secret' }
    const { err } = await shell(github, here.home).run(['whoami'])
    expect(err).toBe(`error: ${USER} is not signed in, or the sign-in has ended. Run relay login\n`)
  })
})

describe('relay revoke with a running instance', () => {
  it('has the instance revoke, which has the client secret', async () => {
    await using alone = await startAlone()
    const { context } = testContext({ env: { ...alone.shell.env, RELAY_PORT: '0' } })
    await using serving = await serveFor(context)
    await keepToken(alone.shell, { accessToken: alone.grant.access_token, origin: alone.sandbox.url })
    expect(await shell({}, alone.shell.home).run(['revoke', '--json'])).toEqual({
      code: 0,
      out: '{"v":1,"user":"ada","removed":true,"upstream":"revoked"}\n',
      err: '',
    })
    expect(serving.lost.aborted).toBe(false)
    expect(await shell({}, alone.shell.home).run(['revoke'])).toEqual({
      code: 0,
      out: '',
      err: 'ada was not signed in, so there was nothing to revoke\n',
    })
  })
})

describe('relay replay to the instance', () => {
  it('says that this shell has another webhook secret when that is why it is refused, exit 3', async () => {
    await using served = await startServed()
    const env = { RELAY_WEBHOOK_SECRET: 'another' }
    const { code, err } = await served.shell.run(['trigger', 'push'], { env })
    expect(code).toBe(3)
    expect(err).toBe(
      `error: 1 of 1 answers were not as expected. This shell signs with the webhook secret of RELAY_WEBHOOK_SECRET, and process ${process.pid} has another. Set RELAY_WEBHOOK_SECRET to the secret that relay serve was started with\n`,
    )
  })

  it('waits with --forwarded until it failed or succeeded, exit 3 or 0', async () => {
    let status = 400
    await using target = await startTarget(() => status)
    const here = shell({ RELAY_WEBHOOK_SECRET: 'secret-of-this-test', RELAY_PROVIDER: 'github' })
    const over = { RELAY_PORT: '0', RELAY_FORWARD: target.url }
    await using serving = await serveFor(testContext({ env: { ...here.env, ...over } }).context)
    expect(serving.url).toContain('http')
    await here.run(['trigger', 'push'])
    expect(await here.run(['wait', 'push', '--forwarded'])).toMatchObject({ code: 3 })
    expect(await here.run(['replay', '--failed', '--forwarded'])).toMatchObject({
      code: 3,
      err: '1 sent\nerror: 1 of 1 failed at a target: #1\n',
    })
    expect(await here.run(['replay', 'last', '--forwarded'])).toMatchObject({
      code: 3,
      err: '1 sent\nerror: 1 of 1 failed at a target: #2\n',
    })
    status = 200
    expect(await here.run(['replay', '--failed', '--forwarded'])).toMatchObject({
      code: 0,
      err: '2 sent\n2 forwarded\n',
    })
  })

  it('finds no last entry in an empty journal, exit 6', async () => {
    const here = shell()
    await fill(here, async () => {})
    const empty = { code: 6, out: '', err: 'error: The journal is empty\n' }
    expect(await here.run(['replay', 'last'])).toEqual(empty)
    expect(await shell().run(['replay', 'last'])).toMatchObject({ code: 6 })
    await fill(here, async (journal) => void (await journal.append(opened('a'))))
    expect(await here.run(['replay', 'last'])).toMatchObject({
      code: 1,
      err: 'error: No relay is running for profile default. Start it with relay serve, or name an address with --to\n',
    })
  })
})
