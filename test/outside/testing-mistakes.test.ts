import { describe, expect, it } from 'vitest'
import { createRelay, DEFAULTS, mount, Secret, serve, type Settings } from 'webhook-relay'
import {
  events,
  fixtureOf,
  loadFixture,
  loadFixtures,
  signedRequest,
  startRelay,
  startSandbox,
} from 'webhook-relay/testing'
import { receiver } from '../kit/receiver.js'

// What an author gets to read for a mistake. test/process/wrong-values.test.ts has all options with all wrong values.

const push = fixtureOf('push')
const settings: Settings = {
  ...DEFAULTS,
  providerUrl: 'https://github.com',
  webhookSecrets: { current: new Secret('secret') },
  folder: '',
  store: 'memory',
  port: 0,
  allowedHosts: [],
  routes: [],
}

/** Calls without types, as in JavaScript. */
const untyped =
  (call: (...args: never[]) => unknown) =>
  (...args: unknown[]): unknown =>
    Reflect.apply(call, undefined, args)

/** Calls a method without types. */
const callOn = (object: object, method: string, ...args: readonly unknown[]): unknown =>
  Reflect.apply(Reflect.get(object, method), object, args)

/** The message of a call that is refused. */
async function messageOf(call: () => unknown): Promise<string> {
  try {
    await call()
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : 'no error'
  }
  return 'not refused'
}

describe('a mistake says what to do:', () => {
  it.each<[string, () => unknown, string]>([
    [
      'a part to tamper with',
      () => untyped(signedRequest)(push, { tamper: 'sig' }),
      'signedRequest: the option tamper must be one of signature, body',
    ],
    [
      'an address without a scheme',
      () => untyped(signedRequest)(push, { url: 'localhost:3000/hooks' }),
      'signedRequest: the option url must be an address with http:// or https://',
    ],
    [
      'a secret that is a number',
      () => untyped(signedRequest)(push, { secret: 5 }),
      'signedRequest: the option secret must be a text that is not empty',
    ],
    [
      'a fixture that is not awaited',
      () => untyped(signedRequest)(loadFixture('webhook-relay/fixtures/github/push.json')),
      "signedRequest: the fixture must be an object, such as fixtureOf('push'), not a promise: await it",
    ],
    [
      'all fixtures of a folder',
      async () => untyped(signedRequest)((await loadFixtures('webhook-relay/fixtures/gitea'))[0]),
      'signedRequest: the fixture must be one of loadFixtures: give its fixture',
    ],
    [
      'an object that is no fixture',
      () => untyped(signedRequest)({ ...push, delivery: undefined }),
      'signedRequest: the fixture is invalid: delivery: must be 1 to 200 visible ASCII characters',
    ],
    ...[undefined, () => {}, 5n, NaN].map((value): [string, () => unknown, string] => [
      `a new value that JSON lacks (${String(value)})`,
      () => untyped(signedRequest)(push, { set: { ref: value } }),
      `signedRequest: the option set['ref'] ${value === undefined ? 'is missing' : 'must be a value of JSON'}`,
    ]),
    [
      'a body for another event',
      () => fixtureOf('invoice.paid', { scheme: 'stripe', body: { type: 'other' } }),
      'The event is invoice.paid, but the body is of other: change one of them',
    ],
    [
      'a part of a scheme',
      () => fixtureOf('push', { scheme: 'hmac' }),
      'The scheme hmac needs the name of the header, as header=X-Signature',
    ],
    [
      'a list of sources',
      () => untyped(startRelay)({ sources: ['stripe'] }),
      "startRelay: the option sources must be an object: { billing: 'stripe' }",
    ],
    [
      "a source with a code host's name",
      () => startRelay({ sources: { github: 'github' } }),
      'startRelay: the option sources: the name github must not be that of a code host',
    ],
    [
      'a route that answers a sender',
      () => startRelay({ reply: ['slack'] }),
      'the setting reply slack: no route takes what slack sends: add one',
    ],
    ['no event', () => untyped(fixtureOf)(), 'fixtureOf: the event is missing'],
    [
      'an event with a letter too much',
      () => fixtureOf('pusch'),
      'There is no template for "pusch" (did you mean push?): events() has them',
    ],
    [
      'an event of another sender',
      () => fixtureOf('invoice.payed', { scheme: 'stripe' }),
      'There is no example of "invoice.payed" (did you mean invoice.paid?): events({ scheme: \'stripe\' }) has them, and the ' +
        'option body sends a body of your own',
    ],
    [
      'an event of Gitea',
      () => fixtureOf('pussh', { provider: 'gitea' }),
      'There is no template for "pussh" (did you mean push?): events({ provider: \'gitea\' }) has them',
    ],
    [
      'a scheme that is no option',
      () => untyped(events)('stripe'),
      "events: the options must be an object: events({ scheme: 'stripe' })",
    ],
    [
      'a bare payload without its event',
      () => loadFixture('package.json'),
      "package.json: not a fixture but a bare payload, which holds no signature; to send it, give its event, as with { event: 'push' }",
    ],
    [
      'one address in place of a list',
      () => untyped(startRelay)({ forward: 'http://localhost:3000/' }),
      'startRelay: the option forward must be a list of texts',
    ],
    [
      'one delay in place of a list',
      () => untyped(startRelay)({ retries: 5 }),
      'startRelay: the option retries must be a list of delays in milliseconds',
    ],
    [
      'delays with a unit',
      () => untyped(startRelay)({ retries: ['5s'] }),
      'startRelay: the option retries[0] must be a whole number of milliseconds from 0 to 2147483647',
    ],
    [
      'a time limit with a unit',
      () => untyped(startRelay)({ timeout: '5s' }),
      'startRelay: the option timeout must be a number of milliseconds above 0',
    ],
    [
      'a controller in place of its signal',
      () => untyped(startRelay)({ signal: new AbortController() }),
      'startRelay: the option signal must be an AbortSignal, not its AbortController: give its signal',
    ],
    [
      'a source without a scheme',
      () => untyped(startRelay)({ sources: { billing: { secret: 'whsec_1' } } }),
      'startRelay: the option sources: the source billing.scheme is missing',
    ],
    [
      'a name of a source',
      () => startRelay({ sources: { 'My Shop': 'shopify' } }),
      'startRelay: the option sources: the name My Shop must be 1–32 letters a–z, digits or -, and begin with a letter',
    ],
    [
      'a setting in place of an option',
      () => untyped(startRelay)({ maxBody: 10 }),
      'startRelay has no option maxBody: it is one of settings, as in startRelay({ settings: { maxBody: 1000 } })',
    ],
    ...['provider', 'providerUrl', 'oauthClient', 'sandbox'].map((name): [string, () => unknown, string] => [
      `the setting ${name}`,
      () => untyped(startRelay)({ settings: { [name]: undefined } }),
      `startRelay: the setting ${name} cannot be given: the code host of a test is its sandbox`,
    ]),
    [
      'routes in two places',
      () => untyped(startRelay)({ forward: ['http://localhost:1/'], settings: { routes: [] } }),
      'startRelay: the setting routes cannot be given: give the options forward, exec, ignore and routes',
    ],
    [
      'sources as a setting',
      () => untyped(startRelay)({ settings: { sources: [] } }),
      "startRelay: the setting sources cannot be given: give the option sources, as in startRelay({ sources: { billing: 'stripe' } })",
    ],
    [
      'half an application',
      () => untyped(startSandbox)({ client: { id: 'mine' } }),
      'startSandbox: the option client.secret is missing',
    ],
    [
      'no folder',
      () => serve({ ...settings, store: 'file' }),
      'The setting folder must be a text that is not empty',
    ],
    ['no settings', () => untyped(mount)(), 'The settings must be an object'],
    [
      'a misspelt option of createRelay',
      () => untyped(createRelay)(settings, { onDelivry: () => {} }),
      'there is no option onDelivry (did you mean onDelivery?)',
    ],
    [
      'a callback that is none',
      () => untyped(serve)(settings, { onDelivery: 5 }),
      'the option onDelivery must be a function',
    ],
    [
      'a function in place of a log',
      () => untyped(serve)(settings, { log: () => {} }),
      'the option log must be an object with the functions debug, info, warn, error, such as console',
    ],
    [
      'a secret that is not set',
      () => untyped((value: string) => new Secret(value))(undefined),
      'new Secret: the value is missing',
    ],
    [
      'a secret that is empty',
      () => serve({ ...settings, webhookSecrets: { current: new Secret('') } }),
      'The setting webhookSecrets.current must not be empty',
    ],
    [
      'a misspelt secret',
      () =>
        untyped(serve)({
          ...settings,
          webhookSecrets: { ...settings.webhookSecrets, prevoius: new Secret('x') },
        }),
      'The setting webhookSecrets has no prevoius (did you mean previous?)',
    ],
  ])('%s', async (_, call, message) => {
    expect(await messageOf(call)).toBe(`RelayError: ${message}`)
  })

  it('a wait for what a relay does not know', async () => {
    await using relay = await startRelay()
    const deliver = (...args: unknown[]): unknown => callOn(relay, 'deliver', ...args)
    const next = (...args: unknown[]): unknown => callOn(relay.sandbox.faults, 'next', ...args)
    const mistakes: [() => unknown, string][] = [
      [() => deliver('push'), "deliver: the fixture must be an object: fixtureOf('push')"],
      [
        () => deliver(push, { until: 'settle' }),
        "deliver: the option until must be 'settled' or { attempts: 2 } (did you mean settled?)",
      ],
      [
        () => deliver(push, { until: { attempt: 2 } }),
        'deliver: the option until has no attempt (did you mean attempts?)',
      ],
      [
        () => callOn(relay, 'deliveries', 'push'),
        "deliveries: the filter must be an object: deliveries({ event: 'push' })",
      ],
      [
        () => callOn(relay, 'deliveries', { until: 'settled' }),
        'a filter of deliveries has no until: it is one of the options, the second argument',
      ],
      [
        () => callOn(relay, 'nothingMore', {}, { event: 'push' }),
        'nothingMore has no option event: it is of the filter, the first argument',
      ],
      [
        () => next('comment', { kind: 'answr', status: 500 }),
        'faults.next: the fault.kind must be one of answer, slow, late, reset, reset-after (did you mean answer?)',
      ],
      [
        () => callOn(relay, 'replaceRoutes', { reply: ['slack'] }),
        'the setting reply slack: no route takes what slack sends: add one',
      ],
      [
        () => next('coment', '502'),
        'faults.next: the operation must be one of token, device, convert, user, comment, merge, react, hook, deliveries, ' +
          'redeliver, checks, push (did you mean comment?)',
      ],
      [
        () => next('comment', 502),
        'faults.next: the fault must be one of 502, rate-limit, secondary-limit, slow, reset, reset-after, invalid-json, or an ' +
          'object',
      ],
    ]
    for (const [call, message] of mistakes) expect(await messageOf(call)).toBe(`RelayError: ${message}`)
  })
})

describe('a delivery of a source that the relay does not have', () => {
  it.each<[string, Parameters<typeof fixtureOf>, string]>([
    [
      'says how to declare it',
      ['invoice.paid', { scheme: 'stripe' }],
      'deliver: the relay has no source stripe. Declare it: startRelay({ sources: { "stripe": "stripe" } })',
    ],
    [
      'names the nearest one',
      ['invoice.paid', { scheme: 'stripe', source: 'biling' }],
      'deliver: the relay has no source biling (did you mean billing?). Declare it: startRelay({ sources: { "biling": "stripe" } })',
    ],
    [
      'of a code host with another protocol says so',
      ['push', { provider: 'gitlab' }],
      "deliver: a delivery of gitlab is not signed as the relay's code host signs, which speaks GitHub's protocol. Receive it as " +
        'one of a source: fixtureOf(event, { scheme: \'gitlab\' }) with startRelay({ sources: { "gitlab": "gitlab" } })',
    ],
  ])('%s', async (_, given, message) => {
    await using relay = await startRelay({ sources: { billing: 'stripe' } })
    await expect(relay.deliver(fixtureOf(...given))).rejects.toMatchObject({ kind: 'usage', message })
    expect(await relay.deliveries({}, { count: 0 })).toEqual([])
  })

  it('that is declared with another sender says so', async () => {
    await using relay = await startRelay({ sources: { billing: 'stripe' } })
    const [event = ''] = events({ scheme: 'shopify' })
    await expect(
      relay.deliver(fixtureOf(event, { scheme: 'shopify', source: 'billing' })),
    ).rejects.toMatchObject({
      kind: 'target_failed',
      message:
        'The relay refused the delivery: 401 {"error":"Invalid signature"}. The source billing receives from stripe, and the ' +
        'fixture is of shopify',
    })
  })

  it('arrives once it is declared, as the message says', async () => {
    await using relay = await startRelay({ sources: { gitlab: 'gitlab' } })
    const [event = ''] = events({ scheme: 'gitlab' })
    expect(await relay.deliver(fixtureOf(event, { scheme: 'gitlab' }))).toMatchObject({ provider: 'gitlab' })
    expect(await relay.deliver(fixtureOf('push', { provider: 'gitea' }))).toMatchObject({ event: 'push' })
  })
})

it('a port that is in use is one of the option', async () => {
  await using other = await startSandbox()
  const port = Number(new URL(other.url).port)
  const message = `Port ${port} is in use. Choose another with the option port, or 0 for any free port.`
  await expect(startSandbox({ port })).rejects.toMatchObject({ kind: 'unavailable', message })
})

it('a wait of no time says so', async () => {
  await using relay = await startRelay()
  await expect(relay.deliveries({}, { timeout: 0 })).rejects.toThrow('Waited 0s for 1 forwarded, got 0')
})

it('a wait whose signal has aborted is no wait', async () => {
  await using relay = await startRelay()
  await relay.deliver(push)
  const signal = AbortSignal.abort(new Error('enough'))
  for (const call of [
    () => relay.deliveries({}, { signal }),
    () => relay.nothingMore({ event: 'push' }, { signal }),
  ])
    await expect(call()).rejects.toThrow('enough')
})

it('a wait that ends too early says what it was for, and the state of each target', async () => {
  await using failing = await receiver(500)
  await using other = await receiver()
  const options = { forward: [failing.url, other.url], retries: [60_000, 60_000] }
  await using relay = await startRelay(options)
  const wait = { keepId: true, timeout: 200 }
  const id = fixtureOf('push')
  const states = (missing: string): string => {
    const failed = `${missing} ${failing.url} (1 attempt, the last: 500)`
    const succeeded = `succeeded at ${other.url}`
    const inOrder = failing.url < other.url ? [failed, succeeded] : [succeeded, failed]
    return `got 1. Received: #1 push octo/demo, ${inOrder.join(', ')}`
  }
  await expect(relay.deliver(id, { ...wait, until: 'settled' })).rejects.toMatchObject({
    kind: 'timed_out',
    message: `Waited 0.2s for 1 settled (${id.delivery}), ${states('not yet settled at')}`,
  })
  const twice = relay.deliveries({}, { timeout: 200, until: { attempts: 2 } })
  await expect(twice).rejects.toMatchObject({
    kind: 'timed_out',
    message: `Waited 0.2s for 1 attempted 2 times, ${states('not yet attempted 2 times at')}`,
  })
})

describe('what was stopped says so', () => {
  it('of the kit', async () => {
    const relay = await startRelay()
    const sandbox = await startSandbox()
    await Promise.all([relay.stop(), sandbox.stop()])
    const late = { kind: 'unavailable', message: 'The relay was stopped: startRelay starts another one' }
    const calls: (() => unknown)[] = [
      () => relay.deliver(push),
      () => relay.deliveries(),
      () => relay.nothingMore(),
      () => relay.signIn(),
      () => relay.retryNow(),
      () => relay.replaceRoutes({}),
      () => relay.sandbox.token(),
      () => relay.sandbox.idle(),
      () => relay.relay.journal.count(),
    ]
    for (const call of calls) await expect((async () => call())()).rejects.toMatchObject(late)
    const ofSandbox = {
      kind: 'unavailable',
      message: 'The sandbox was stopped: startSandbox starts another one',
    }
    for (const call of [() => sandbox.token(), () => sandbox.idle()])
      await expect(call()).rejects.toMatchObject(ofSandbox)
  })

  it('to what is in flight, unless its own signal ended it', async () => {
    const relay = await startRelay()
    const sandbox = await startSandbox()
    const signal = AbortSignal.abort(new Error('enough'))
    const calls = [
      relay.deliver(push),
      relay.deliveries(),
      relay.nothingMore(),
      relay.signIn(),
      relay.sandbox.token(),
      sandbox.token(),
    ]
    const own = [
      relay.deliver(push, { signal }),
      relay.deliveries({}, { signal }),
      relay.nothingMore({}, { signal }),
    ]
    const ended = Promise.allSettled([...calls, ...own])
    await Promise.all([relay.stop(), sandbox.stop()])
    const reasons = (await ended).map((each) => (each.status === 'rejected' ? each.reason : each.value))
    expect(reasons).toEqual([
      ...calls.map(() => expect.objectContaining({ kind: 'cancelled' })),
      ...own.map(() => signal.reason),
    ])
  })

  it('of the library', async () => {
    const late = { kind: 'unavailable', message: 'The relay was stopped' }
    const serving = await serve(settings)
    const relay = await createRelay(settings)
    await serving[Symbol.asyncDispose]()
    await relay[Symbol.asyncDispose]()
    const calls: (() => unknown)[] = [
      () => serving.targets(),
      () => serving.retryNow(),
      () => serving.replaceRoutes([]),
      () => serving.checkRoutes([]),
      () => serving.relay.journal.newest(),
      () => relay.journal.count(),
    ]
    for (const call of calls) await expect((async () => call())()).rejects.toMatchObject(late)
    for (const { app } of [serving.relay, relay]) {
      const answer = await app.fetch(signedRequest(push, { secret: 'secret' }))
      expect([answer.status, await answer.json()]).toEqual([503, { error: 'The relay was stopped' }])
    }
  })
})
