import { describe, expect, it } from 'vitest'
import { linesOf } from '../kit/journal.js'
import { place, type Serving } from '../kit/place.js'
import { type Received, receiver, valuesOf } from '../kit/receiver.js'

/** A minute of retries, and a probe each second, in a fraction of that. */
const LIMITS = { retries: [10, 10, 10, 10], probe: 20, http: 300 }

const idOf = (request: Received): string => valuesOf(request, 'X-GitHub-Delivery')[0] ?? ''

async function deliver(relay: Serving, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) expect(await relay.deliver({ id, body: `"${id}"` })).toMatchObject({ status: 200 })
}

describe('what a target answers', () => {
  it.each([200, 204, 299])('%i: the delivery has succeeded', async (status) => {
    await using target = await receiver(status)
    await using here = await place({ host: 'none' })
    const relay = await here.serveWith({ seams: { limits: LIMITS } }, '--forward', target.url)
    await deliver(relay, 'a', 'b')
    expect(await relay.object({ type: 'attempt', n: 2 })).toMatchObject({ outcome: 'succeeded', status })
    expect(target.received.map(idOf)).toEqual(['a', 'b'])
  })

  it.each([301, 304, 400, 404, 410])('%i: it has failed, and is not sent again', async (status) => {
    await using target = await receiver((request) => (idOf(request) === 'a' ? status : 200))
    await using here = await place({ host: 'none' })
    const relay = await here.serveWith({ seams: { limits: LIMITS } }, '--forward', target.url)
    await deliver(relay, 'a', 'b')
    await relay.object({ type: 'attempt', n: 2 })
    expect(await relay.object({ type: 'attempt', n: 1 })).toMatchObject({
      outcome: 'refused',
      status,
      state: 'failed',
      reason: `answered ${status}`,
    })
    expect(target.received.map(idOf)).toEqual(['a', 'b'])
  })

  it.each([408, 425, 429, 500, 502, 503, 504])(
    '%i: it is sent again, before those behind it',
    async (status) => {
      await using target = await receiver()
      target.answers(status, status, 200)
      await using here = await place({ host: 'none' })
      const relay = await here.serveWith({ seams: { limits: LIMITS } }, '--forward', target.url)
      await deliver(relay, 'a', 'b')
      await target.has(4)
      await relay.object({ type: 'attempt', n: 2 })
      expect(target.received.map(idOf)).toEqual(['a', 'a', 'a', 'b'])
      expect(target.received.map((request) => valuesOf(request, 'X-Relay-Attempt')[0])).toEqual([
        '1',
        '2',
        '3',
        '1',
      ])
      expect(await relay.objects({ type: 'attempt', n: 1 }, 3)).toMatchObject([
        { outcome: 'retry', status, state: 'waiting' },
        { outcome: 'retry', status, state: 'waiting' },
        { outcome: 'succeeded', status: 200, state: 'succeeded' },
      ])
    },
  )

  it('503 five times: it has failed, and the next one is sent', async () => {
    await using target = await receiver((request) => (idOf(request) === 'a' ? 503 : 200))
    await using here = await place({ host: 'none' })
    const relay = await here.serveWith({ seams: { limits: LIMITS } }, '--forward', target.url)
    await deliver(relay, 'a', 'b')
    await relay.object({ type: 'attempt', n: 2 })
    expect(target.received.map(idOf)).toEqual(['a', 'a', 'a', 'a', 'a', 'b'])
    expect((await relay.objects({ type: 'attempt', n: 1 }, 5)).at(-1)).toMatchObject({
      state: 'failed',
      reason: 'answered 503, 5 times',
    })
  })

  it('Retry-After: it waits as long as it was asked to', async () => {
    await using target = await receiver()
    target.answers({ status: 503, headers: { 'Retry-After': '1' } })
    await using here = await place({ host: 'none' })
    const relay = await here.serveWith({ seams: { limits: LIMITS } }, '--forward', target.url)
    await deliver(relay, 'a')
    await target.has(2)
    const [first, second] = target.received
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(900)
  })
})

describe('a target that cannot be reached', () => {
  it.each(['reset', 'hang'] as const)(
    '%s: it is down until it answers, and then gets all in order',
    async (how) => {
      await using target = await receiver()
      target.answers(how, how)
      await using here = await place({ host: 'none' })
      const relay = await here.serveWith({ seams: { limits: LIMITS } }, '--forward', target.url)
      await deliver(relay, 'a', 'b', 'c', 'd')
      expect(await relay.object({ type: 'target', state: 'down' })).toMatchObject({ target: target.url })
      await relay.object({ type: 'attempt', n: 4, state: 'succeeded' })
      expect(target.received.map(idOf)).toEqual(['a', 'a', 'a', 'b', 'c', 'd'])
      expect((await linesOf(here)).map(({ targets }) => targets)).toMatchObject(
        [3, 1, 1, 1].map((attempts) => [{ state: 'succeeded', attempts }]),
      )
    },
  )

  it('does not hold up another one', async () => {
    await using down = await receiver()
    await down.down()
    await using up = await receiver()
    await using here = await place({ host: 'none' })
    const routes = ['--forward', down.url, '--forward', up.url]
    const relay = await here.serveWith({ seams: { limits: LIMITS } }, ...routes)
    await deliver(relay, 'a', 'b', 'c')
    await up.has(3)
    expect(up.received.map(idOf)).toEqual(['a', 'b', 'c'])
    await down.up()
    await down.has(3)
    expect(down.received.map(idOf)).toEqual(['a', 'b', 'c'])
  })

  it('gets one at a time in order, or several where --concurrency says so', async () => {
    let [under, most] = [0, 0]
    await using target = await receiver(async () => {
      most = Math.max(most, ++under)
      await new Promise((resolve) => setTimeout(resolve, 20))
      under--
      return 200
    })
    await using here = await place({ host: 'none' })
    const ids = Array.from({ length: 12 }, (_, i) => `${i}`)
    const one = await here.serve('--forward', target.url)
    await deliver(one, ...ids)
    // Until each is answered: an attempt that the end cuts off would still be open at the target.
    await one.object({ type: 'attempt', n: 12 })
    expect({ order: target.received.map(idOf), most }).toEqual({ order: ids, most: 1 })
    await one.stop()
    const four = await here.serve('--forward', target.url, '--concurrency', '4')
    await deliver(four, ...ids.map((id) => `again-${id}`))
    await target.has(24)
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(4)
  })
})

describe('a delivery that comes again', () => {
  it.each([
    ['if-failed', ['a', 'b', 'b']],
    ['always', ['a', 'b', 'a', 'b']],
    ['never', ['a', 'b']],
  ] as const)('--on-duplicate %s', async (rule, received) => {
    await using target = await receiver()
    // The first attempt of b fails for good.
    target.answers(200, 404)
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--forward', target.url, '--on-duplicate', rule)
    await deliver(relay, 'a', 'b')
    await relay.object({ type: 'attempt', n: 2 })
    await deliver(relay, 'a', 'b')
    // Sent after all that the duplicates bring about.
    await deliver(relay, 'last')
    await relay.object({ type: 'attempt', n: 3 })
    expect(target.received.map(idOf)).toEqual([...received, 'last'])
  })
})

describe('a command that gets deliveries', () => {
  it('has the payload and the delivery, and none of relay’s secrets', async () => {
    await using here = await place({
      host: 'none',
      env: { RELAY_CLIENT_SECRET: 'canary-of-the-client', RELAY_CLIENT_ID: 'x' },
    })
    const relay = await here.serveWith({ env: { OTHER: 'kept' } }, '--exec', 'env; cat; exit 0', '--json')
    await deliver(relay, 'a')
    await relay.object({ type: 'attempt', n: 1 })
    const { out } = await here.run('show', '1', '--json')
    const { attempts }: { attempts: { answer: string }[] } = JSON.parse(out)
    const said = attempts[0]?.answer ?? ''
    expect(said).toContain('OTHER=kept')
    expect(said).toContain('RELAY_EVENT=push')
    expect(said).toContain('RELAY_DELIVERY=a')
    expect(said).toContain('"a"')
    expect(said).not.toMatch(/SECRET|canary|TOKEN_KEY/)
  })
})
