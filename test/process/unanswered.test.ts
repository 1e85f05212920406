import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Closing } from '../kit/closing.js'
import { place, type Serving } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { type Ran, run } from '../kit/run.js'
import { stopBetweenWrites } from '../kit/stopped.js'
import { fresh } from '../outside/fixture.js'

const BUILT = { built: true }

/**
 * How each command takes an instance that does not answer. `fails`: it needs it. `warns`: it goes on without it. `finds`: that is its result.
 * `looks for none`: it says nothing of it.
 */
type How = 'fails' | 'warns' | 'finds' | 'looks for none'

/** Uses of each command of the program's own list. */
const USES: Readonly<Record<string, readonly (readonly [How, ...string[]])[]>> = {
  'catch-up': [
    ['fails', 'octo/demo'],
    ['warns', 'octo/demo', '--dry-run'],
  ],
  comment: [['warns', 'octo/demo#1', 'hello']],
  completion: [['looks for none', 'bash']],
  config: [['warns'], ['warns', '--json']],
  doctor: [['finds'], ['finds', '--json']],
  export: [['warns', '1']],
  help: [['looks for none', 'settings']],
  hook: [
    ['warns', 'list', 'octo/demo'],
    ['fails', 'test', 'octo/demo'],
  ],
  hub: [['looks for none', 'invite']],
  inspect: [['fails', '--no-browser']],
  log: [['warns'], ['warns', '--json'], ['fails', '--refused']],
  login: [['warns', '--with-token', '--user', 'grace']],
  mcp: [['looks for none']],
  merge: [['warns', 'octo/demo#2']],
  profiles: [['warns'], ['warns', '--json']],
  react: [['warns', 'octo/demo#1', '+1']],
  replay: [['fails', '1']],
  reset: [['warns', '--yes', '--local']],
  revoke: [['warns', '--user', 'bob', '--local']],
  routes: [
    ['warns'],
    ['warns', '--json'],
    ['warns', 'test', '1'],
    ['warns', 'add', 'push=http://127.0.0.1:9/'],
    ['warns', 'remove', 'push=http://127.0.0.1:9/'],
  ],
  serve: [
    ['fails', '--port', '0'],
    ['fails', '--port', 'same'],
  ],
  setup: [['warns', '--oauth-app']],
  show: [
    ['warns', '1'],
    ['fails', 'refused:1'],
  ],
  skip: [['warns', '1']],
  source: [
    ['warns', 'list'],
    ['warns', 'add', 'stripe'],
  ],
  token: [['warns']],
  trigger: [
    ['fails', 'push'],
    ['warns', '--list'],
  ],
  verify: [
    ['warns', '1'],
    ['fails', 'refused:1'],
  ],
  version: [['looks for none']],
  wait: [
    ['warns', 'push', '--since', '1h'],
    ['warns', 'fork', '--since', '1s'],
    ['warns', 'fork', '--since', '1s', '--timeout', '1s'],
  ],
  whoami: [['warns']],
}
/** Those that change what the others read. */
const WRITES: ReadonlySet<string> = new Set(['login', 'reset', 'revoke', 'routes', 'setup', 'skip', 'source'])
const ALL = Object.entries(USES).flatMap(([command, uses]) =>
  uses.map(([how, ...args]) => [[command, ...args].join(' '), command, how, args] as const),
)

/** The names of the commands, as the help lists them. */
async function listed(): Promise<readonly string[]> {
  const { out } = await run(['--help'], BUILT)
  const [, commands = ''] = /\nService:\n([^]*)\nEnvironment:\n/.exec(out) ?? []
  return [...commands.matchAll(/^ {2}([\w-]+) /gm)].map(([, name = '']) => name)
}

/** A place with an entry, whose user is signed in, and what each use needs of the shell. */
async function served(closing: Closing) {
  const here = closing.use(await place({ signedIn: true }))
  await here.useToken(undefined, 'bob')
  const relay = await here.serveWith(BUILT)
  await relay.deliver()
  const stdin = await here.sandbox.token('repo')
  const use = (command: string, args: readonly string[]): Promise<Ran> => {
    const words = args.map((word) => (word === 'same' ? String(relay.port) : word))
    const over = {
      login: { stdin },
      setup: { stdin: 'id\nsecret\n' },
      source: { stdin: 'whsec_c2VjcmV0LW9mLXN0cmlwZQ==' },
    }[command]
    return here.runWith({ ...BUILT, ...over }, command, ...words)
  }
  return { here, relay, use }
}

it('every command of the help has a row here', async () => {
  expect(Object.keys(USES).toSorted()).toEqual((await listed()).toSorted())
})

describe('a relay that stands still', () => {
  const closing = new Closing()
  let relay: Serving
  let use: Awaited<ReturnType<typeof served>>['use']

  beforeAll(async () => {
    const all = await served(closing)
    ;({ relay, use } = all)
    await stopBetweenWrites(relay, all.here)
  })
  afterAll(() => {
    relay.kill('SIGCONT')
    return closing[Symbol.asyncDispose]()
  })

  // Each waits for an answer, so that those that only read wait together.
  describe.each([true, false])('concurrently: %s', (concurrent) => {
    const uses = ALL.filter(([, command]) => WRITES.has(command) !== concurrent)
    it.each(uses)('is named by relay %s', { concurrent }, async (_, command, how, args) => {
      const { code, out, err } = await use(command, args)
      const what = `process ${relay.pid} serves this profile but does not answer`
      const next = `kill -CONT ${relay.pid}`
      const said = how === 'finds' ? out : err
      const count = said.split(what).length - 1
      expect([count, said.includes(next), err]).toEqual(
        how === 'looks for none' ? [0, false, err] : [1, true, err],
      )
      const ended = how === 'finds' ? [1] : how === 'fails' ? [1, 'error: '] : []
      expect([code, err.slice(0, 'error: '.length)].slice(0, ended.length)).toEqual(ended)
      expect(err).not.toMatch(/No relay is running|not being served/)
    })
  })

  it('is asked again once it goes on', async () => {
    relay.kill('SIGCONT')
    for (const [command, ...args] of [
      ['trigger', 'push'],
      ['inspect', '--no-browser'],
      ['routes'],
    ] as const) {
      const { code, err } = await use(command, args)
      expect([command, code, err]).toEqual([command, 0, expect.not.stringContaining('does not answer')])
    }
  })
})

it('a relay that is busy for three seconds is waited for, and its users are not told to end it', async () => {
  await using here = await place({ host: 'none' })
  const preload = `--require=${path.resolve('test/kit/busy.cjs')}`
  const relay = await here.serveWith({ ...BUILT, env: { NODE_OPTIONS: preload, BUSY_MS: '3000' } })
  const began = performance.now()
  relay.kill('SIGUSR2')
  const ran = await Promise.all(
    [['routes'], ['inspect', '--no-browser'], ['trigger', 'push'], ['profiles']].map((args) =>
      here.runWith(BUILT, ...args),
    ),
  )
  expect(performance.now() - began).toBeGreaterThan(2500)
  expect(ran.map(({ code, out, err }) => [code, /does not answer/.test(out + err)])).toEqual(
    ran.map(() => [0, false]),
  )
})

describe('Ctrl-C while the relay stands still', () => {
  const here = fresh(() => place({ signedIn: true }))

  /** Followers of a relay, what they print once they follow, and their exit code. */
  it.each([
    ['wait fork --timeout 1m --json', undefined, 130],
    ['wait push --since 1h --forwarded --timeout 1m', undefined, 130],
    ['log --follow --json', undefined, 0],
    ['log --follow', undefined, 0],
    ['login --no-browser', 'http', 130],
  ])('ends relay %s', async (line, said, code) => {
    const relay = await here.serveWith(BUILT, '--forward', 'http://127.0.0.1:9/')
    await relay.deliver()
    const follower = here.startWith(BUILT, ...line.split(' '))
    if (said !== undefined) await follower.says(said)
    await stopBetweenWrites(relay, here)
    if (said === undefined) await follower.says('does not answer')
    const began = performance.now()
    expect((await follower.stop('SIGINT')).code).toBe(code)
    expect(performance.now() - began).toBeLessThan(2000)
    relay.kill('SIGCONT')
  })

  it.each(['wait fork --timeout 1m --json', 'log --follow --json', 'log --follow'])(
    'ends relay %s that was started then',
    async (line) => {
      const relay = await here.serveWith(BUILT)
      await relay.deliver()
      await stopBetweenWrites(relay, here)
      const follower = here.startWith(BUILT, ...line.split(' '))
      await follower.says('does not answer')
      expect((await follower.stop('SIGINT')).code).toBe(line.startsWith('log') ? 0 : 130)
      relay.kill('SIGCONT')
    },
  )
})

describe('a process that has the id of a relay that was killed', () => {
  /** The record that the killed one left, with the id of this process. */
  async function reused(closing: Closing) {
    const all = await served(closing)
    await all.relay.stop('SIGKILL')
    const folder = path.join(all.here.home, '.running')
    const [name = ''] = readdirSync(folder)
    const record: object = JSON.parse(readFileSync(path.join(folder, name), 'utf8'))
    const write = (change: object): void =>
      writeFileSync(path.join(folder, name), JSON.stringify({ ...record, pid: process.pid, ...change }), {
        mode: 0o600,
      })
    return { ...all, write }
  }
  const SHORT: readonly (readonly [string, readonly string[], number])[] = [
    ['routes', [], 0],
    ['inspect', ['--no-browser'], 1],
    ['log', [], 0],
    ['trigger', ['push'], 1],
    ['wait', ['fork', '--since', '1s'], 1],
    ['doctor', [], 0],
  ]

  it('is not taken for it: nothing listens there, or something that does not prove itself', async () => {
    await using closing = new Closing()
    const { write, use } = await reused(closing)
    const web = closing.use(await receiver({ status: 404, body: 'no' }))
    const stalling = closing.use(await receiver({ body: '{', stalls: true }))
    const cut = closing.use(await receiver('reset'))
    for (const change of [
      {},
      { url: web.url },
      { url: stalling.url },
      { url: cut.url },
      { url: web.url, v: 99 },
    ]) {
      write(change)
      const ran = await Promise.all(SHORT.map(([command, args]) => use(command, args)))
      expect({ change, ran }).toMatchObject({ change, ran: SHORT.map(([, , code]) => ({ code })) })
      for (const { err, out } of ran) expect(err + out).not.toMatch(/does not answer|another version/)
    }
  })
})

describe('the record of an instance', () => {
  it('has the version, the process, its address, its profile and its key, and nothing else', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serveWith(BUILT)
    const [name = ''] = readdirSync(path.join(here.home, '.running'))
    const record: unknown = JSON.parse(readFileSync(path.join(here.home, '.running', name), 'utf8'))
    const { pid, address: url } = relay
    const key: unknown = expect.stringMatching(/^[\w-]{43}$/)
    expect(record).toEqual({ v: expect.any(Number), pid, url, profile: 'default', key })
  })

  it.each([1, 3])('of another version of relay (%i) is said to need a restart', async (v) => {
    await using here = await place({ host: 'none' })
    const relay = await here.serveWith(BUILT)
    const [name = ''] = readdirSync(path.join(here.home, '.running'))
    const file = path.join(here.home, '.running', name)
    const record: object = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...record, v, more: 'fields' }))
    const text = `process ${relay.pid} serves this profile with another version of relay: restart it: end it with kill ${relay.pid}, and start it again`
    expect(await here.runWith(BUILT, 'inspect')).toEqual({ code: 1, out: '', err: `error: ${text}\n` })
    expect((await here.runWith(BUILT, 'routes')).err).toContain(`warning: ${text}\n`)
  })
})
