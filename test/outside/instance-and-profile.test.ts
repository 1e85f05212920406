import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { emptyFolder, type Env } from '../kit/folder.js'
import { place, USER } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { fails } from '../kit/run.js'
import { objects } from './example.js'
import { json, notes } from './fixture.js'

const COMMENT = ['comment', 'octo/demo#1', 'hello']

/** A terminal that knows nothing of the code host. */
const NO_HOST = { RELAY_PROVIDER: undefined, RELAY_PROVIDER_URL: undefined }
/** Nor of the OAuth application there. */
const NOTHING = { ...NO_HOST, RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }

describe('a profile', () => {
  it('remembers its code host when nothing runs', async () => {
    await using here = await place()
    const relay = await here.serve()
    await here.signIn()
    await relay.stop()
    const account = await json(here.runWith({ env: NO_HOST }, 'whoami', '--json'))
    expect(account).toMatchObject({ providerUrl: here.sandbox.url })
    const revoked = `the token of ada is deleted here, and revoked at ${here.sandbox.url}\n`
    expect(await here.runWith({ env: NO_HOST }, 'revoke')).toEqual(notes(revoked))
  })

  it('is named to a program by its full path', async () => {
    await using here = await place({ signedIn: true })
    vi.stubEnv('HOME', path.dirname(here.home))
    const account = await json(here.run('whoami', '--json'))
    vi.unstubAllEnvs()
    expect(account).toMatchObject({ store: path.join(here.home, 'default') })
  })

  it('is served again at the code host that it remembers, unless relay setup stored another', async () => {
    await using host = await receiver()
    await using here = await place()
    const served = async (env: Env): Promise<unknown> => {
      const relay = await here.serveWith({ env })
      const [profile] = objects((await here.run('profiles', '--json')).out)
      await relay.stop()
      return profile
    }
    const last = { provider: 'sandbox', providerUrl: here.sandbox.url }
    expect(await served({})).toMatchObject(last)
    expect(await served(NOTHING)).toMatchObject(last)
    const gitea = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: host.url }
    const setup = { env: { ...NOTHING, ...gitea }, stdin: 'id\nsecret\n' }
    expect(await here.runWith(setup, 'setup', '--oauth-app')).toMatchObject({ code: 0 })
    expect(await served({})).toMatchObject(last)
    expect(await served(NOTHING)).toMatchObject({ provider: 'gitea', providerUrl: host.url })
  })

  it('does not remember a code host that only the working folder names', async () => {
    await using host = await receiver()
    await using here = await place({ host: 'none' })
    const cwd = emptyFolder()
    const file = { provider: 'gitea', providerUrl: host.url }
    writeFileSync(path.join(cwd, 'relay.json'), JSON.stringify(file))
    await (await here.serveWith({ cwd })).stop()
    const profile = await json(here.run('profiles', '--json'))
    expect(profile).toMatchObject({ provider: null, providerUrl: null })
  })
})

describe('the running instance', () => {
  it('decides which code host it is, whatever files say', async () => {
    await using here = await place()
    await here.serve()
    await here.signIn()
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, '.env'), 'RELAY_PROVIDER_URL=https://git.example\n')
    writeFileSync(path.join(cwd, 'relay.json'), '{"provider":"gitea"}')
    const inFolder = { cwd, env: NOTHING }
    const at = { provider: 'sandbox', providerUrl: here.sandbox.url }
    const account = await json(here.runWith(inFolder, 'whoami', '--json'))
    expect(account).toMatchObject({ user: USER, login: 'octo', ...at })
    expect(await here.runWith(inFolder, ...COMMENT)).toMatchObject({ code: 0, err: '' })
    expect(here.sandbox.comments).toHaveLength(1)
    // With its OAuth application.
    expect(await here.runWith(inFolder, 'revoke')).toMatchObject({ code: 0 })
  })

  it('is contradicted by no flag, exit 2', async () => {
    await using here = await place({ signedIn: true })
    const { pid } = await here.serve()
    const { sandbox } = here
    const serves = `but process ${pid} serves profile default for sandbox at ${sandbox.url}. Omit the flag, or name another profile with --profile`
    const ran = async (...flags: string[]) => here.runWith({ env: NO_HOST }, ...COMMENT, ...flags)
    expect([
      await ran('--provider', 'gitea', '--provider-url', sandbox.url),
      await ran('--provider', 'sandbox', '--provider-url', 'https://git.example'),
    ]).toEqual([
      fails(2, `--provider is gitea, ${serves}`),
      fails(2, `--provider-url is https://git.example, ${serves}`),
    ])
    expect(sandbox.comments).toEqual([])
    expect(await ran('--provider', 'sandbox', '--provider-url', `${sandbox.url}/`)).toMatchObject({ code: 0 })
  })
})

describe('relay replay to the instance', () => {
  it.each([
    ['a name, which stays that target at another address', 'app=*='],
    ['no name, which is another target at another address', ''],
  ])('waits with --forwarded until it failed or succeeded, exit 3 or 0: %s', async (_, route) => {
    let status = 400
    await using target = await receiver(() => status)
    await using here = await place({ host: 'none', env: { RELAY_PROVIDER: 'github' } })
    const first = await here.serve('--forward', `${route}${target.url}`)
    await here.run('trigger', 'push')
    const shown = route === '' ? new URL(target.url).host : 'app'
    const wait = () => here.run('wait', 'push', '--forwarded', '--since', '5m')
    const failed = (what: string) =>
      `error: 1 of 1 failed at a target: ${what} at ${shown}. See relay show <n>\n`
    expect(await wait()).toMatchObject({ code: 3, err: failed('#1') })
    const replayed = async (what: string) => {
      const { code, err } = await here.run('replay', what, '--forwarded')
      return [code, err]
    }
    expect(await replayed('--failed')).toEqual([3, `1 sent\n${failed('#1')}`])
    expect(await replayed('last')).toEqual([3, `1 sent\n${failed('#1')}`])
    // At the corrected path.
    status = 200
    await first.stop()
    await here.serve('--forward', `${route}${target.url}/hook`)
    const earlier =
      route === ''
        ? `warning: 1 of 1 failed earlier, at a target that is no longer configured: #1 at ${target.url}\n`
        : ''
    expect(await replayed('--failed')).toEqual([0, `1 sent\n${earlier}1 forwarded\n`])
    expect(await wait()).toMatchObject({ code: 0, err: earlier })
  })

  it('with --forwarded judges by the targets that there are when it was forwarded', async () => {
    await using target = await receiver(({ path: to }) => (to === '/wrong' ? 400 : 200))
    await using here = await place({ host: 'none', env: { RELAY_PROVIDER: 'github' } })
    const first = await here.serve('--forward', target.url)
    const waiting = here.run('wait', 'push', '--forwarded', '--timeout', '30s')
    // It has found the first one.
    await sleep(1000)
    await first.stop()
    await here.serve('--forward', `${target.url}/wrong`)
    await here.run('trigger', 'push')
    expect(await waiting).toMatchObject({ code: 3, err: expect.stringContaining('failed at a target: #1') })
  })

  it('with --forwarded ends with 3, too, where the address of the target has a password or a query', async () => {
    await using target = await receiver(() => 400)
    await using here = await place({ host: 'none', env: { RELAY_PROVIDER: 'github' } })
    const address = target.url.replace('//', '//ada:canary-password@')
    await here.serve('--forward', `app=*=${address}?token=canary-token`)
    await here.run('trigger', 'push')
    const err = 'error: 1 of 1 failed at a target: #1 at app. See relay show <n>\n'
    expect(await here.run('wait', 'push', '--forwarded')).toMatchObject({ code: 3, err })
  })
})
