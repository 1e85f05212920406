import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { DeliveryOptions } from '../kit/delivery.js'
import { linesOf } from '../kit/journal.js'
import { place, type Serving } from '../kit/place.js'
import { type Received, receiver, valuesOf } from '../kit/receiver.js'
import { fresh } from './fixture.js'

/** A minute of retries, and a probe each second, in a fraction of that; a busy machine may answer late. */
const LIMITS = { retries: [10, 10, 10, 10], probe: 20, http: 20_000 }

const idOf = (request: Received): string => valuesOf(request, 'X-GitHub-Delivery')[0] ?? ''

const attemptOf = (request: Received): number => Number(valuesOf(request, 'X-Relay-Attempt')[0])

/** Delivers pushes with these ids, or one of another event. */
async function deliver(relay: Serving, ...ids: readonly (string | DeliveryOptions)[]): Promise<void> {
  for (const id of ids) {
    const delivery = typeof id === 'string' ? { id, body: `"${id}"` } : id
    expect(await relay.deliver(delivery)).toMatchObject({ status: 200 })
  }
}

const here = fresh(() => place({ host: 'none' }))
const serve = (...targets: string[]): Promise<Serving> =>
  here.serveWith({ seams: { limits: LIMITS } }, ...targets.flatMap((url) => ['--forward', url]))

describe('what a target answers', () => {
  it.each([200, 204, 299])('%i: the delivery has succeeded', async (status) => {
    await using target = await receiver(status)
    const relay = await serve(target.url)
    await deliver(relay, 'a', 'b')
    expect(await relay.object({ type: 'attempt', n: 2 })).toMatchObject({ outcome: 'succeeded', status })
    expect(target.received.map(idOf)).toEqual(['a', 'b'])
  })

  it.each([301, 304, 400, 404, 410])('%i: it has failed, and is not sent again', async (status) => {
    await using target = await receiver((request) => (idOf(request) === 'a' ? status : 200))
    const relay = await serve(target.url)
    await deliver(relay, 'a', 'b')
    await relay.object({ type: 'attempt', n: 2 })
    const failed = { outcome: 'refused', status, state: 'failed', reason: `answered ${status}` }
    expect(await relay.object({ type: 'attempt', n: 1 })).toMatchObject(failed)
    expect(target.received.map(idOf)).toEqual(['a', 'b'])
  })

  it.each([408, 425, 429, 500, 502, 503, 504])(
    '%i: it is sent again at its own time, and those behind it go on',
    async (status) => {
      await using target = await receiver((request) =>
        idOf(request) === 'a' && attemptOf(request) < 3 ? status : 200,
      )
      const relay = await here.serveWith(
        { seams: { limits: { ...LIMITS, retries: [300, 300] } } },
        '--forward',
        target.url,
      )
      await deliver(relay, 'a', 'b')
      await target.has(4)
      expect(await relay.objects({ type: 'attempt', n: 1 }, 3)).toMatchObject([
        { outcome: 'retry', status, state: 'waiting' },
        { outcome: 'retry', status, state: 'waiting' },
        { outcome: 'succeeded', status: 200, state: 'succeeded' },
      ])
      expect(target.received.map((request) => [idOf(request), attemptOf(request)])).toEqual([
        ['a', 1],
        ['b', 1],
        ['a', 2],
        ['a', 3],
      ])
    },
  )

  it('503 five times: it has failed, and the next one was sent at once', async () => {
    await using target = await receiver((request) => (idOf(request) === 'a' ? 503 : 200))
    const relay = await here.serveWith(
      { seams: { limits: { ...LIMITS, retries: [300, 10, 10, 10] } } },
      '--forward',
      target.url,
    )
    await deliver(relay, 'a', 'b')
    expect((await relay.objects({ type: 'attempt', n: 1 }, 5)).at(-1)).toMatchObject({
      state: 'failed',
      reason: 'answered 503, 5 times',
    })
    expect(target.received.map(idOf)).toEqual(['a', 'b', 'a', 'a', 'a', 'a'])
  })

  it('Retry-After: it waits as long as it was asked to', async () => {
    await using target = await receiver()
    target.answers({ status: 503, headers: { 'Retry-After': '1' } })
    const relay = await serve(target.url)
    await deliver(relay, 'a')
    await target.has(2)
    const [first, second] = target.received
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(900)
  })
})

describe('a target that cannot be reached', () => {
  it('reset: it is down until it answers, and then gets all in order', async () => {
    await using target = await receiver()
    target.answers('reset', 'reset')
    const relay = await serve(target.url)
    await deliver(relay, 'a', 'b', 'c', 'd')
    expect(await relay.object({ type: 'target', state: 'down' })).toMatchObject({ target: target.url })
    await relay.object({ type: 'attempt', n: 4, state: 'succeeded' })
    expect(target.received.map(idOf)).toEqual(['a', 'a', 'a', 'b', 'c', 'd'])
    expect((await linesOf(here)).map(({ targets }) => targets)).toMatchObject(
      [3, 1, 1, 1].map((attempts) => [{ state: 'succeeded', attempts }]),
    )
  })

  it('reset of a connection that was used before: the next attempt has its own number, at once', async () => {
    await using target = await receiver()
    target.answers(200, 'reset')
    const relay = await serve(target.url)
    await deliver(relay, 'a', 'b', 'c')
    await relay.object({ type: 'attempt', n: 3, state: 'succeeded' })
    expect(target.received.map((request) => [idOf(request), attemptOf(request)])).toEqual([
      ['a', 1],
      ['b', 1],
      ['b', 2],
      ['c', 1],
    ])
    expect(await relay.objects({ type: 'attempt', n: 2 }, 2)).toMatchObject([
      {
        outcome: 'unreachable',
        error: 'connection closed before an answer, sent again at once',
        state: 'waiting',
      },
      { outcome: 'succeeded', status: 200 },
    ])
    expect((await relay.stop()).out).not.toContain('"state":"down"')
  })

  it.each(['hang', 'reset'] as const)(
    '%s for one delivery: that one fails, and the others do not wait for it',
    async (how) => {
      await using target = await receiver((request) => (idOf(request) === 'a' ? how : 200))
      const limits = { ...LIMITS, http: 300, slow: 100 }
      const relay = await here.serveWith({ seams: { limits } }, '--forward', target.url)
      await deliver(relay, 'a', 'b', 'c', 'd')
      await relay.object({ type: 'attempt', n: 1, state: 'failed' })
      await relay.object({ type: 'attempt', n: 4, state: 'succeeded' })
      const others = target.received.map(idOf).filter((id) => id !== 'a')
      expect(others).toEqual(['b', 'c', 'd'])
      const reason = how === 'hang' ? 'no answer within 0.3 s' : 'connection closed before an answer'
      const [first] = await linesOf(here)
      expect(first).toMatchObject({ n: 1, targets: [{ state: 'failed', reason: `${reason}, 5 times` }] })
    },
  )

  it('does not hold up another one', async () => {
    await using down = await receiver()
    await down.down()
    await using up = await receiver()
    const relay = await serve(down.url, up.url)
    await deliver(relay, 'a', 'b', 'c')
    await up.has(3)
    expect(up.received.map(idOf)).toEqual(['a', 'b', 'c'])
    await down.up()
    await down.has(3)
    expect(down.received.map(idOf)).toEqual(['a', 'b', 'c'])
  })

  it('gets one at a time in order, or several where --concurrency says so', async () => {
    let [under, most, wanted] = [0, 0, 1]
    const held: (() => void)[] = []
    await using target = await receiver(async () => {
      most = Math.max(most, ++under)
      // Not before so many are there, whenever they come, and long enough for one more.
      const all = new Promise<void>((resolve) => held.push(resolve))
      if (held.length >= wanted) for (const release of held.splice(0)) release()
      await all
      await new Promise((resolve) => setTimeout(resolve, 20))
      under--
      return 200
    })
    const ids = Array.from({ length: 12 }, (_, i) => `${i}`)
    const one = await here.serve('--forward', target.url)
    await deliver(one, ...ids)
    // Until each is answered: an attempt that the end cuts off would still be open at the target.
    await one.object({ type: 'attempt', n: 12 })
    expect({ order: target.received.map(idOf), most }).toEqual({ order: ids, most: 1 })
    await one.stop()
    wanted = 4
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

describe('relay serve with targets', () => {
  it('hands each delivery on to those it is for, and shows each attempt', async () => {
    await using target = await receiver(202)
    const file = path.join(here.cwd, 'out')
    const routes = ['--forward', `push=${target.url}/hooks`, '--exec', 'issues.opened=cat > "$OUT"; exit 4']
    const relay = await here.serveWith({ env: { OUT: file } }, ...routes, '--ignore', 'check_run')
    await deliver(relay, { id: 'a', body: '{"repository":{"full_name":"octo/demo"}}' })
    await deliver(relay, { event: 'issues', id: 'b', body: '{"action":"opened"}' })
    await deliver(relay, { event: 'check_run', id: 'c' })
    const succeeded = { outcome: 'succeeded', status: 202, state: 'succeeded' }
    const attempt = await relay.object({ type: 'attempt', n: 1 })
    expect(attempt).toMatchObject({ target: `push=${target.url}/hooks`, ...succeeded })
    const failed = { outcome: 'refused', status: 4, state: 'failed' }
    expect(await relay.object({ type: 'attempt', n: 2 })).toMatchObject(failed)
    expect(await relay.object({ type: 'delivery', n: 3 })).toMatchObject({ event: 'check_run' })
    expect(readFileSync(file, 'utf8')).toBe('{"action":"opened"}')
    expect(target.received.map((request) => request.path)).toEqual(['/hooks'])
    const { code, err } = await relay.stop()
    expect(code).toBe(0)
    expect(err).toMatch(/ {2}#1 {2}push {2}octo\/demo\n/)
    expect(err).toMatch(/ {2}#1 {2}→ 127\.0\.0\.1:\d+ ✓ 202 \d+ms\n/)
    expect(err).toMatch(/ {2}#2 {2}issues\.opened\n/)
    expect(err).toMatch(/ {2}#2 {2}→ cat ✗ exit 4 \d+ms\n/)
    expect(err).toMatch(/ {2}#3 {2}check_run {2}ignored by check_run\n/)
  })

  it('continues after a crash with what a target that was down has not had', async () => {
    await using target = await receiver()
    await target.down()
    const first = await here.serveWith({ built: true }, '--forward', target.url)
    await deliver(first, 'a', 'b', 'c')
    expect(await first.object({ type: 'target', state: 'down' })).toMatchObject({ target: target.url })
    await first.stop('SIGKILL')

    const other = await here.serve('--exec', 'push=exit 0')
    await other.says(`is no longer configured (${target.url}): 3 waiting, 24 h at most`)
    await other.stop()

    await target.up()
    const last = await here.serve('--forward', target.url)
    await last.object({ type: 'attempt', n: 3 })
    expect(target.received.map(idOf)).toEqual(['a', 'b', 'c'])
  })

  it('reads the routes again when a settings file changes, and at SIGHUP', async () => {
    await using target = await receiver()
    const relay = await here.serve()
    const file = path.join(here.cwd, 'relay.json')
    await deliver(relay, 'a')
    expect(await relay.object({ type: 'delivery', n: 1 })).toMatchObject({ n: 1 })

    writeFileSync(file, JSON.stringify({ forward: [`push=${target.url}`, `pul_request=${target.url}`] }))
    await relay.says('Reloaded the settings: 2')
    await relay.says('relay.json: github sends no event pul_request (did you mean pull_request?)')
    await deliver(relay, 'b')
    expect(await relay.object({ type: 'attempt', n: 2 })).toMatchObject({ status: 200 })

    writeFileSync(file, '{ "forward": "nowhere" }')
    await relay.says('warning: the routes are unchanged: ')
    await deliver(relay, 'c')
    expect(await relay.object({ type: 'attempt', n: 3 })).toMatchObject({ status: 200 })

    writeFileSync(file, '{ "exec": ["push=exit 9"] }')
    await relay.says('relay.json runs a command for deliveries: push=exit 9')
    relay.kill('SIGHUP')
    await deliver(relay, 'd')
    expect(await relay.object({ type: 'attempt', n: 4 })).toMatchObject({ status: 9 })
    expect((await relay.stop()).code).toBe(0)
  })
})
