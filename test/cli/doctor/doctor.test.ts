import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:net'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { Disposal } from '../../../src/base/disposal.js'
import { silentLog } from '../../../src/base/log.js'
import { main } from '../../../src/cli/main.js'
import { diagnose } from '../../../src/cli/doctor/diagnose.js'
import type { Finding } from '../../../src/cli/doctor/finding.js'
import { completeSettings } from '../../../src/cli/settings.js'
import { readOptions, type Flags } from '../../../src/cli/settings/read.js'
import { INSTANCE_KEY } from '../../../src/instance/row.js'
import { serve } from '../../../src/serve.js'
import type { Store } from '../../../src/store/contract.js'
import { openDatabase } from '../../../src/store/open.js'
import { createTokens, type SignIn } from '../../../src/tokens/tokens.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { scriptedServer, type Answer } from '../../helpers/scripted-server.js'

const SECRETS = {
  RELAY_CLIENT_SECRET: 'canary-client-secret',
  RELAY_WEBHOOK_SECRET: 'canary-webhook-secret-0123',
}
const TOKEN = 'canary-token'
const HOUR = 3_600_000

let closing = new Disposal()
afterEach(async () => {
  await closing[Symbol.asyncDispose]()
  closing = new Disposal()
})

/** A code host that says this time, or what `answer` says. */
async function codeHost(answer: () => Answer = () => ({ headers: { date: new Date().toUTCString() } })) {
  return closing.use(await scriptedServer(answer))
}

/** A profile in which nothing is wrong, but for what `env` changes and `data` does to its store. */
async function profile(
  env: Record<string, string> = {},
  data: (store: Store) => Promise<void> = async () => {},
) {
  const home = emptyFolder()
  const host = await codeHost()
  const { context, out, err } = testContext({
    env: {
      RELAY_HOME: home,
      RELAY_USER: 'ada',
      RELAY_PROVIDER: 'gitea',
      RELAY_PROVIDER_URL: host.url,
      RELAY_CLIENT_ID: 'client-id',
      RELAY_PORT: '0',
      ...SECRETS,
      ...env,
    },
  })
  const folder = path.join(home, 'default')
  await using database = await openDatabase({ kind: 'file', folder })
  await signIn(database.store, { origin: host.url })
  await data(database.store)
  return { context, folder, host, out, err }
}

async function signIn(store: Store, over: Partial<SignIn>): Promise<void> {
  const expiresAt = Date.now() + 10 * HOUR + 60_000
  await createTokens(store).save('ada', {
    accessToken: TOKEN,
    expiresAt,
    origin: 'http://127.0.0.1:1',
    ...over,
  })
}

async function findings(context: Parameters<typeof main>[1], flags: Flags = {}): Promise<Finding[]> {
  return diagnose(context, flags, { log: silentLog, nodeVersion: '20.18.0' })
}

/** The finding of one check, in words: its state, what it says, and what mends it. */
async function finding(
  check: string,
  given: Promise<{ context: Parameters<typeof main>[1] }>,
  flags?: Flags,
) {
  const { context } = await given
  const found = (await findings(context, flags)).find((one) => one.check === check)
  return found && [found.state, found.text, ...(found.mend === undefined ? [] : [found.mend])]
}

async function used(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.defer(async () => void server.close())
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

describe('a diagnosis', () => {
  it('of a profile that is served and signed in finds nothing wrong', async () => {
    const { context, folder, host, out, err } = await profile()
    const { options } = readOptions(context, {}, silentLog)
    const serving = closing.use(await serve(completeSettings(options)))
    const port = new URL(serving.url).port
    expect(await findings(context)).toEqual([
      { check: 'node', state: 'ok', text: 'Node 20.18.0' },
      { check: 'settings', state: 'ok', text: '8 set, the others at their defaults' },
      { check: 'folder', state: 'ok', text: `${folder} is for you alone` },
      { check: 'store', state: 'ok', text: 'opens, writes and reads' },
      { check: 'keychain', state: 'none', text: 'not used: --store keychain would' },
      { check: 'instance', state: 'ok', text: `process ${process.pid} at ${serving.url} has proved itself` },
      { check: 'port', state: 'ok', text: `${port} is the instance's` },
      { check: 'code host', state: 'ok', text: `${host.url} answers` },
      { check: 'clock', state: 'ok', text: "within 1 s of the code host's" },
      { check: 'webhook secret', state: 'ok', text: 'set' },
      { check: 'OAuth client', state: 'ok', text: 'RELAY_CLIENT_ID and RELAY_CLIENT_SECRET are set' },
      { check: 'token', state: 'ok', text: "ada's, for 10 h" },
      {
        check: 'addresses',
        state: 'ok',
        text: `sign-in returns to ${serving.url}/auth/gitea/callback, then to ${serving.url}`,
      },
    ])
    expect(await main(['doctor'], context)).toBe(0)
    expect(err()).toBe('')
    expect(out().split('\n').slice(0, 2)).toEqual([
      `ok  node            Node ${process.versions.node}`,
      'ok  settings        8 set, the others at their defaults',
    ])
  })

  it('of an empty machine says what to do, and makes nothing', async () => {
    const host = await codeHost()
    const home = path.join(emptyFolder(), 'home')
    const env = { RELAY_HOME: home, RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: host.url, RELAY_USER: 'ada' }
    const { context } = testContext({ env: { ...env, RELAY_PORT: String(await used()) } })
    const port = Number(context.env['RELAY_PORT'])
    expect((await findings(context)).map(({ check, state, mend }) => [check, state, mend])).toEqual([
      ['node', 'ok', undefined],
      ['settings', 'ok', undefined],
      ['folder', 'none', undefined],
      ['store', 'none', undefined],
      ['keychain', 'none', undefined],
      ['instance', 'none', undefined],
      ['port', 'wrong', `relay serve --port ${port + 1}`],
      ['code host', 'ok', undefined],
      ['clock', 'ok', undefined],
      ['webhook secret', 'none', undefined],
      [
        'OAuth client',
        'wrong',
        `register an OAuth application at the code host that returns to http://127.0.0.1:${port}/auth/gitea/callback, and set them`,
      ],
      ['token', 'wrong', 'relay login --user ada'],
      ['addresses', 'ok', undefined],
    ])
    expect(() => chmodSync(home, 0o700)).toThrow('ENOENT')
  })

  it('sends the code host nothing but a question, and shows no secret', async () => {
    const { context, host, out, err } = await profile()
    expect(await main(['doctor', '--json'], context)).toBe(0)
    expect(host.received.map(({ method, path }) => ({ method, path }))).toEqual([
      { method: 'HEAD', path: '/' },
    ])
    const everything = JSON.stringify([host.received, out(), err()])
    expect([TOKEN, ...Object.values(SECRETS)].filter((secret) => everything.includes(secret))).toEqual([])
  })

  it('that finds something wrong ends with 1, for a program too', async () => {
    const { context, out, err } = await profile({ RELAY_CLIENT_ID: '' })
    expect(await main(['doctor', '--json'], context)).toBe(1)
    expect(err()).toBe('{"v":1,"type":"error","code":"unhealthy","error":"1 of 13 checks failed"}\n')
    const { v, ok, checks } = JSON.parse(out())
    expect({
      v,
      ok,
      bad: checks.filter(({ state }: Finding) => state === 'wrong').map((one: Finding) => one.check),
    }).toEqual({
      v: 1,
      ok: false,
      bad: ['OAuth client'],
    })
  })

  it('says what mends it below', async () => {
    const { context, out, err } = await profile({}, async (store) => {
      await createTokens(store).revoke('ada')
    })
    expect(await main(['doctor', '-q'], context)).toBe(1)
    expect(out()).toContain(
      '\nx   token           ada is not signed in\n                    mend: relay login --user ada\n',
    )
    expect(err()).toBe('error: 1 of 13 checks failed\n')
  })
})

describe('the check of', () => {
  it('node', async () => {
    const { context } = testContext({ env: { RELAY_HOME: emptyFolder(), RELAY_PROVIDER: 'sandbox' } })
    const [node] = await diagnose(context, {}, { log: silentLog, nodeVersion: '20.17.9' })
    expect(node).toEqual({
      check: 'node',
      state: 'wrong',
      text: 'Node 20.17.9 is older than 20.18',
      mend: 'install Node 20.18 or later: https://nodejs.org',
    })
  })

  it('settings: what cannot be read, and what is not read', async () => {
    const { context } = testContext({ env: { RELAY_PORT: 'x' } })
    expect((await findings(context)).map(({ check, state, text }) => [check, state, text])).toEqual([
      ['node', 'ok', 'Node 20.18.0'],
      ['settings', 'wrong', 'RELAY_PORT: must be a whole number from 0 to 65535'],
    ])
    expect(await finding('settings', profile({ RELAY_PROVDER: 'x', RELAY_FOREIGN_THING: 'y' }))).toEqual([
      'wrong',
      'RELAY_PROVDER is not read',
      'set RELAY_PROVIDER instead',
    ])
  })

  it('folder: open to others', async () => {
    const given = await profile()
    chmodSync(given.folder, 0o755)
    expect(await finding('folder', Promise.resolve(given))).toEqual([
      'wrong',
      `${given.folder} is open to other users`,
      `chmod 700 ${given.folder}`,
    ])
    const secret = path.join(given.folder, 'webhook-secret')
    writeFileSync(secret, 'x', { mode: 0o644 })
    chmodSync(given.folder, 0o700)
    expect(await finding('folder', Promise.resolve(given))).toEqual([
      'wrong',
      `${secret} is open to other users`,
      `chmod 600 ${secret}`,
    ])
  })

  it('store: damaged', async () => {
    const home = emptyFolder()
    const folder = path.join(home, 'default')
    mkdirSync(folder, { mode: 0o700 })
    writeFileSync(path.join(folder, 'relay.mdb'), 'no database'.repeat(1000))
    const { context } = testContext({ env: { RELAY_HOME: home, RELAY_PROVIDER: 'sandbox' } })
    const found = await findings(context)
    expect(found.find(({ check }) => check === 'store')).toMatchObject({
      state: 'wrong',
      mend: `ls -ld ${folder}; df -h ${folder}`,
    })
    expect(found.find(({ check }) => check === 'token')?.state).toBe('none')
  })

  it('instance: another program at its address', async () => {
    const squatter = await codeHost(() => ({ body: { status: 'ok' } }))
    const row = { v: 1, pid: process.pid, url: squatter.url, provider: 'gitea', providerUrl: squatter.url }
    const rest = { publicUrl: squatter.url, key: 'k', startedAt: new Date().toISOString() }
    const put = (store: Store) => store.put(INSTANCE_KEY, { ...row, ...rest })
    expect(await finding('instance', profile({}, put))).toEqual([
      'wrong',
      `process ${process.pid} should be at ${squatter.url}, but nothing there proves to be it`,
      'relay serve',
    ])
  })

  it('port: free, used, not ours to take', async () => {
    const port = await used()
    expect(await finding('port', profile(), { port: '0' })).toEqual(['none', 'any free one is taken'])
    expect(await finding('port', profile(), { port: String(port) })).toEqual([
      'wrong',
      `${port} is in use by another program`,
      `relay serve --port ${port + 1}`,
    ])
    expect(await finding('port', profile(), { port: '1', host: '192.0.2.1' })).toEqual([
      'wrong',
      '192.0.2.1 cannot be listened on (EADDRNOTAVAIL)',
      'relay serve --host 127.0.0.1',
    ])
  })

  it.each([
    [125, "125 s behind the code host's"],
    [-125, "125 s ahead of the code host's"],
  ])('clock: a code host %i s ahead', async (seconds, text) => {
    const host = await codeHost(() => ({
      headers: { date: new Date(Date.now() + seconds * 1000).toUTCString() },
    }))
    const [state, said] = (await finding('clock', profile({ RELAY_PROVIDER_URL: host.url }))) ?? []
    expect([state, said?.replace(/^12[456]/, '125')]).toEqual(['wrong', text])
  })

  it('code host: one that is not there, and one that never answers', async () => {
    const closed = await scriptedServer(() => 'silence')
    await closed[Symbol.asyncDispose]()
    const gone = { RELAY_PROVIDER_URL: closed.url }
    expect(await finding('code host', profile(gone))).toEqual([
      'wrong',
      `${closed.url} does not answer (ECONNREFUSED)`,
      `curl -I ${closed.url}, and HTTPS_PROXY if there is a proxy`,
    ])
    expect(await finding('clock', profile(gone))).toEqual(['none', 'the code host did not say the time'])
    const silent = await codeHost(() => 'silence')
    const began = Date.now()
    expect(await finding('code host', profile({ RELAY_PROVIDER_URL: silent.url }))).toEqual([
      'wrong',
      `${silent.url} does not answer (too slow)`,
      `curl -I ${silent.url}, and HTTPS_PROXY if there is a proxy`,
    ])
    expect(Date.now() - began).toBeLessThan(8000)
  })

  it.each([['short'], ['a'.repeat(64)]])('webhook secret: %s', async (secret) => {
    expect(await finding('webhook secret', profile({ RELAY_WEBHOOK_SECRET: secret }))).toEqual([
      'wrong',
      'too easy to guess: fewer than 20 characters, or too few different ones',
      'RELAY_WEBHOOK_SECRET=$(openssl rand -hex 32), here and at the code host',
    ])
  })

  it('token: of another code host, ended, and ended but renewable', async () => {
    const other = { origin: 'https://other.example' }
    const { context, host } = await profile({}, (store) => signIn(store, other))
    expect(await finding('token', Promise.resolve({ context }))).toEqual([
      'wrong',
      `ada's is from https://other.example, not ${host.url}`,
      'relay login --user ada',
    ])
    const ended = { expiresAt: Date.now() - 1 }
    expect(
      await finding(
        'token',
        profile({}, (store) => signIn(store, ended)),
      ),
    ).toEqual(['wrong', 'ada is not signed in', 'relay login --user ada'])
    const renewable = { ...ended, refreshToken: 'canary-refresh' }
    expect(
      await finding(
        'token',
        profile({}, (store) => signIn(store, renewable)),
      ),
    ).toEqual(['ok', "ada's has ended, and is renewed when next used"])
  })

  it.each<[string, Flags, string[]]>([
    [
      'a public address that is not encrypted',
      { publicUrl: 'http://relay.example' },
      [
        'http://relay.example is not encrypted: codes and tokens could be read on the way',
        'set RELAY_PUBLIC_URL=https://relay.example',
      ],
    ],
    [
      'two names for this machine',
      { baseUrl: 'http://localhost:3000', port: '8787' },
      [
        'relay is 127.0.0.1 and the application localhost: a sign-in begun at one does not end at the other',
        'set RELAY_PUBLIC_URL=http://localhost:8787',
      ],
    ],
    [
      'a port that nothing listens on',
      { publicUrl: 'http://127.0.0.1:9000', port: '8787' },
      [
        'the public address says port 9000, relay listens on 8787',
        'set RELAY_PUBLIC_URL=http://127.0.0.1:8787',
      ],
    ],
  ])('addresses: %s', async (_, flags, said) => {
    expect(await finding('addresses', profile(), flags)).toEqual(['wrong', ...said])
  })
})
