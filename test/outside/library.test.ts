import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createRelay,
  DEFAULTS,
  type Log,
  Secret,
  serve,
  type ServeOptions,
  type Serving,
  type Settings,
  silentLog,
} from 'webhook-relay'
import { fixtureOf, signedRequest, startRelay, TEST_SECRET } from 'webhook-relay/testing'
import { emptyFolder } from '../kit/folder.js'
import { signIn } from '../kit/pages.js'
import { closedPort } from '../kit/ports.js'
import { membersOf } from '../kit/published-types.js'
import { receiver } from '../kit/receiver.js'

/** The settings of a relay for GitHub, as the documentation builds them. */
function settingsWith(given: Partial<Settings> = {}): Settings {
  return {
    ...DEFAULTS,
    providerUrl: 'https://github.com',
    webhookSecrets: { current: new Secret(TEST_SECRET) },
    folder: emptyFolder(),
    port: 0,
    allowedHosts: [],
    routes: { forward: [], exec: [], ignore: [] },
    ...given,
  }
}

const push = (url = 'http://localhost') => signedRequest(fixtureOf('push'), { url: `${url}/webhook` })

const BUSY = { kind: 'unavailable' }
const refusedBy = (relay: Promise<AsyncDisposable>) =>
  relay.then(
    async (one) => one[Symbol.asyncDispose](),
    (error: unknown) => error,
  )

describe('a sandbox', () => {
  it.each([
    ['the defaults', {}],
    ['a port of the sandbox, as the command line has it', { sandboxPort: 0 }],
    ['no sandbox', { sandbox: undefined }],
    ['a sandbox that is null', { sandbox: null }],
  ])('is not started by %s', async (_, given) => {
    const settings: Settings = Object.assign(settingsWith({ store: 'memory' }), given)
    await using serving = await serve(settings)
    const { provider, providerUrl, oauthClient } = serving.settings
    expect({ provider, providerUrl, oauthClient }).toEqual({
      provider: 'github',
      providerUrl: 'https://github.com',
      oauthClient: undefined,
    })
  })

  it('is started by the one setting that asks for it', async () => {
    const places: unknown[] = []
    const onListening: ServeOptions['onListening'] = ({ sandbox }) => void places.push(sandbox)
    const settings = { ...settingsWith({ store: 'memory' }), sandbox: { port: 0 } }
    await using serving = await serve(settings, { onListening })
    expect(serving.settings.provider).toBe('sandbox')
    expect(places).toEqual([serving.settings.providerUrl])
  })
})

/** Each way in which a callback can fail. A promise that nobody awaits ends a Node program when it rejects. */
const FAILURES: Readonly<Record<string, () => unknown>> = {
  throws() {
    throw new Error('a callback that throws')
  },
  'throws what is no error': () => {
    throw Object.create(null)
  },
  rejects: () => Promise.reject(new Error('a callback that rejects')),
  'rejects later': async () => {
    await new Promise(setImmediate)
    throw new Error('a callback that rejects later')
  },
  'returns what only looks like a promise': () => ({
    // oxlint-disable-next-line unicorn/no-thenable -- what a careless program returns
    get then() {
      throw new Error('a member that throws')
    },
  }),
}
const CALLBACKS = [
  ...membersOf('serve/serve.d.ts', 'ServeOptions'),
  ...membersOf('relay.d.ts', 'RelayOptions'),
]
  .filter((name) => /^on[A-Z]/.test(name))
  .toSorted()
const LOG = membersOf('base/log.d.ts', 'Log')

it('a log of a program hears of every sign-in and revocation over HTTP', async () => {
  const lines: string[] = []
  const hear = (text: string): void => void lines.push(text)
  const log: Log = { ...silentLog, info: hear, warn: hear }
  await using serving = await serve({ ...settingsWith({ store: 'memory' }), sandbox: { port: 0 } }, { log })
  const { origin } = new URL(serving.settings.providerUrl)
  await signIn(serving.url, 'ada')
  await fetch(`${serving.url}/auth/token/ada`, { method: 'DELETE' })
  expect(lines.filter((line) => line.startsWith('ada '))).toEqual([
    `ada is signed in as octo at ${origin}`,
    `ada is signed out of ${origin}: the token of octo is deleted`,
  ])
})

describe('a callback', () => {
  const unhandled: unknown[] = []
  const note = (error: unknown): unknown => unhandled.push(error)
  beforeEach(() => void process.on('unhandledRejection', note))
  afterEach(async () => {
    await new Promise(setImmediate)
    process.off('unhandledRejection', note)
    expect(unhandled.splice(0)).toEqual([])
  })

  it('is each of these, so that none is left out here', () => {
    expect(CALLBACKS).toEqual(['onAttempt', 'onDelivery', 'onListening', 'onTarget'])
    expect(LOG).toEqual(['debug', 'info', 'warn', 'error'])
  })

  /** Has two deliveries taken and forwarded, to a target that is down at first, while the options fail. */
  async function receivedBy(options: object): Promise<number> {
    await using target = await receiver()
    await target.down()
    const settings = settingsWith({ routes: { forward: [target.url], exec: [], ignore: [] } })
    const given: ServeOptions = Object.assign(options, { seams: { limits: { probe: 20 } } })
    await using serving = await serve(settings, given)
    expect((await fetch(push(serving.url))).status).toBe(200)
    await expect.poll(() => serving.targets()).toMatchObject([{ state: 'down' }])
    await target.up()
    expect((await fetch(push(serving.url))).status).toBe(200)
    await target.has(2)
    await expect.poll(() => serving.targets()).toMatchObject([{ state: 'up', queued: 0 }])
    // The attempt is recorded with others, shortly after its answer.
    const counts = async () => [...(await serving.relay.journal.counts()).values()]
    await expect.poll(counts).toMatchObject([{ waiting: 0, succeeded: 2, failed: 0 }])
    return target.received.length
  }

  it('can be a method of a class', async () => {
    const calls = new Set<string>()
    class Listener {
      onDelivery(): void {
        calls.add('onDelivery')
      }
    }
    class Watcher extends Listener {
      onAttempt(): void {
        calls.add('onAttempt')
        throw new Error('no')
      }
    }
    expect(await receivedBy(Object.assign(new Watcher(), { log: silentLog }))).toBe(2)
    expect(calls).toEqual(new Set(['onDelivery', 'onAttempt']))
  })

  it('of a promise whose own catch does nothing costs nothing either', async () => {
    const rejected = (): unknown => {
      const promise = Promise.reject(new Error('no'))
      return Object.assign(promise, { catch: () => promise })
    }
    expect(await receivedBy({ onDelivery: rejected, log: silentLog })).toBe(2)
  })

  const cases = Object.entries(FAILURES).flatMap(([how, fail]) =>
    CALLBACKS.map((name) => ({ name, how, fail })),
  )
  it.each(cases)('$name that $how costs nothing, and is logged', async ({ name, fail }) => {
    let calls = 0
    const errors: [string, unknown][] = []
    const log: Log = { ...silentLog, error: (text, cause) => void errors.push([text, cause]) }
    const callback = (): unknown => {
      calls += 1
      return fail()
    }
    expect(await receivedBy({ [name]: callback, log })).toBe(2)
    expect(calls).toBeGreaterThan(0)
    await expect.poll(() => errors.length).toBe(calls)
    expect(new Set(errors.map(([text]) => text))).toEqual(
      new Set([`the callback ${name} failed; relay continues`]),
    )
  })

  it.each(Object.entries(FAILURES))('of the log that %s costs nothing', async (_, fail) => {
    const log = Object.fromEntries(LOG.map((level) => [level, fail]))
    expect(await receivedBy({ log, onDelivery: fail })).toBe(2)
  })

  it.each(Object.entries(FAILURES))(
    'of a relay that does not listen that %s costs nothing',
    async (_, fail) => {
      const options: object = { onDelivery: fail, log: { ...silentLog, error: fail } }
      await using relay = await createRelay(settingsWith({ store: 'memory' }), options)
      expect((await relay.app.fetch(push())).status).toBe(200)
      expect(await relay.journal.count()).toBe(1)
    },
  )

  it.each(Object.entries(FAILURES))('of the testing kit that %s leaves no test waiting', async (_, fail) => {
    await using target = await receiver()
    const options: object = { onDelivery: fail, onAttempt: fail, forward: [target.url] }
    await using relay = await startRelay(options)
    expect(await relay.deliver(fixtureOf('push'))).toMatchObject({ attempts: [{ status: 200 }] })
  })

  it('cannot take a delivery from its targets by changing what it is given', async () => {
    const onDelivery: ServeOptions['onDelivery'] = (delivery, receipt) => {
      Object.assign(receipt, { duplicate: true, targets: [] })
      Object.assign(delivery, { body: undefined, headers: undefined })
    }
    expect(await receivedBy({ onDelivery })).toBe(2)
  })
})

describe('a profile', () => {
  const start = (name: string, settings: Settings): Promise<AsyncDisposable> =>
    name === 'serve' ? serve(settings) : createRelay(settings)
  const BOTH = ['serve', 'createRelay']
  const pairs = BOTH.flatMap((first) => BOTH.map((second) => ({ first, second })))

  it.each(pairs.flatMap((pair) => (['file', 'keychain'] as const).map((store) => ({ ...pair, store }))))(
    'has one relay: $first, then $second, with the store $store',
    async ({ first, second, store }) => {
      const settings = settingsWith({ store })
      const one = await start(first, settings)
      expect(await refusedBy(start(second, settings))).toMatchObject(BUSY)
      await one[Symbol.asyncDispose]()
      expect(await refusedBy(start(second, settings))).toBe(undefined)
    },
  )

  it.each(pairs)('in memory is not shared: $first, then $second', async ({ first, second }) => {
    const settings = settingsWith({ store: 'memory' })
    await using _ = await start(first, settings)
    expect(await refusedBy(start(second, settings))).toBe(undefined)
  })

  it('is free again after a relay that could not start', async () => {
    const settings = settingsWith()
    const routes = { forward: ['='], exec: [], ignore: [] }
    for (const each of BOTH)
      expect(await refusedBy(start(each, { ...settings, routes }))).toMatchObject({ kind: 'settings' })
    expect(await refusedBy(serve(settings))).toBe(undefined)
  })
})

describe('a relay that does not listen', () => {
  const forward = async (): Promise<string> => `http://127.0.0.1:${await closedPort()}`

  it.each(['if-failed', 'always', 'never'] as const)(
    'plans no forward that nothing sends, with the duplicates forwarded %s',
    async (onDuplicate) => {
      const routes = { forward: [await forward()], exec: ['true'], ignore: ['issues.*'] }
      const settings = settingsWith({ routes, onDuplicate })
      {
        await using relay = await createRelay(settings)
        const twice = fixtureOf('push')
        for (const fixture of [twice, twice, fixtureOf('issues.opened')]) {
          const request = signedRequest(fixture, { keepId: true })
          expect((await relay.app.fetch(request)).status).toBe(200)
        }
        const summaries = await relay.journal.after(0, 3)
        expect(summaries.map(({ event, forwards }) => [event, forwards])).toEqual([
          ['push', {}],
          ['issues', {}],
        ])
        expect([...(await relay.journal.counts())]).toEqual([])
      }
      await using serving = await serve(settings)
      expect(serving.targets().map(({ queued }) => queued)).toEqual([0, 0])
    },
  )

  it('stores nothing that is not signed', async () => {
    await using relay = await createRelay(settingsWith({ store: 'memory' }))
    const forged = signedRequest(fixtureOf('push'), { secret: 'another' })
    expect((await relay.app.fetch(forged)).status).toBe(401)
    expect(await relay.journal.count()).toBe(0)
  })
})

describe('what a program gets', () => {
  const JOURNAL = membersOf('journal/read.d.ts', 'JournalQueries').filter((name) => name !== 'constructor')
  /** Every name of an object, with those that it inherits. */
  const namesOf = (object: object): string[] => {
    const names = new Set<string>()
    for (let at: unknown = object; at !== Object.prototype; at = Object.getPrototypeOf(at))
      for (const name of Object.getOwnPropertyNames(at)) names.add(name)
    return [...names].filter((name) => name !== 'constructor').toSorted()
  }
  const READING = JOURNAL.toSorted()

  async function both(): Promise<[Serving, Awaited<ReturnType<typeof createRelay>>]> {
    return [
      await serve(settingsWith({ store: 'memory' })),
      await createRelay(settingsWith({ store: 'memory' })),
    ]
  }

  it('has at run time what its types say, and nothing more', async () => {
    const [serving, relay] = await both()
    await using _serving = serving
    await using _relay = relay
    expect(namesOf(serving)).toEqual(membersOf('serve/serve.d.ts', 'Serving').toSorted())
    for (const one of [serving.relay, relay]) {
      expect(namesOf(one)).toEqual(membersOf('relay.d.ts', 'Relay').toSorted())
      // What is protected in the types is a method that reads, too.
      expect(namesOf(one.journal)).toEqual([...READING, 'firstSince'].toSorted())
    }
    await using kit = await startRelay()
    expect(namesOf(kit.relay)).toEqual(membersOf('relay.d.ts', 'Relay').toSorted())
  })

  it('has types that need no package but those of Node', () => {
    const files = readdirSync('dist/src', { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.d.ts'),
    )
    const named = files.flatMap((file) => [
      ...readFileSync(path.join('dist/src', file), 'utf8').matchAll(/(?:from |import\()'([^']+)'/g),
    ])
    const packages = named.map(([, name = '']) => name).filter((name) => !/^(?:\.|node:)/.test(name))
    expect(packages.filter((name) => !name.startsWith('webhook-relay/'))).toEqual([])
    expect(named.length).toBeGreaterThan(files.length)
  })

  it('writes nothing into the journal', () => {
    const writers = membersOf('journal/read.d.ts', 'JournalQueries').filter((name) =>
      /^(?:append|again|record|expire|sweep|flush|check|write)/.test(name),
    )
    expect(writers).toEqual([])
    // The class that writes is in no type that a program can name.
    const published = [
      'index.d.ts',
      'relay.d.ts',
      'serve/serve.d.ts',
      'testing/index.d.ts',
      'testing/relay.d.ts',
    ]
    const naming = published.filter((file) =>
      readFileSync(`dist/src/${file}`, 'utf8').includes('journal/journal.js'),
    )
    expect(naming).toEqual([])
  })

  it.each([
    ['the public one', { publicUrl: 'http://127.0.0.1:4000', port: 1 }, 'http://127.0.0.1:4000'],
    ['else that of host and port', { port: 4001 }, 'http://127.0.0.1:4001'],
  ])('has its address from the settings, %s', async (_, given, address) => {
    const oauthClient = { id: 'client', secret: new Secret('secret') }
    await using relay = await createRelay(settingsWith({ store: 'memory', oauthClient, ...given }))
    const begun = await relay.app.fetch(new Request('http://localhost/auth/provider?userId=ada'))
    const location = new URL(begun.headers.get('location') ?? '')
    expect(location.searchParams.get('redirect_uri')).toBe(`${address}/auth/github/callback`)
    expect(Object.keys(relay)).not.toContain('address')
  })
})
