import { describe, expect, it } from 'vitest'
import {
  events,
  fixtureOf,
  signedRequest,
  startRelay,
  startSandbox,
  type TestDelivery,
} from 'webhook-relay/testing'
import { receiver } from '../kit/receiver.js'

const push = fixtureOf('push')

/** Its targets, each with its status and the statuses of its attempts. */
const statesOf = ({ targets }: TestDelivery) =>
  targets.map(({ target, status, attempts }) => [target, status, attempts.map((attempt) => attempt.status)])

describe('a delivery that is tried again', () => {
  it.each([
    ['succeeds', [500, 503, 200], 'succeeded', [500, 503, 200]],
    ['is refused', [500, 404], 'failed', [500, 404]],
    ['is never accepted', [500, 500, 500, 500, 500], 'failed', [500, 500, 500, 500]],
  ])('and %s is settled', async (_, answers, status, made) => {
    await using app = await receiver()
    app.answers(...answers)
    await using relay = await startRelay({ forward: [app.url], retries: [5, 5, 5] })
    expect(statesOf(await relay.deliver(push, { until: 'settled' }))).toEqual([[app.url, status, made]])
  })

  it('is returned after a number of attempts', async () => {
    await using app = await receiver(500)
    await using other = await receiver()
    await using relay = await startRelay({ forward: [app.url, other.url], retries: [5, 60_000] })
    const delivery = await relay.deliver(push, { until: { attempts: 2 } })
    expect(new Set(statesOf(delivery))).toEqual(
      new Set([
        [app.url, 'waiting', [500, 500]],
        [other.url, 'succeeded', [200]],
      ]),
    )
    app.answers(200)
    relay.retryNow()
    const [settled] = await relay.deliveries({}, { until: 'settled' })
    expect(settled && statesOf(settled)).toContainEqual([app.url, 'succeeded', [500, 500, 200]])
  })

  it('reaches a target that comes back', async () => {
    await using app = await receiver()
    await app.down()
    await using relay = await startRelay({ forward: [app.url], retries: [5] })
    const { targets } = await relay.deliver(push, { until: { attempts: 2 } })
    expect(targets).toMatchObject([{ status: 'waiting', attempts: [{ error: 'connection refused' }] }])
    await app.up()
    await relay.deliveries({}, { until: 'settled' })
    await app.has(1)
  })

  it('has its time limit', async () => {
    await using app = await receiver('hang')
    await using relay = await startRelay({ forward: [app.url], timeout: 20, retries: [5] })
    const { targets } = await relay.deliver(push, { until: 'settled' })
    const attempt = { outcome: 'timed out', error: 'no answer within 0.02 s' }
    expect(targets).toMatchObject([{ status: 'failed', attempts: [attempt] }])
    expect(app.received).toHaveLength(2)
  })

  it('and not settled in time is an error that says where it waits', async () => {
    await using app = await receiver(500)
    await using relay = await startRelay({ forward: [app.url], retries: [60_000] })
    const settled = relay.deliver(push, { until: 'settled', timeout: 50 })
    await expect(settled).rejects.toThrow(
      /for 1 settled \(.+\), got 1\. Received: #1 push .+, not yet settled at http/,
    )
  })
})

describe('nothing more', () => {
  it('has come after what was returned', async () => {
    await using relay = await startRelay()
    expect(await relay.nothingMore()).toBe(undefined)
    await relay.deliver(push)
    expect(await relay.nothingMore()).toBe(undefined)
    expect(await relay.nothingMore({ event: 'issues' }, { within: 1 })).toBe(undefined)
  })

  it('is an error that lists what came', async () => {
    await using relay = await startRelay()
    const token = await relay.signIn()
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' })
    await fetch(`${relay.url}/api/comment`, { method: 'POST', headers, body })
    const message = 'Nothing more was expected. Received: #1 issue_comment.created octo/demo#1'
    await expect(relay.nothingMore()).rejects.toMatchObject({ kind: 'target_failed', message })
    await relay.nothingMore({ event: 'push' }, { within: 1 })
    await relay.deliveries()
    await relay.nothingMore()
  })

  it('notices what comes while it waits', async () => {
    await using relay = await startRelay()
    const nothing = relay.nothingMore({}, { within: 5000 }).catch((error: unknown) => error)
    await fetch(signedRequest(push, { url: `${relay.url}/webhook` }))
    expect(await nothing).toMatchObject({ kind: 'target_failed' })
  })
})

it('each source has a secret of its own', async () => {
  const sources = {
    billing: { scheme: 'stripe', secret: 'whsec_1' },
    shop: { scheme: 'shopify' },
    chat: 'slack',
  }
  await using relay = await startRelay({ secret: 'common', sources })
  const paid = fixtureOf('invoice.paid', { scheme: 'stripe', source: 'billing' })
  expect(await relay.deliver(paid)).toMatchObject({ provider: 'billing', verifiedBy: 'current' })
  const [topic = ''] = events({ scheme: 'shopify' })
  expect(await relay.deliver(fixtureOf(topic, { scheme: 'shopify', source: 'shop' }))).toMatchObject({
    provider: 'shop',
  })
})

it('lists the events that there are examples of', () => {
  expect(events()).toEqual(expect.arrayContaining(['push', 'issues.opened', 'pull_request.opened']))
  expect(events({ scheme: 'stripe' })).toContain('invoice.paid')
  for (const event of events({ provider: 'gitea' }))
    expect(fixtureOf(event, { provider: 'gitea' }).event).toBe(event.split('.')[0])
})

describe('a misspelt name', () => {
  /** Calls without types, as in JavaScript. */
  const untyped =
    (call: (...args: never[]) => unknown) =>
    (...args: unknown[]): unknown =>
      Reflect.apply(call, undefined, args)
  it.each<[string, () => unknown, string]>([
    [
      'an option of startRelay',
      () => untyped(startRelay)({ secert: 'x' }),
      'startRelay has no option secert (did you mean secret?)',
    ],
    ['another', () => untyped(startRelay)({ port: 1 }), 'startRelay has no option port'],
    [
      'a setting',
      () => untyped(startRelay)({ settings: { maxBdoy: 1 } }),
      'There is no setting maxBdoy (did you mean maxBody?)',
    ],
    [
      'a value of a setting',
      () => untyped(startRelay)({ settings: { maxBody: '1' } }),
      'The setting maxBody must be a whole number from 1 to 26214400',
    ],
    [
      'a scheme of a source',
      () => untyped(startRelay)({ sources: { a: 'stripee' } }),
      'relay knows no scheme "stripee" (did you mean stripe?)',
    ],
    [
      'a member of a source',
      () => untyped(startRelay)({ sources: { a: { scheme: 'stripe', secert: '' } } }),
      'the source a has no option secert (did you mean secret?)',
    ],
    [
      'an option of startSandbox',
      () => untyped(startSandbox)({ webhok: '' }),
      'startSandbox has no option webhok (did you mean webhook?)',
    ],
    [
      'an option of fixtureOf',
      () => untyped(fixtureOf)('push', { shceme: 'stripe' }),
      'fixtureOf has no option shceme (did you mean scheme?)',
    ],
    [
      'a scheme',
      () => untyped(fixtureOf)('x', { scheme: 'strpie' }),
      'relay knows no scheme "strpie" (did you mean stripe?)',
    ],
    [
      'a code host',
      () => untyped(fixtureOf)('push', { provider: 'gitaa' }),
      'relay knows no code host "gitaa" (did you mean gitea?)',
    ],
    [
      'an event',
      () => untyped(fixtureOf)('pussh'),
      'There is no template for "pussh" (did you mean push?): events() has them',
    ],
  ])('of %s is refused', async (_, call, message) => {
    await expect((async () => call())()).rejects.toThrow(message)
  })

  it.each<[object, string]>([
    [{ kepId: true }, 'deliver has no option kepId (did you mean keepId?)'],
    [
      { set: { 'repositry.full_name': 'a/b' } },
      "Cannot set 'repositry.full_name': the payload has no repositry (did you mean repository?)",
    ],
    [
      { set: { 'repository.fullname': 'a/b' } },
      "Cannot set 'repository.fullname': repository has no fullname (did you mean full_name?)",
    ],
    [{ set: { 'commits[9]': {} } }, "Cannot set 'commits[9]': commits has no 9"],
  ])('in deliver(fixture, %j) is refused', async (options, message) => {
    await using relay = await startRelay()
    await expect(relay.deliver(push, options)).rejects.toMatchObject({ kind: 'usage', message })
  })

  it('of a filter or a wait is refused', async () => {
    await using relay = await startRelay()
    const filter: object = { evnt: 'push' }
    await expect(relay.deliveries(filter)).rejects.toThrow(
      'a filter of deliveries has no evnt (did you mean event?)',
    )
    const routes: object = { forwad: [] }
    expect(() => relay.replaceRoutes(routes)).toThrow('replaceRoutes has no forwad (did you mean forward?)')
    const wait: object = { cuont: 2 }
    await expect(relay.deliveries({}, wait)).rejects.toThrow(
      'deliveries has no option cuont (did you mean count?)',
    )
  })
})

describe('a relay', () => {
  it('stops once, however often it is asked', async () => {
    const relay = await startRelay()
    await Promise.all([relay.stop(), relay.stop(), relay[Symbol.asyncDispose]()])
    await relay.stop()
    await expect(fetch(`${relay.url}/health`)).rejects.toThrow('fetch failed')
  })

  it('stops with its signal, as does a sandbox', async () => {
    const abort = new AbortController()
    const relay = await startRelay({ signal: abort.signal })
    const sandbox = await startSandbox({ signal: abort.signal })
    const waiting = relay.deliveries().catch((error: unknown) => error)
    abort.abort()
    expect(await waiting).toMatchObject({ kind: 'cancelled' })
    await Promise.all([relay.stop(), sandbox.stop()])
    for (const { url } of [relay, sandbox]) await expect(fetch(url)).rejects.toThrow('fetch failed')
  })

  it('does not start after its signal', async () => {
    const signal = AbortSignal.abort(new Error('too late'))
    await expect(startRelay({ signal })).rejects.toThrow('too late')
    await expect(startSandbox({ signal })).rejects.toThrow('too late')
  })
})
