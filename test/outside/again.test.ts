import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { openInspector } from '../kit/inspector.js'
import { linesOf } from '../kit/journal.js'
import { codingAgent } from '../kit/mcp.js'
import { place } from '../kit/place.js'
import { type Received, receiver, valuesOf } from '../kit/receiver.js'
import { idsOf } from '../kit/service.js'
import { fresh } from './fixture.js'
import { SENDERS, SENDERS_ENV, STDIN } from './source-senders.js'

/** Longer than any test: what goes at once does not wait for it. */
const NEVER = { retries: [60_000, 60_000], probe: 60_000 }
const SOON = 5000

const attemptOf = (request: Received): number => Number(valuesOf(request, 'X-Relay-Attempt')[0])
const tidy = (out: string): string => out.replaceAll(/\b\d+ms\b/g, 'TIME')

describe('relay replay of an entry', () => {
  it.each(SENDERS)('has the program get it again, although its id is known: $name', async (sender) => {
    await using target = await receiver()
    await using here = await place({ host: 'none', env: SENDERS_ENV })
    await here.serve('--forward', `app=${sender.name}/*=${target.url}`)
    await here.runWith({ stdin: STDIN }, 'trigger', '--source', sender.name, ...sender.trigger)
    await target.has(1)
    const { code, out } = await here.run('replay', 'last')
    expect({ code, out: tidy(out) }).toEqual({ code: 0, out: 'ok   #1 → app  200  TIME\n' })
    const [first, second] = target.received
    expect(second?.body).toEqual(first?.body)
    expect(await linesOf(here)).toMatchObject([{ n: 1, duplicates: 0, targets: [{ attempts: 2 }] }])
  })

  const here = fresh(() => place({ host: 'none' }))
  const target = fresh(() => receiver())
  const serve = (...flags: string[]) => here.serveWith({ seams: { limits: NEVER } }, ...flags)

  it('does not wait for its next attempt, which counts anew, nor for what is before it', async () => {
    target.answers(500, 500, 500, 200)
    const relay = await serve('--forward', `app=*=${target.url}`)
    for (const id of ['a', 'b']) await relay.deliver({ id })
    await target.has(2)
    expect(tidy((await here.run('replay', '2')).out)).toMatch(/^FAIL #2 → app {2}500 {2}TIME {2}expected 2xx/)
    expect(await linesOf(here)).toMatchObject([{ n: 1 }, { n: 2, targets: [{ state: 'waiting' }] }])
    expect(tidy((await here.run('replay', '2')).out)).toBe('ok   #2 → app  200  TIME\n')
    expect(target.received.map(attemptOf)).toEqual([1, 1, 2, 3])
    expect(await relay.objects({ type: 'attempt', n: 2 }, 3)).toMatchObject([
      { state: 'waiting' },
      { state: 'waiting' },
      { state: 'succeeded' },
    ])
  })

  it.each([
    [
      503,
      '#1 → app is tried again in 60s, at most 4 times; relay skip 1 ends that',
      { state: 'waiting', nextTryAt: expect.stringMatching(/Z$/) },
    ],
    [404, '#1 → app has failed, and is not tried again by itself', { state: 'failed', nextTryAt: null }],
    [
      'reset' as const,
      '#1 → app waits until there is a connection; relay skip 1 ends that',
      { state: 'waiting', nextTryAt: null },
    ],
  ])('says what becomes of a delivery that is answered %s', async (answer, line, fields) => {
    const steady = { seams: { random: () => 0.5, limits: { retries: [60_000, 1, 1, 1], probe: 60_000 } } }
    const relay = await here.serveWith(steady, '--forward', `app=*=${target.url}`)
    await relay.deliver({ id: 'a' })
    await target.has(1)
    target.answers(answer, answer, answer)
    const { code, err } = await here.run('replay', '1')
    expect([code, err.split('\n')[0]]).toEqual([3, line])
    const { out } = await here.run('replay', '1', '--json')
    expect(JSON.parse(out)).toMatchObject({ ok: false, targetName: 'app', ...fields })
  })

  it.each([
    [[], 'an attempt takes up to 30s'],
    [['--timeout', '2m'], 'an attempt takes up to 2m'],
    [['--timeout', 'none'], 'an attempt has no time limit'],
  ])('says on a terminal how long it waits at most for an answer: %j', async (flags, words) => {
    let answer = (): void => {}
    const said = new Promise<200>((resolve) => (answer = () => resolve(200)))
    target.answers(200, () => said)
    const relay = await here.serve('--forward', `app=*=${target.url}`, ...flags)
    await relay.deliver({ id: 'a' })
    await target.has(1)
    const patient = { terminal: { streams: ['stderr'] }, seams: { limits: { slow: 100 } } } as const
    const replayed = here.startWith(patient, 'replay', '1')
    await expect.poll(() => replayed.err).toContain(`#1 is not answered yet; ${words}`)
    answer()
    const { code, out } = await replayed.ended
    expect([code, tidy(out)]).toEqual([0, 'ok   #1 → app  200  TIME\n'])
  })

  it('goes to a target that is down, and says that it is, or finds it again', async () => {
    await target.down()
    const relay = await serve('--forward', `app=*=${target.url}`)
    for (const id of ['a', 'b']) await relay.deliver({ id })
    await relay.object({ type: 'target', state: 'down' })
    const down = await here.run('replay', '2')
    expect([down.code, tidy(down.out)]).toEqual([
      3,
      'FAIL #2 → app  -  TIME  expected 2xx: connection refused\n',
    ])
    await target.up()
    const began = performance.now()
    expect((await here.run('replay', '2')).code).toBe(0)
    // It is up, so the first one goes too.
    await relay.object({ type: 'attempt', n: 1, state: 'succeeded' })
    expect(performance.now() - began).toBeLessThan(SOON)
  })

  it('runs a command next, and not beside another run of it', async () => {
    const relay = await here.serve(
      '--exec',
      `deploy=*=cd '${here.cwd}'; until [ -e "$RELAY_DELIVERY" ]; do sleep 0.05; done; mkdir lock && rmdir lock`,
    )
    for (const id of ['a', 'b', 'c']) await relay.deliver({ id })
    const replayed = here.run('replay', '3')
    await relay.object({ type: 'delivery', n: 3 })
    await expect.poll(async () => (await here.run('log', '--status', 'waiting')).out).toContain('#3')
    for (const id of ['a', 'b', 'c']) writeFileSync(path.join(here.cwd, id), '')
    expect(tidy((await replayed).out)).toMatch(/^ok {3}#3 → deploy {2}exit 0/)
    const attempts = await relay.objects({ type: 'attempt' }, 3)
    expect(attempts).toMatchObject([1, 3, 2].map((n) => ({ n, state: 'succeeded' })))
  })

  it('fails if no route takes it', async () => {
    const relay = await serve('--forward', `app=issues=${target.url}`)
    await relay.deliver({ id: 'a' })
    expect(await here.run('replay', '1')).toMatchObject({
      code: 3,
      out: expect.stringContaining('no route takes it'),
    })
  })

  it('tells of each target', async () => {
    await using other = await receiver(404)
    const relay = await serve('--forward', `app=*=${target.url}`, '--forward', `api=*=${other.url}`)
    await relay.deliver({ id: 'a' })
    await Promise.all([target.has(1), other.has(1)])
    const { code, out, err } = await here.run('replay', '1')
    expect([code, tidy(out)]).toEqual([
      3,
      'ok   #1 → app  200  TIME\nFAIL #1 → api  404  TIME  expected 2xx\n',
    ])
    expect(err).toContain('1 of 2 answers were not as expected')
    const failed = await here.run('replay', '--failed', '--json')
    expect(failed.out.split('\n').filter(Boolean)).toHaveLength(1)
    expect(JSON.parse(failed.out)).toMatchObject({ ok: false, n: 1, targetName: 'api', status: 404 })
  })
})

describe('relay trigger', () => {
  it('goes to a target that counts as down at once', async () => {
    await using here = await place({ host: 'none' })
    await using target = await receiver()
    await target.down()
    const relay = await here.serveWith({ seams: { limits: NEVER } }, '--forward', target.url)
    await relay.deliver({ id: 'a' })
    await relay.object({ type: 'target', state: 'down' })
    await target.up()
    await here.run('trigger', 'push')
    await relay.objects({ type: 'attempt', state: 'succeeded' }, 2)
    expect(target.received).toHaveLength(2)
  })
})

describe('relay skip', () => {
  const here = fresh(() => place({ host: 'none' }))
  const target = fresh(() => receiver(500))
  const relay = fresh(() =>
    here.serveWith({ seams: { limits: { retries: [200, 60_000] } } }, '--forward', `app=*=${target.url}`),
  )
  const waiting = async (): Promise<void> => {
    await relay.deliver({ id: 'a' })
    await relay.object({ type: 'attempt', n: 1 })
  }

  it('ends what waits, once', async () => {
    await waiting()
    expect(await here.run('skip', '1')).toMatchObject({ code: 0, out: 'skipped #1 → app\n' })
    const failed = { state: 'failed', reason: 'skipped' }
    expect(await linesOf(here)).toMatchObject([{ n: 1, targets: [failed] }])
    expect(await here.run('skip', '1')).toMatchObject({ code: 6, err: 'error: Nothing of #1 waits\n' })
    const sent = idsOf(target)
    // Its time has come, and it was not sent.
    await relay.deliver({ id: 'b' })
    await relay.objects({ type: 'attempt', n: 2 }, 2)
    expect(idsOf(target)).toEqual([...sent, 'b', 'b'])
  })

  it('has a line in relay serve, however it was done', async () => {
    await waiting()
    await here.run('skip', '1')
    expect(await relay.object({ type: 'skipped' })).toMatchObject({ n: 1, target: target.url, name: 'app' })
    await relay.says(/#1 {2}→ app ✗ skipped$/m)
    await relay.deliver({ id: 'b' })
    await relay.object({ type: 'attempt', n: 2 })
    const inspector = await openInspector(here, relay)
    await inspector.send('deliveries/2/skip', {})
    await relay.says(/#2 {2}→ app ✗ skipped$/m)
  })

  it('works while no relay runs', async () => {
    await waiting()
    await relay.stop()
    expect(await here.run('skip', 'last', '--json')).toMatchObject({
      code: 0,
      out: `{"v":1,"type":"skipped","n":1,"target":"${target.url}","name":"app"}\n`,
    })
    expect((await here.run('log', '--status', 'waiting')).out).toBe('')
  })

  it('ends what is being sent, too, whose attempt is the last one', async () => {
    let answer = (): void => {}
    const held = new Promise<void>((resolve) => (answer = resolve))
    target.answers(() => held.then(() => 500))
    await relay.deliver({ id: 'a' })
    await target.has(1)
    expect(await here.run('skip', '1')).toMatchObject({ code: 0, out: 'skipped #1 → app\n' })
    answer()
    expect(await relay.object({ type: 'attempt', n: 1 })).toMatchObject({ status: 500, state: 'failed' })
    await relay.says(/#1 {2}→ app ✗ 500/m)
    expect(relay.err).not.toContain('again in')
  })

  it('is a button of the inspector, too', async () => {
    await waiting()
    const inspector = await openInspector(here, relay)
    const skip = async () => {
      const response = await inspector.send('deliveries/1/skip', {})
      return [response.status, await response.json()]
    }
    expect(await skip()).toEqual([200, { n: 1 }])
    expect(await skip()).toEqual([409, { error: 'Nothing of #1 waits' }])
  })
})

describe('a delivery that waits', () => {
  const here = fresh(() => place({ host: 'none' }))
  const target = fresh(() => receiver())
  const limits = { ...NEVER, slow: 100 }
  /** Why the deliveries wait, oldest first, as log, show and routes say. */
  const reasons = async (): Promise<unknown[]> =>
    (await linesOf(here)).map(({ targets }) => Object(targets)[0].waitsFor)

  it('says why: tried again, behind another one in strict order, down, no relay', async () => {
    here.configure({ routes: [{ name: 'app', forward: target.url, ordered: true }] })
    target.answers(500)
    const relay = await here.serveWith({ seams: { limits } })
    await relay.deliver({ id: 'a' })
    await relay.object({ type: 'attempt', n: 1 })
    await relay.deliver({ id: 'b' })
    await relay.says(/#2 {2}push .*waits behind #1, tried again in \d+s/)
    expect(await reasons()).toEqual([
      expect.stringMatching(/^tried again in \d+s$/),
      expect.stringMatching(/^behind #1, tried again in \d+s$/),
    ])
    expect((await here.run('show', '2')).out).toMatch(/app {2}◦ waiting: behind #1, tried again in \d+s/)
    expect((await here.run('log')).out.split('\n').filter(Boolean)).toEqual([
      expect.stringMatching(/→ \S+ 500 \d+ms waiting, tried again in \d+s$/),
      expect.stringMatching(/→ \S+ waiting, behind #1, tried again in \d+s$/),
    ])
    const marks = { name: 'app', status: 'waiting' }
    const inspector = await openInspector(here, relay)
    expect(await inspector.json('deliveries')).toMatchObject({
      deliveries: [
        {
          targets: [
            { ...marks, waitsFor: { text: 'behind #1, tried again', nextTryAt: expect.any(Number) } },
          ],
        },
        { targets: [{ ...marks, waitsFor: { text: 'tried again', nextTryAt: expect.any(Number) } }] },
      ],
    })
    expect(await inspector.json('deliveries/2')).toMatchObject({
      targets: [{ ...marks, waitsFor: { text: 'behind #1, tried again' } }],
    })
    expect((await here.run('routes')).out).toMatch(/up, behind #1, tried again in \d+s/)
    await relay.stop()
    expect(await reasons()).toEqual(['no relay runs', 'no relay runs'])
  })

  it.each([
    ['an address', (url: string) => ['--forward', `app=*=${url}`], 'app: #1 is not answered yet'],
    ['a command', () => ['--exec', 'app=*=sleep 2'], 'app: #1 still runs'],
    [
      'an address, by a person',
      (url: string) => ['--forward', `app=*=${url}`],
      'app: #1 is not answered yet',
    ],
  ])('is said to be slow, once, although nothing is behind it: %s', async (what, flags, line) => {
    let answer = (): void => {}
    const answered = new Promise<200>((resolve) => (answer = () => resolve(200)))
    await using slow = await receiver(() => answered)
    const relay = await here.serveWith({ seams: { limits } }, ...flags(slow.url))
    if (what.includes('person')) await here.run('trigger', 'push')
    else await relay.deliver({ id: 'a' })
    await relay.says(line)
    expect(await relay.object({ type: 'target' })).toMatchObject({ state: 'up', queued: 1, slow: [1] })
    answer()
    await relay.object({ type: 'attempt', n: 1, state: 'succeeded' })
    expect(relay.err.split(line)).toHaveLength(2)
  })

  it('says once that it waits, when that begins later', async () => {
    const go = path.join(here.cwd, 'go')
    const relay = await here.serveWith(
      { seams: { limits } },
      '--exec',
      `deploy=*=until [ -e '${go}' ]; do sleep 0.05; done`,
    )
    for (const id of ['a', 'b', 'c']) await relay.deliver({ id })
    await relay.says(/deploy: \d deliver(?:y|ies) waits? behind #1$/m)
    await relay.deliver({ id: 'd' })
    await relay.says(/#4 {2}push .*waits behind #1$/m)
    expect(await relay.object({ type: 'target' })).toMatchObject({ state: 'up', waitsFor: 'behind #1' })
    writeFileSync(go, '')
    await relay.object({ type: 'attempt', n: 4 })
    // Of the others, one that takes long has a line of its own.
    expect(relay.err.match(/deploy: .* waits? behind #1/g)).toHaveLength(1)
  })

  it('tells an agent why, too', async () => {
    await target.down()
    const relay = await here.serveWith({ seams: { limits } }, '--forward', target.url)
    await relay.deliver({ id: 'a' })
    await relay.object({ type: 'target', state: 'down' })
    await using agent = await codingAgent(here)
    const waiting = { fromOutside: { waitsFor: 'down: connection refused' } }
    expect(await agent.call('list_deliveries')).toMatchObject({ deliveries: [waiting] })
    expect(await agent.call('show_delivery', { entry: 1 })).toMatchObject({
      delivery: { targets: [waiting] },
    })
    expect(await agent.call('show_routes')).toMatchObject({ routes: [waiting] })
  })

  it('says that its target is down', async () => {
    await target.down()
    const relay = await here.serveWith({ seams: { limits } }, '--forward', target.url)
    await relay.deliver({ id: 'a' })
    await relay.object({ type: 'target', state: 'down' })
    expect(await reasons()).toEqual(['down: connection refused'])
    const routes = JSON.parse((await here.run('routes', '--json')).out)
    expect(routes).toMatchObject({ state: 'down', waitsFor: 'down: connection refused' })
    expect((await here.run('routes')).out).toMatch(/ down: connection refused, next try [\d:]+ +http/)
  })
})
