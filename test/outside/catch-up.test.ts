import { beforeEach, describe, expect, it } from 'vitest'
import { limited, repository } from '../kit/code-host.js'
import { SECRET, sign } from '../kit/delivery.js'
import { commentsOf, entriesOf, linesOf } from '../kit/journal.js'
import { place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { fails, prints } from '../kit/run.js'
import { smee } from '../kit/smee.js'
import { objects } from './example.js'
import { fresh, json } from './fixture.js'

const here = fresh(() => place({ signedIn: true }))
const demo = fresh(() => repository(here.sandbox))
const target = fresh(() => receiver())

const texts = (count: number): string[] => Array.from({ length: count }, (_, n) => `comment ${n}`)
const IS_CAUGHT_UP = { type: 'hook', state: 'caught up' }
const NOTHING = 'caught up with octo/demo: nothing was missing\n'

describe('relay catch-up', () => {
  let serving: Serving
  beforeEach(async () => {
    serving = await here.serve('--port', String(await closedPort()))
    await here.run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
  })

  const catchUp = (...flags: string[]) => here.run('catch-up', ...flags)
  /** Ends the relay, has comments sent, and starts it again at the same address. */
  const miss = async (texts: readonly string[], env = {}, ...flags: string[]): Promise<void> => {
    const { port } = new URL(serving.address)
    await serving.stop()
    await demo.comment(...texts)
    serving = await here.serveWith({ env }, '--port', port, ...flags)
  }
  const refusal = (message: string, headers: Record<string, string> = {}) =>
    ({ kind: 'answer', status: 403, headers, body: JSON.stringify({ message }) }) as const
  /** A delivery that a program is told of. */
  const one = {
    id: expect.stringMatching(/^\d{19}$/),
    guid: expect.stringMatching(/^[0-9a-f-]{36}$/),
    event: 'issue_comment',
    action: 'created',
    deliveredAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  }

  it('gets what was sent while nothing ran, and says so', async () => {
    const { port } = new URL(serving.address)
    await serving.stop()
    await demo.comment('one', 'two')
    const dry = await catchUp('--dry-run', '--json')
    const missing = { v: 1, type: 'missing', repo: 'octo/demo', ...one }
    expect(objects(dry)).toEqual([missing, missing])
    expect(dry.err).toContain('would ask for 2 of octo/demo')
    expect((await catchUp('octo/demo')).err).toContain('Start it with relay serve')
    await here.serve('--port', port)
    expect((await catchUp('--since', '1s', '--dry-run')).code).toBe(0)
    const out = 'caught up with octo/demo: 2 missing, 2 arrived\n'
    expect(await catchUp()).toEqual({ code: 0, out, err: 'octo/demo: 2 missing\n' })
    const none = { v: 1, type: 'caught-up', repo: 'octo/demo', missing: 0, arrived: 0, failed: [] }
    expect(await json(catchUp('octo/demo', '--json'))).toEqual(none)
  })

  it('counts on a terminal, and takes the count away', async () => {
    await miss(['one', 'two'])
    const { err } = await here.runWith({ terminal: { streams: ['stderr'] } }, 'catch-up')
    const shown = ['octo/demo: 2 missing\n', '1/2', '\r\u001b[K', '2/2', '\r\u001b[K'].join('')
    expect(err.replaceAll('\r\n', '\n')).toBe(shown)
  })

  it('never gets again what retention has removed', async () => {
    await demo.comment('one', 'two', 'three')
    // Smaller than an empty journal: all but the newest goes at the start.
    await miss([], {}, '--keep-max', '1KiB')
    await expect.poll(async () => (await linesOf(here)).map(({ n }) => n)).toEqual([4])
    expect((await catchUp('octo/demo')).out).toBe(NOTHING)
    expect((await linesOf(here)).map(({ n }) => n)).toEqual([4])
  })

  it('waits where the code host limits or fails, and gets everything', async () => {
    await miss(['one', 'two'])
    here.sandbox.faults.next('hook', '502')
    for (const operation of ['deliveries', 'redeliver'] as const)
      here.sandbox.faults.next(operation, limited(0))
    const { code, out, err } = await catchUp()
    expect([code, out]).toEqual([0, 'caught up with octo/demo: 2 missing, 2 arrived\n'])
    expect(err.match(/Continues in \d+ s: The sandbox\s(refused|failed)/g)).toHaveLength(3)
    expect(await commentsOf(here)).toEqual(['one', 'two'])
  })

  it('does not wait for a limit of a day, and says when', async () => {
    here.sandbox.faults.always('deliveries', refusal('secondary rate limit', { 'Retry-After': '86400' }))
    const why = 'The sandbox refused: secondary rate limit. Try again in 86400 s'
    expect(await catchUp()).toEqual(fails(8, why))
  })

  it('reads the other logs when one cannot be read, and then says why', async () => {
    await here.run('hook', 'add', 'octo/no-issues')
    await here.sandbox.idle()
    const [hook] = await demo.hooks()
    await demo.removeHook(hook?.id ?? 0)
    const gone = 'octo/demo has no hook that leads here. Create it with relay hook add octo/demo'
    const error = `Could not catch up with octo/demo: ${gone}`
    const out = 'caught up with octo/no-issues: nothing was missing\n'
    expect(await catchUp()).toEqual({ ...fails(6, error), out })
    const ran = await catchUp('--dry-run', '--json')
    const failed = JSON.stringify({ v: 1, type: 'error', code: 'no_match', error })
    expect(ran).toEqual({ code: 6, out: '', err: `would ask for 0 of octo/no-issues\n${failed}\n` })
  })

  it('names what fails again, with the reason, and gets the rest', async () => {
    const env = { RELAY_WEBHOOK_SECRET: 'another-secret' }
    await miss(['one', 'two'], env)
    const ran = await here.runWith({ env }, 'catch-up', '--json')
    const twice = { ...one, why: 'the redelivery failed too: Invalid HTTP Response: 401 (401)' }
    const failed = { missing: 2, arrived: 0, failed: [twice, twice] }
    const error = '2 could not be had. relay doctor checks the hook; relay catch-up asks again'
    expect([ran.code, ...objects(ran), ran.err]).toEqual([
      8,
      { v: 1, type: 'caught-up', repo: 'octo/demo', ...failed },
      `octo/demo: 2 missing\n${JSON.stringify({ v: 1, type: 'error', code: 'provider_failed', error })}\n`,
    ])
    await miss([])
    here.sandbox.faults.next('redeliver', refusal('Must have admin rights to Repository.'))
    const rest = await catchUp()
    expect([rest.code, rest.out]).toEqual([
      8,
      expect.stringMatching(
        /^caught up with octo\/demo: 2 missing, 1 arrived, 1 could not be had \(issue_comment\.created of .*: The sandbox refused: Must have admin rights to Repository\.\)\n$/,
      ),
    ])
    expect(await commentsOf(here)).toEqual(['two'])
  })

  it('ends with 6 without a hook, and with 2 for a bad time', async () => {
    await here.run('hook', 'remove', 'octo/demo')
    const none = { code: 6, err: expect.stringContaining('relay hook add') }
    for (const argv of [[], ['octo/demo']]) expect(await catchUp(...argv)).toMatchObject(none)
    expect(await catchUp('--since', 'x')).toMatchObject({ code: 2 })
  })

  it('waits for relay serve, which catches up with the same hook, and finds nothing missing', async () => {
    here.sandbox.faults.always('redeliver', limited(1))
    await miss(texts(5), {}, '--hook', 'octo/demo', '--catch-up')
    await serving.object({ type: 'hook', state: 'missing' })
    const second = here.start('catch-up', 'octo/demo')
    await second.says(`Process ${serving.pid} is catching up with octo/demo already.`)
    here.sandbox.faults.clear()
    expect(await serving.object(IS_CAUGHT_UP)).toMatchObject({ arrived: 5 })
    expect(await second.ended).toMatchObject({ code: 0, out: NOTHING })
    const [hook] = await demo.hooks()
    expect(await demo.redelivered(hook?.id ?? 0)).toBe(5)
  })
})

describe('a log entry that is older than three days', () => {
  it('is left out, unless --since asks for it', async () => {
    const FOUR_DAYS_MS = 4 * 86_400_000
    await using past = await place({ signedIn: true, sandbox: { clock: () => Date.now() - FOUR_DAYS_MS } })
    const relay = await past.serve()
    const there = await repository(past.sandbox)
    await past.run('hook', 'add', 'octo/demo')
    await past.sandbox.idle()
    const [hook] = await there.hooks()
    const url = `${relay.address}/webhook`
    await there.changeHook(hook?.id ?? 0, { url, secret: 'other' })
    await there.comment('old')
    expect(await past.run('catch-up')).toEqual(prints(NOTHING))
    await there.changeHook(hook?.id ?? 0, { url, secret: SECRET })
    const { out } = await past.run('catch-up', '--since', '5d')
    expect(out).toBe('caught up with octo/demo: 1 missing, 1 arrived\n')
  })
})

describe('relay serve --hook --catch-up', () => {
  let flags: readonly string[]
  beforeEach(() => {
    flags = ['--hook', 'octo/demo', '--catch-up', '--forward', target.url]
  })

  /** The comments among what the target received, in order. */
  const received = (): Buffer[] =>
    target.received
      .map(({ body }) => body)
      .filter((body) => JSON.parse(body.toString()).comment !== undefined)
  const textsOf = (bodies: readonly Buffer[]): string[] =>
    bodies.map((body) => JSON.parse(body.toString()).comment.body)
  /** Waits until the target has so many comments, whatever else it has. */
  const hasComments = async (count: number): Promise<void> => {
    while (received().length < count) await target.has(target.received.length + 1)
  }

  /** GitHub's limit for all of an hour, which ends in a second. */
  const primary = () => {
    const body = JSON.stringify({ message: 'You have exceeded a primary rate limit.' })
    const resetAt = String(Math.ceil(Date.now() / 1000) + 1)
    const headers = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': resetAt }
    return { kind: 'answer', status: 403, headers, body } as const
  }
  /** How often pages of a delivery log were asked for. */
  const pagesAsked = (): number =>
    here.sandbox.requests.filter(({ method, path }) => method === 'GET' && path.endsWith('/deliveries'))
      .length

  const HAD = 5
  const SENT = 40
  /** Pages of 100 entries: the pings after them, which are not caught up with, are a page of their own. */
  const PINGS = 100
  const PAGES = 2

  it('gets what was sent while it was away, page by page, with limits and failures in the way', async () => {
    const before = await here.serve(...flags)
    await before.object(IS_CAUGHT_UP)
    await demo.comment(...texts(HAD))
    await before.objects({ type: 'attempt', outcome: 'succeeded' }, HAD + 1)
    await before.stop()
    await demo.comment(...texts(SENT).slice(HAD))
    await demo.ping(PINGS)
    const asked = pagesAsked()
    const { faults } = here.sandbox
    faults.next('deliveries', limited(1))
    faults.next('redeliver', limited(1))
    faults.next('redeliver', '502')
    const serving = await here.serve(...flags)
    expect(await serving.object({ type: 'hook', state: 'ready' })).toMatchObject({
      created: false,
      repaired: [expect.stringContaining('it led to http://127.0.0.1:')],
    })
    expect(await serving.object({ type: 'hook', state: 'missing' })).toMatchObject({ missing: SENT - HAD })
    // The first was refused by the rate limit.
    expect(pagesAsked() - asked).toBeGreaterThan(PAGES)
    await serving.objects({ type: 'delivery', event: 'issue_comment' }, 20)
    faults.next('redeliver', primary())
    const all = { missing: SENT - HAD, arrived: SENT - HAD, failed: [] }
    expect(await serving.object(IS_CAUGHT_UP)).toMatchObject(all)
    await hasComments(SENT)
    expect((await demo.hooks()).map(({ url }) => url)).toEqual([`${serving.address}/webhook`])
    const { err } = await serving.stop()
    for (const kind of ['primary', 'secondary'])
      expect(err).toContain(`You have exceeded a ${kind} rate limit`)
    expect(err).toContain('the hook of octo/demo stays')
    expect(await demo.hooks()).toHaveLength(1)
    // Each once, in order, with the signed bytes; and the same at the target.
    const entries = (await entriesOf(here)).filter(({ event }) => event === 'issue_comment')
    const signatures = entries.flatMap((entry) => valuesOf(entry, 'X-Hub-Signature-256'))
    expect(textsOf(entries.map(({ body }) => body))).toEqual(texts(SENT))
    expect(signatures).toEqual(entries.map(({ body }) => sign(SECRET, body)))
    expect(received().map((body) => sign(SECRET, body))).toEqual(signatures)
  })

  it('is tried again after the code host has failed longer than one try waits', async () => {
    const port = String(await closedPort())
    await here.run('hook', 'add', 'octo/demo', '--url', `http://127.0.0.1:${port}/webhook`)
    await demo.comment('missed')
    here.sandbox.faults.always('deliveries', '502')
    const serving = await here.serve('--port', port, ...flags)
    const failed = await serving.object({ type: 'hook', state: 'not caught up' })
    expect(failed).toMatchObject({
      retries: true,
      error: expect.stringContaining('The sandbox failed (502)'),
    })
    here.sandbox.faults.clear()
    expect(await serving.object(IS_CAUGHT_UP)).toMatchObject({ missing: 1, arrived: 1, failed: [] })
  })

  it('gets what a tunnel took while relay was away, and tests the hook', async () => {
    await using tunnel = await smee()
    const through = ['--tunnel', tunnel.channel, ...flags]
    const before = await here.serve(...through)
    expect(await before.object({ type: 'hook', state: 'ready' })).toMatchObject({ url: tunnel.channel })
    await before.object(IS_CAUGHT_UP)
    const { out } = await here.run('hook', 'test', 'octo/demo')
    expect(out).toMatch(/^ping of octo\/demo arrived: #\d+\n$/)
    await before.stop()
    await demo.comment(...texts(3))
    const serving = await here.serve(...through)
    expect(await serving.object(IS_CAUGHT_UP)).toMatchObject({ missing: 3, arrived: 3 })
    await hasComments(3)
    expect(textsOf(received())).toEqual(texts(3))
    expect(await here.run('hook', 'remove', 'octo/demo')).toMatchObject({ code: 0 })
    const added = await here.run('hook', 'add', 'octo/demo')
    expect(added).toEqual(prints(`hook of octo/demo created: ${tunnel.channel}\n`))
    // The relay that listens there ends before its tunnel.
    await serving.stop()
  })
})
