import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder, type Env } from '../kit/folder.js'
import { fails, prints, type Ran, run } from '../kit/run.js'
import { bare } from './example.js'
import { json } from './fixture.js'

/** Runs the command in a folder with this relay.json. */
async function config(
  args: string[],
  { env = {}, project = {} }: { env?: Env; project?: object } = {},
): Promise<Ran> {
  const cwd = emptyFolder()
  writeFileSync(path.join(cwd, 'relay.json'), JSON.stringify(project))
  const { out, ...ran } = await run(['config', ...args], { cwd, env })
  return { ...ran, out: out.replaceAll(cwd, '<cwd>') }
}

const CANARY = 'canary-secret-9f8e7d'

describe('relay config', () => {
  it('shows every setting, its value and its origin, and no part of a secret', async () => {
    const home = emptyFolder()
    const own = { RELAY_HOME: home, RELAY_ALLOWED_HOSTS: 'a, b', RELAY_TOKEN_TTL: '48h' }
    const env = { ...own, RELAY_CLIENT_SECRET: CANARY }
    const { code, out, err } = await config([], { env, project: { port: 9000 } })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['name', 'value', 'origin'],
      ['profile', 'default', 'default'],
      ['home', home, 'RELAY_HOME'],
      ['user', userInfo().username, 'default'],
      ['provider', 'github', 'default'],
      ['providerUrl', 'https://github.com', 'default'],
      ['clientId', '-', 'default'],
      ['clientSecret', 'set', 'RELAY_CLIENT_SECRET'],
      ['webhookSecret', 'made at first start', 'default'],
      ['webhookSecretPrevious', '-', 'default'],
      ['sources', '-', 'default'],
      ['port', '9000', 'port in <cwd>/relay.json'],
      ['host', '127.0.0.1', 'default'],
      ['allowHost', 'a,b', 'RELAY_ALLOWED_HOSTS'],
      ['inspectHost', '-', 'default'],
      ['metrics', 'off', 'default'],
      ['logFormat', 'text', 'default'],
      ['publicUrl', 'the listen address', 'default'],
      ['baseUrl', 'the public address', 'default'],
      ['store', 'file', 'default'],
      ['storePassword', 'the one in ~/.pgpass', 'default'],
      ['tokenKey', '-', 'default'],
      ['tokenKeyPrevious', '-', 'default'],
      ['maxBody', '1048576', 'default'],
      ['tokenTtl', '2d', 'RELAY_TOKEN_TTL'],
      ['forward', '-', 'default'],
      ['exec', '-', 'default'],
      ['routes', 'none', 'default'],
      ['ignore', '-', 'default'],
      ['timeout', '30s, 10m for a command', 'default'],
      ['reply', '-', 'default'],
      ['concurrency', '1', 'default'],
      ['onDuplicate', 'if-failed', 'default'],
      ['keep', '7d', 'default'],
      ['keepMax', '1GiB', 'default'],
      ['tunnel', '-', 'default'],
      ['hubToken', '-', 'default'],
      ['sandboxPort', '8788', 'default'],
      [''],
    ])
  })

  it('shows no password of a target', async () => {
    const env = { RELAY_FORWARD: `http://user:${CANARY}@localhost:1/x?token=${CANARY}` }
    for (const argv of [[], ['--json']]) {
      const { out } = await config(argv, { env })
      expect(out).toContain('http://***@localhost:1/x?…')
      expect(out).not.toContain(CANARY)
    }
    expect((await config(['--reveal', 'forward'], { env })).out).toBe(`${env.RELAY_FORWARD}\n`)
  })

  it.each(['webhookSecret', 'RELAY_WEBHOOK_SECRET', 'webhook-secret', '--webhook-secret'])(
    'reveals one secret: %s',
    async (name) => {
      const env = { RELAY_WEBHOOK_SECRET: `${CANARY} \t`, RELAY_CLIENT_SECRET: 'other' }
      expect(await config([`--reveal=${name}`], { env })).toEqual(prints(`${CANARY} \t\n`))
    },
  )

  it('reveals the webhook secret that serve made, and says that the profile has it', async () => {
    await using here = await bare()
    const relay = await here.serve()
    await relay.stop()
    const revealed = await here.run('config', '--reveal', 'webhookSecret')
    const made = revealed.out.trim()
    expect(revealed).toEqual({ code: 0, out: expect.stringMatching(/^[0-9a-f]{64}\n$/), err: '' })
    const { out } = await here.run('config', '--json')
    expect(JSON.parse(out)).toMatchObject({
      settings: { webhookSecret: { set: true, origin: 'profile' } },
    })
    expect(out).not.toContain(made)
    const again = await here.serve()
    expect(await again.deliver({ secret: made })).toMatchObject({ status: 200 })
  })

  it('reveals to a terminal nothing that could rewrite it, and to a pipe the value', async () => {
    const env = { RELAY_WEBHOOK_SECRET: 'a\u001b[2J\u009b\u202e' }
    const reveal = ['config', '--reveal', 'webhookSecret']
    expect(await run(reveal, { env })).toEqual(prints(`${env.RELAY_WEBHOOK_SECRET}\n`))
    const shown = await run(reveal, { env, terminal: { streams: ['stdout'] } })
    expect(shown).toEqual(prints('a\\u{1b}[2J\\u{9b}\\u{202e}\n'))
  })

  it('also reveals values that are not secret, and prints JSON', async () => {
    const env = { RELAY_ALLOWED_HOSTS: 'a,b' }
    expect(await config(['--reveal', 'RELAY_ALLOWED_HOSTS'], { env })).toEqual(prints('a,b\n'))
    expect((await config(['--reveal', 'port', '--json'])).out).toBe('{"v":1,"name":"port","value":8787}\n')
  })

  it('says what is not set', async () => {
    const none = 'webhookSecret is not set (default: made at first start)'
    expect(await config(['--reveal', 'webhookSecret'])).toEqual(fails(2, none))
  })

  it('shows what the running instance has, and where this shell differs', async () => {
    await using here = await bare()
    const own = { env: { RELAY_WEBHOOK_SECRET: 'secret' } }
    const serving = await here.serveWith(own, '--profile', 'default', '--sandbox', '--sandbox-port', '0')
    const { sandbox } = await serving.listening()
    const { pid } = serving
    const { settings } = await json(here.run('config', '--json'))
    expect(settings).toMatchObject({
      profile: { value: 'default', origin: `process ${pid}` },
      provider: { value: 'sandbox', origin: `process ${pid}` },
      providerUrl: { value: sandbox, origin: `process ${pid}` },
      port: { value: Number(new URL(serving.address).port), origin: `process ${pid}` },
      keep: { value: '7d', origin: 'default' },
      webhookSecret: { set: false, origin: 'default', note: `process ${pid} has another` },
    })
    const env = { RELAY_PORT: '9000', RELAY_WEBHOOK_SECRET: CANARY }
    expect((await here.runWith({ env }, 'config')).out).toMatch(
      new RegExp(`^port +\\d+ +process ${pid}; RELAY_PORT here is 9000$`, 'm'),
    )
    expect(await here.runWith({ env }, 'config', '--reveal', 'webhookSecret')).toEqual({
      code: 0,
      out: `${CANARY}\n`,
      err: `warning: webhookSecret: process ${pid} has another\n`,
    })
    const another = `webhookSecret is not set (process ${pid} has another)`
    expect(await here.run('config', '--reveal', 'webhookSecret')).toEqual(fails(2, another))
  })

  it('reveals the secret that an instance made which stores nothing', async () => {
    await using here = await bare({ env: { RELAY_STORE: 'memory' } })
    const relay = await here.serve()
    const { code, out, err } = await here.run('config', '--reveal', 'webhookSecret')
    expect({ code, out, err }).toEqual({ code: 0, out: expect.stringMatching(/^[0-9a-f]{64}\n$/), err: '' })
    expect(await relay.deliver({ secret: out.trim() })).toMatchObject({ status: 200 })
  })

  it('shows what the profile remembers of its last use', async () => {
    await using here = await bare({ env: { RELAY_PORT: '0' } })
    const env = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'https://git.example' }
    const serving = await here.serveWith({ env })
    await serving.stop()
    const { settings } = await json(here.run('config', '--json'))
    expect(settings).toMatchObject({
      provider: { value: 'gitea', origin: 'the last relay serve' },
      providerUrl: { value: 'https://git.example', origin: 'the last relay serve' },
      port: { value: 0, origin: 'RELAY_PORT' },
    })
  })
})
