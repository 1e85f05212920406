import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Closing } from '../kit/closing.js'
import { emptyFolder } from '../kit/folder.js'
import { setUpApp } from '../kit/pages.js'
import { closedPort } from '../kit/ports.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { type Ran, run, type Running, start as startCommand } from '../kit/run.js'
import { smee, type TunnelServer } from '../kit/smee.js'

// A bundle fails in its own ways, such as a file that is missing when a command first needs it.
const BUILT = { built: true }

/** A use of each command, and what it then prints. `serve` and `setup` have tests of their own. */
const USES: Readonly<Record<string, readonly [argv: readonly string[], out: RegExp]>> = {
  // What the commands that run meanwhile had the code host send may still be on its way.
  'catch-up': [['octo/demo', '--json'], /^\{"v":1,"type":"caught-up","repo":"octo\/demo","missing":\d,/],
  comment: [['octo/demo#1', 'hello'], /#issuecomment-\d+\n$/],
  completion: [['bash'], /^# bash completion for relay/],
  config: [['--json'], /^\{"v":1,"settings":/],
  doctor: [['--json'], /^\{"v":1,"ok":true,/],
  export: [['1'], /^\{\n {2}"relay": 1,/],
  help: [['settings'], /^Settings, by variable and flag:/],
  hook: [['list', 'octo/demo'], /\nhere .* 200 OK /],
  hub: [['invite', '--json'], /^\{"v":1,"token":"relay-hub-[\w-]{43}",/],
  inspect: [['--no-browser', '--json'], /^\{"v":1,"address":"[^"]+\/inspect\/"/],
  log: [['--json'], /^\{"v":1,"type":"delivery","n":1,/],
  login: [['--with-token', '--user', 'grace'], /^$/],
  mcp: [[], /^$/],
  merge: [['octo/demo#2'], /^[\da-f]{40}\n$/],
  profiles: [[], /\ndefault .* runs at /],
  react: [['octo/demo#1', '+1'], /^\+1\n$/],
  replay: [['2'], /^ok {3}#2 → cat {2}exit 0 /],
  reset: [['--profile', 'spare', '--yes'], /^$/],
  revoke: [['--user', 'bob'], /^$/],
  routes: [['test', '2'], /^yes {2}push=exec:cat /],
  show: [['1'], /^#1 {2}ping {2}octo\/demo\n/],
  skip: [['3'], /^skipped #3 → exit\n$/],
  source: [['list'], /^$/],
  token: [[], /^gho_\w+\n$/],
  trigger: [['issues'], /^ok {3}issues {2}200 /],
  verify: [[path.resolve('fixtures/github/push.json')], /^valid /],
  version: [[], /^\d+\.\d+\.\d+\n$/],
  wait: [['push', '--since', '1h', '--json'], /^\{"v":1,.*"event":"push"/],
  whoami: [[], /^account {4}octo\n/],
}

describe('the built program', () => {
  const closing = new Closing()
  let here: Place
  let tunnel: TunnelServer
  let relay: Serving

  beforeAll(async () => {
    tunnel = closing.use(await smee())
    here = closing.use(await place())
    await signIn()
    await signIn('--user', 'bob')
    await signIn('--profile', 'spare')
    const sources = ['--tunnel', tunnel.channel, '--hook', 'octo/demo']
    const routes = ['--exec', 'push=cat', '--exec', 'star=exit 75']
    relay = await here.serveWith(BUILT, ...sources, '--metrics', ...routes)
    await relay.object({ event: 'ping' })
    await relay.deliver()
    await relay.object({ type: 'attempt', n: 2, outcome: 'succeeded' })
    await relay.deliver({ event: 'star', id: 'waits' })
    await relay.object({ type: 'attempt', n: 3 })
  })
  afterAll(() => closing[Symbol.asyncDispose]())

  async function signIn(...flags: string[]): Promise<Ran> {
    const over = { ...BUILT, stdin: await here.sandbox.token('repo') }
    return here.runWith(over, 'login', '--with-token', ...flags)
  }

  it('has a use for each command that its help lists', async () => {
    const { out } = await run(['--help'], BUILT)
    const [, commands = ''] = /\nService:\n([^]*)\nEnvironment:\n/.exec(out) ?? []
    const names = [...commands.matchAll(/^ {2}([\w-]+) /gm)].map(([, name = '']) => name)
    expect(names.toSorted()).toEqual([...Object.keys(USES), 'serve', 'setup'].toSorted())
  })

  it('serves, with a tunnel, a hook, metrics and the inspector', async () => {
    expect(await relay.object({ type: 'hook' })).toMatchObject({ state: 'ready', url: tunnel.channel })
    expect(await relay.object({ event: 'ping' })).toMatchObject({ n: 1, restored: 'compact' })
    const metrics = await fetch(`${relay.address}/metrics`)
    expect(await metrics.text()).toContain('relay_deliveries_total')
    const page = await fetch(`${relay.address}/inspect/`, { headers: { accept: 'text/html' } })
    expect(page.headers.get('content-type')).toMatch(/^text\/html/)
  })

  it('serves a sandbox', async () => {
    await using program = await here.serveWith(BUILT, '--sandbox', '--sandbox-port', '0')
    expect(await program.object({ event: 'ping' })).toMatchObject({ n: 1, provider: 'sandbox' })
    expect(await program.stop()).toMatchObject({ code: 0 })
  })

  it('sets up an App', async () => {
    const env = { RELAY_CLIENT_ID: '', RELAY_CLIENT_SECRET: '', RELAY_PORT: String(await closedPort()) }
    const start = (...argv: string[]): Running => here.startWith({ ...BUILT, env }, ...argv)
    const app = await setUpApp({ start, sandbox: here.sandbox }, '--profile', 'app')
    expect(JSON.parse(app.out)).toMatchObject({ provider: 'sandbox', app: { slug: app.slug } })
  })

  it.concurrent.each(Object.entries(USES))('does what relay %s is for', async (command, [argv, out]) => {
    const ran = command === 'login' ? await signIn(...argv) : await here.runWith(BUILT, command, ...argv)
    const failures = ran.err.match(/^error: .*/gm)
    expect({ code: ran.code, out: ran.out, failures }).toEqual({
      code: 0,
      out: expect.stringMatching(out),
      failures: null,
    })
  })
})

describe('an idle relay serve', () => {
  it('opens no file of the packages that few use', async () => {
    const LOADED = path.join(emptyFolder(), 'loaded')
    const NODE_OPTIONS = `--import ${path.resolve('test/kit/loaded.mjs')}`
    await using relay = startCommand(['serve', '--port', '0', '--json'], {
      ...BUILT,
      env: { LOADED, NODE_OPTIONS },
    })
    await relay.url()
    expect(await relay.stop()).toMatchObject({ code: 0 })
    const files = readFileSync(LOADED, 'utf8').trim().split('\n')
    expect(files).toContain(path.resolve('dist/bin/relay.cjs'))
    const lazy =
      /\/node_modules\/(?:oauth4webapi|open|pg|playwright-core|prom-client|re2js|smee-client|undici)\//
    expect(files.filter((file) => lazy.test(file))).toEqual([])
    expect(files).not.toContain(path.resolve('dist/bin/inspector.cjs'))
  })
})
