import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { repository } from '../kit/code-host.js'
import type { Env } from '../kit/folder.js'
import { fill } from '../kit/journal.js'
import { startSession } from '../kit/keyring.js'
import { describeWith } from '../kit/needs.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'
import { fails } from '../kit/run.js'
import { smee } from '../kit/smee.js'
import { bare } from './example.js'
import { fresh, json } from './fixture.js'

/** What doctor finds, by the names of its checks. */
async function diagnosis(here: Place, env: Env = {}): Promise<Map<string, Record<string, string>>> {
  const { checks }: { checks: Record<string, string>[] } = await json(
    here.runWith({ env }, 'doctor', '--json'),
  )
  return new Map(checks.map(({ check = '', ...found }) => [check, found]))
}

const check = async (name: string, here: Place, env: Env = {}) => (await diagnosis(here, env)).get(name)

const ok = (text: string) => ({ state: 'ok', text })
const skip = (text: string) => ({ state: 'skip', text })
const fail = (text: string, fix: string) => ({ state: 'fail', text, fix })

const NAMES = ['machine', 'settings', 'relay', 'database', 'code host', 'sign-in', 'hook', 'tunnel']

describe('relay doctor', () => {
  it('has eight checks, and finds nothing wrong where nothing is', async () => {
    await using here = await place({ signedIn: true, webhook: true })
    const relay = await here.serve()
    await relay.deliver()
    const found = await diagnosis(here)
    expect([...found.keys()]).toEqual(NAMES)
    expect([...found.values()].filter(({ state }) => state === 'fail')).toEqual([])
    expect(found.get('relay')?.text).toContain(`at ${relay.address} has proved itself`)
    expect(found.get('settings')?.text).toMatch(/^\d+ set, the others have their defaults$/)
    expect(found.get('database')?.text).toMatch(/^can write and read; schema version \d+; not damaged$/)
  })

  it('says what cannot be read of the settings', async () => {
    await using here = await bare({ env: { RELAY_PORT: 'x' } })
    const out =
      'x   settings  RELAY_PORT: must be a whole number from 0 to 65535\n              fix: relay config --help\n'
    expect(await here.run('doctor')).toEqual({ ...fails(1, '1 of 1 checks failed'), out })
  })

  const WEAK = 'the webhook secret is too easy to guess: fewer than 20 characters, or too few different ones'
  const MAKE_ONE = 'set RELAY_WEBHOOK_SECRET=$(openssl rand -hex 32) here and at the code host'

  it.each<[Record<string, string>, string, string]>([
    [{ RELAY_PROVDER: 'x', RELAY_FOREIGN: 'y' }, 'RELAY_PROVDER is not read', 'set RELAY_PROVIDER instead'],
    [{ RELAY_SECRET: 'x' }, 'RELAY_SECRET is not read', 'set RELAY_WEBHOOK_SECRET instead'],
    [{ RELAY_WEBHOOK_SECRET: 'short' }, WEAK, MAKE_ONE],
    [{ RELAY_WEBHOOK_SECRET: 'a'.repeat(64) }, WEAK, MAKE_ONE],
  ])('settings: %j', async (env, text, fix) => {
    await using here = await bare()
    expect(await check('settings', here, env)).toEqual(fail(text, fix))
  })

  it('compares this shell with the running relay, and shows no secret', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve()
    const serves = `but process ${relay.pid} serves profile default with --store file`
    expect(await check('settings', here, { RELAY_STORE: 'keychain' })).toEqual(
      fail(
        `RELAY_STORE is keychain, ${serves}`,
        'unset the variable, or name another profile with --profile',
      ),
    )
    const other = await check('settings', here, { RELAY_WEBHOOK_SECRET: 'another-canary-secret-9' })
    const differs = `RELAY_WEBHOOK_SECRET has another webhook secret than process ${relay.pid}`
    expect(other).toMatchObject({ text: differs })
    expect(relay.err).not.toContain('canary')
  })

  it('says nothing of a client and of addresses that it does not know', async () => {
    const noClient = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
    await using here = await place({ env: { RELAY_PORT: '0', ...noClient } })
    const known = `${here.sandbox.url} is the sandbox; clocks agree within 1 s`
    expect(await check('code host', here)).toEqual(ok(known))
  })

  const UNENCRYPTED = 'http://relay.example is not encrypted: others on the network can read codes and tokens'
  const HALF = 'only half of an OAuth client is set: no user can sign in'

  it.each<[string, Record<string, string>, object]>([
    ['code host', { RELAY_CLIENT_ID: 'x' }, fail(HALF, 'relay setup --profile work')],
    [
      'code host',
      { RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: '', RELAY_PUBLIC_URL: 'http://relay.example' },
      fail(UNENCRYPTED, 'set RELAY_PUBLIC_URL=https://relay.example'),
    ],
    ['sign-in', {}, fail('ada is not signed in', 'relay setup --profile work')],
    ['hook', { RELAY_PROVIDER_URL: 'http://git.example' }, skip('there is no journal yet')],
  ])('%s, with %j', async (name, env, found) => {
    await using here = await bare()
    await using gitea = await receiver({ body: { version: '1.25.0' } })
    here.configure({ profiles: { work: {} } })
    const common = { RELAY_PROFILE: 'work', RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: gitea.url }
    expect(await check(name, here, { ...common, ...env })).toEqual(found)
  })

  it.each(['sandbox', 'gitea', 'gitlab'] as const)(
    'finds nothing wrong after relay login --with-token at a %s, which needs no client',
    async (host) => {
      const env = {
        RELAY_CLIENT_ID: undefined,
        RELAY_CLIENT_SECRET: undefined,
        RELAY_WEBHOOK_SECRET: undefined,
      }
      await using here = await place({ host, signedIn: true, env })
      const problems = async () => [...(await diagnosis(here))].filter(([, { state }]) => state === 'fail')
      expect(await problems()).toEqual([])
      expect((await here.run('doctor')).code).toBe(0)
      await here.serve()
      expect(await problems()).toEqual([])
      await here.run('revoke', '--local')
      expect(await problems()).not.toEqual([])
    },
  )

  it('names a relay without a client where this shell has half of one', async () => {
    await using gitea = await receiver({ body: { version: '1.25.0' } })
    await using here = await bare({ env: { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: gitea.url } })
    const { pid } = await here.serve()
    expect(await check('code host', here, { RELAY_CLIENT_SECRET: 'x' })).toEqual(
      fail(`process ${pid} has no OAuth client: sign-in is off`, 'relay setup, then restart relay serve'),
    )
  })

  it('finds a folder that others can read, before anything corrects that', async () => {
    await using here = await bare()
    await fill(here, [{ id: 'a' }])
    const folder = path.join(here.home, 'default')
    chmodSync(folder, 0o755)
    const open = fail(`other users can read or write ${folder}`, `chmod 700 ${folder}`)
    expect(await check('machine', here)).toEqual(open)
  })

  it('finds a damaged database', async () => {
    await using here = await bare()
    await fill(here, [{ id: 'a' }])
    const folder = path.join(here.home, 'default')
    writeFileSync(path.join(folder, 'relay.db'), 'no database'.repeat(1000))
    const found = await diagnosis(here)
    expect(found.get('database')).toMatchObject({ state: 'fail', fix: `ls -ld ${folder}; df -h ${folder}` })
    expect(found.get('sign-in')?.state).toBe('skip')
    expect(found.get('hook')).toEqual(skip('the database cannot be opened'))
  })

  it('says whether relay could listen, and who does', async () => {
    await using here = await bare()
    const free = await closedPort()
    const started = 'not running; start it with relay serve'
    const found = (env: Env) => check('relay', here, env)
    expect(await found({ RELAY_PROFILE: 'default' })).toEqual(skip(expect.stringContaining(started)))
    expect(await found({ RELAY_PORT: `${free}` })).toEqual(skip(`${started}. Port ${free} is free`))
    await using squatter = await receiver()
    const { port } = new URL(squatter.url)
    const busy = `not running, and port ${port} is in use by another program`
    expect(await found({ RELAY_PORT: port })).toEqual(
      fail(busy, expect.stringMatching(/^relay serve --port \d+$/)),
    )
    const foreign = 'not running, and relay cannot listen on 192.0.2.1 (EADDRNOTAVAIL)'
    expect(await found({ RELAY_PORT: '1', RELAY_HOST: '192.0.2.1' })).toEqual(
      fail(foreign, 'relay serve --host 127.0.0.1'),
    )
    await here.serve()
    const relay = await here.serve('--profile', 'other')
    const own = new URL(relay.address).port
    await fill(here, [{ id: 'a' }], 'third')
    const itself = `in use by relay itself: process ${relay.pid} serves profile other there`
    expect(await found({ RELAY_PORT: own, RELAY_PROFILE: 'third' })).toMatchObject({
      text: `not running, and port ${own} is ${itself}`,
    })
  })

  it('says how the tunnel is: that it works, that messages are lost, that it is down', async () => {
    await using server = await smee()
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--tunnel', server.channel)
    await relay.object({ type: 'tunnel', roundTrip: 'ok' })
    await expect
      .poll(() => check('tunnel', here))
      .toEqual(ok(expect.stringMatching(/^connected to http:\S+ since [-\d]+ [:\d]+, and works$/)))
    await server[Symbol.asyncDispose]()
    await relay.object({ type: 'tunnel', state: 'waiting' })
    await expect
      .poll(() => check('tunnel', here))
      .toEqual(
        fail(
          expect.stringMatching(/^down since [-\d]+ [:\d]+: .*; next is attempt \d+; payload URL http:/),
          'check the network, and HTTPS_PROXY if there is a proxy; relay retries by itself',
        ),
      )
  })
})

describeWith('keyring', 'relay doctor, with a keychain', () => {
  it('says that it is unlocked', async () => {
    await using here = await place({ host: 'none', store: 'keychain' })
    await (await here.serve()).stop()
    const unlocked = expect.stringMatching(/; not damaged; the keychain is unlocked$/)
    expect(await check('database', here)).toEqual(ok(unlocked))
  })

  it('says that there is none, and what to do', async () => {
    await using session = await startSession()
    await using here = await bare()
    await fill(here, [{ id: 'a' }])
    const { DBUS_SESSION_BUS_ADDRESS = '' } = session.env
    expect(await check('database', here, { DBUS_SESSION_BUS_ADDRESS, RELAY_STORE: 'keychain' })).toEqual(
      fail(expect.stringContaining('--store file'), 'unlock the keychain, or choose --store file'),
    )
  })
})

describe('the check of hooks', () => {
  const ADD = 'relay hook add octo/demo'
  /** Only another delivery shows whether that was enough. */
  const ADD_AND_TEST = `${ADD}, then relay hook test octo/demo`

  const here = fresh(() => place({ signedIn: true }))
  const demo = fresh(() => repository(here.sandbox))
  let serving: Serving
  let url: string
  const start = async (...flags: string[]): Promise<void> => {
    serving = await here.serve('--port', String(await closedPort()), ...flags)
    url = `${serving.address}/webhook`
  }

  beforeEach(() => start())

  const found = (env: Env = {}) => check('hook', here, env)

  async function receiveOne(): Promise<void> {
    const body = JSON.stringify({ ref: 'refs/heads/main', repository: { full_name: 'octo/demo' } })
    expect((await serving.deliver({ body })).status).toBe(200)
  }

  async function addHook(config: object, more: object = {}): Promise<void> {
    const made = { config: { url, content_type: 'json', ...config }, active: true, events: ['push'], ...more }
    const headers = { authorization: `Bearer ${await here.sandbox.token('repo')}` }
    const init = { method: 'POST', headers, body: JSON.stringify(made) }
    expect((await fetch(`${here.sandbox.url}/api/v3/repos/octo/demo/hooks`, init)).status).toBe(201)
    await here.sandbox.idle()
  }

  it('needs a sign-in, and a delivery of a repository', async () => {
    expect(await found({ RELAY_USER: 'grace' })).toEqual(skip('asking about them needs a sign-in'))
    expect(await found()).toEqual(skip('none was made, and the journal has no delivery of a repository'))
    await receiveOne()
    expect(await found()).toEqual(skip(`none of octo/demo sends to ${url}`))
  })

  const OTHER = 'signs with another secret than this profile: its last delivery was answered 401'
  it.each([
    [{ active: false }, 'is inactive', ADD],
    [{}, OTHER, ADD_AND_TEST],
  ])('finds what is wrong with one that has a secret and %j', async (more, why, fix) => {
    await receiveOne()
    await addHook({ secret: 's' }, more)
    expect(await found()).toEqual(fail(`that of octo/demo ${why}`, fix))
  })

  it('says that one has no secret only where the code host shows those of others', async () => {
    await receiveOne()
    await addHook({})
    const unsigned =
      'that of octo/demo does not sign with the secret of this profile: its last delivery was answered 401'
    expect(await found()).toEqual(fail(unsigned, ADD_AND_TEST))
    await addHook({ url: 'http://127.0.0.1:9/elsewhere', secret: 's' })
    const none = 'that of octo/demo has no secret, so that relay refuses its deliveries'
    expect(await found()).toEqual(fail(none, ADD))
  })
  it('finds them without a delivery in the journal, and what changed since', async () => {
    await here.run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    const fine = ok('that of octo/demo fits, and its last delivery was answered')
    expect(await found()).toEqual(fine)
    const [hook] = await demo.hooks()
    const id = hook?.id ?? 0
    await demo.changeHook(id, { url, secret: 'other', events: ['push', 'issues'] })
    const alone = 'that of octo/demo sends push, issues alone, and not every event'
    expect(await found()).toEqual(fail(alone, ADD))
    await here.run('hook', 'add', 'octo/demo')
    await here.run('hook', 'test', 'octo/demo')
    expect(await found()).toEqual(fine)
    await demo.removeHook(id)
    expect(await found()).toEqual(fail(`none of octo/demo sends to ${url}`, ADD))
  })

  it('finds one that leads to an address of before', async () => {
    await here.run('hook', 'add', 'octo/demo')
    const before = url
    await serving.stop()
    await start()
    const elsewhere = `that of octo/demo sends to ${before}, which is not the address of the running relay`
    expect(await found()).toEqual(fail(elsewhere, ADD))
  })

  it('says first to start the relay that gave no answer', async () => {
    await here.run('hook', 'add', 'octo/demo')
    await serving.stop()
    await demo.comment('missed')
    await here.sandbox.idle()
    const fix = 'relay serve, then relay hook test octo/demo'
    expect(await found({ RELAY_PORT: new URL(url).port })).toMatchObject({ state: 'fail', fix })
  })

  it('finds a repository of --hook where none could be made', async () => {
    await serving.stop()
    await start('--hook', 'octo/nowhere')
    await serving.object({ type: 'hook', state: 'failed' })
    const hidden =
      'those of octo/nowhere cannot be seen (The sandbox refused: Not Found (no such repository or number, or no access to it))'
    expect(await found()).toEqual(fail(hidden, 'relay hook add octo/nowhere, which says what is missing'))
  })
})
