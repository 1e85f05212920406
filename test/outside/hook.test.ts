import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { NOW, repository, type Repository } from '../kit/code-host.js'
import { linesOf } from '../kit/journal.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { prints } from '../kit/run.js'
import { objects } from './example.js'

const ELSEWHERE = 'http://127.0.0.1:9/elsewhere'

let here: Place
let serving: Serving
let demo: Repository
let url: string
const begin = async (): Promise<void> => {
  here = await place({ signedIn: true })
  serving = await here.serve('--port', String(await closedPort()))
  url = `${serving.address}/webhook`
  demo = await repository(here.sandbox)
}
const end = (): PromiseLike<void> => here[Symbol.asyncDispose]()

const newest = async (): Promise<number> => Number((await linesOf(here)).at(-1)?.['n'] ?? 0)
/** Ends the relay, and starts it again at the same address. */
const restart = async (...flags: string[]): Promise<void> => {
  await serving.stop()
  serving = await here.serve('--port', new URL(url).port, ...flags)
}

describe('relay hook add', () => {
  beforeEach(begin)
  afterEach(end)

  it('creates the hook of the running relay, and repairs it afterwards', async () => {
    expect(await here.run('hook', 'add', 'octo/demo')).toEqual(prints(`hook of octo/demo created: ${url}\n`))
    await here.sandbox.idle()
    const [hook] = await demo.hooks()
    await demo.changeHook(hook?.id ?? 0, { url, secret: 'other', events: ['push'] })
    const again = await here.run('hook', 'add', 'octo/demo', '--events', 'push, issue_comment', '--json')
    expect(objects(again)).toEqual([
      {
        v: 1,
        type: 'hook',
        id: hook?.id,
        url,
        ours: true,
        active: true,
        contentType: 'json',
        events: ['push', 'issue_comment'],
        hasSecret: true,
        lastResponse: { code: 200, message: 'OK' },
        created: false,
        repaired: ['it had other events'],
        found: false,
      },
    ])
    await demo.comment('signed with the secret of the instance')
    expect((await linesOf(here)).map(({ event }) => event)).toEqual(['ping', 'issue_comment'])
  })

  it('needs an address, and a signed-in user', async () => {
    await serving.stop()
    const ran = await here.run('hook', 'add', 'octo/demo')
    expect([ran.code, ran.err]).toEqual([1, expect.stringContaining('give the address with --url')])
    expect((await here.run('hook', 'add', 'octo/demo', '--url', ELSEWHERE)).code).toBe(0)
    const refused = await here.run('hook', 'add', 'octo/demo', '--url', ELSEWHERE, '--user', 'eve')
    expect([refused.code, refused.err]).toEqual([4, expect.stringContaining('relay login')])
  })
})

describe('relay hook list, test and remove', () => {
  beforeEach(begin)
  afterEach(end)

  it('lists the hooks there, marks its own, and the hooks of the profile', async () => {
    expect(await here.run('hook', 'list')).toMatchObject({ code: 0, out: '' })
    expect((await here.run('hook', 'list', 'octo/demo')).err).toContain('octo/demo has no hooks')
    await here.run('hook', 'add', 'octo/demo')
    await demo.addHook({ url: ELSEWHERE, secret: 'x', events: ['push'] })
    await here.sandbox.idle()
    const { out } = await here.run('hook', 'list', 'octo/demo')
    expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['leads', 'id', 'last answer', 'settings', 'address'],
      ['here', '601', '200 OK', 'json, every event', url],
      ['', '602', '502 failed to connect to host', 'json, push', ELSEWHERE],
      [''],
    ])
    const common = { v: 1, type: 'hook', active: true, contentType: 'json', hasSecret: true }
    expect(objects(await here.run('hook', 'list', 'octo/demo', '--json'))).toEqual([
      { ...common, id: 601, url, ours: true, events: ['*'], lastResponse: { code: 200, message: 'OK' } },
      {
        ...common,
        id: 602,
        url: ELSEWHERE,
        ours: false,
        events: ['push'],
        lastResponse: { code: 502, message: 'failed to connect to host' },
      },
    ])
    expect((await here.run('hook', 'list')).out).toBe(`octo/demo  ${url}\n`)
    expect(objects(await here.run('hook', 'list', '--json'))).toEqual([
      { v: 1, type: 'hook', repo: 'octo/demo', id: 601, url, permanent: true },
    ])
  })

  it('lists a hook whose creation was interrupted, and how to finish it', async () => {
    for (const fault of [NOW, 'reset'] as const) here.sandbox.faults.next('hook', fault)
    expect((await here.run('hook', 'add', 'octo/demo')).code).toBe(8)
    expect([await demo.hooks(), (await here.run('hook', 'list')).out]).toEqual([
      [],
      `octo/demo  ${url}  perhaps not there; finish with relay hook add octo/demo\n`,
    ])
    expect(objects(await here.run('hook', 'list', '--json'))).toEqual([
      { v: 1, type: 'hook', repo: 'octo/demo', id: null, url, permanent: true },
    ])
    await here.run('hook', 'add', 'octo/demo')
    expect((await here.run('hook', 'list')).out).toBe(`octo/demo  ${url}\n`)
  })

  it('sends a ping, and finds it in the journal', async () => {
    expect(await here.run('hook', 'test', 'octo/demo')).toMatchObject({ code: 6 })
    await here.run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    const before = await newest()
    expect(await here.run('hook', 'test', 'octo/demo')).toEqual(
      prints(`ping of octo/demo arrived: #${before + 1}\n`),
    )
    expect(objects(await here.run('hook', 'test', 'octo/demo', '--json'))).toEqual([
      { v: 1, type: 'test', repo: 'octo/demo', hook: 601, n: before + 2 },
    ])
    await serving.stop()
    expect((await here.run('hook', 'test', 'octo/demo')).err).toContain('Start it with relay serve')
  })

  it('removes what leads here, and nothing else', async () => {
    await here.run('hook', 'add', 'octo/demo')
    await demo.addHook({ url: ELSEWHERE, secret: 'x', events: ['push'] })
    expect(await here.run('hook', 'remove', 'octo/demo')).toEqual(
      prints(`hook of octo/demo removed: ${url}\n`),
    )
    expect((await demo.hooks()).map((hook) => hook.url)).toEqual([ELSEWHERE])
    expect(await here.run('hook', 'remove', 'octo/demo')).toMatchObject({
      code: 6,
      err: expect.stringContaining('relay hook list octo/demo shows all'),
    })
    await here.sandbox.idle()
    expect(objects(await here.run('hook', 'remove', 'octo/demo', '--url', ELSEWHERE, '--json'))).toEqual([
      {
        v: 1,
        type: 'hook',
        id: 602,
        url: ELSEWHERE,
        ours: true,
        active: true,
        contentType: 'json',
        events: ['push'],
        hasSecret: true,
        lastResponse: { code: 502, message: 'failed to connect to host' },
      },
    ])
    expect(await demo.hooks()).toEqual([])
    expect(await here.run('hook', 'remove', 'octo/demo', '--json')).toEqual({
      code: 6,
      out: '',
      err: '{"v":1,"type":"error","code":"no_match","error":"octo/demo has no hook that leads here. relay hook list octo/demo shows all; name the address of another with --url"}\n',
    })
  })
})

describe('relay hook remove of a repository that is gone', () => {
  beforeEach(begin)
  afterEach(end)

  it('names --local, which forgets the hook and asks nothing', async () => {
    const remove = (...flags: string[]) => here.run('hook', 'remove', 'octo/demo', ...flags)
    await here.run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    const body = JSON.stringify({ message: 'Not Found' })
    here.sandbox.faults.next('hook', { kind: 'answer', status: 404, body })
    expect(await remove()).toMatchObject({
      code: 8,
      err: expect.stringContaining('relay hook remove octo/demo --local forgets its hook\n'),
    })
    expect(await remove('--local', '--url', url)).toMatchObject({ code: 2 })
    const asked = here.sandbox.requests.length
    expect(await remove('--local')).toEqual(
      prints(`hook of octo/demo forgotten here, and not removed at ${here.sandbox.url}: ${url}\n`),
    )
    expect(here.sandbox.requests.length).toBe(asked)
    expect(objects(await here.run('hook', 'list', '--json'))).toEqual([])
    expect(await remove('--local')).toMatchObject({ code: 6 })
  })
})

describe('relay catch-up', () => {
  beforeEach(begin)
  afterEach(end)

  it('gets what was sent while nothing ran, and says so', async () => {
    await here.run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    await serving.stop()
    await demo.comment('one', 'two')
    const dry = await here.run('catch-up', '--dry-run', '--json')
    const missing = {
      v: 1,
      type: 'missing',
      repo: 'octo/demo',
      id: expect.stringMatching(/^\d{19}$/),
      guid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      event: 'issue_comment',
      action: 'created',
      deliveredAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    }
    expect(objects(dry)).toEqual([missing, missing])
    expect(dry.err).toContain('would ask for 2 of octo/demo')
    expect((await here.run('catch-up', 'octo/demo')).err).toContain('Start it with relay serve')
    await restart()
    expect((await here.run('catch-up', '--since', '1s', '--dry-run')).code).toBe(0)
    expect(await here.run('catch-up')).toEqual({
      code: 0,
      out: 'caught up with octo/demo: 2 missing, 2 arrived\n',
      err: 'octo/demo: 2 missing\n',
    })
    expect(objects(await here.run('catch-up', 'octo/demo', '--json'))).toEqual([
      { v: 1, type: 'caught-up', repo: 'octo/demo', missing: 0, arrived: 0, failed: [] },
    ])
  })

  it('counts on a terminal, and takes the count away', async () => {
    await here.run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    await serving.stop()
    await demo.comment('one', 'two')
    await restart()
    const { err } = await here.runWith({ terminal: { streams: ['stderr'] } }, 'catch-up')
    const shown = ['octo/demo: 2 missing\n', '1/2', '\r\u001b[K', '2/2', '\r\u001b[K'].join('')
    expect(err.replaceAll('\r\n', '\n')).toBe(shown)
  })

  it('never gets again what retention has removed', async () => {
    await here.run('hook', 'add', 'octo/demo')
    await demo.comment('one', 'two', 'three')
    // Smaller than an empty journal: all but the newest goes at the start.
    await restart('--keep-max', '1KiB')
    await expect.poll(async () => (await linesOf(here)).map(({ n }) => n)).toEqual([4])
    expect((await here.run('catch-up', 'octo/demo')).out).toBe(
      'caught up with octo/demo: nothing was missing\n',
    )
    expect((await linesOf(here)).map(({ n }) => n)).toEqual([4])
  })
})

describe('what is refused, and changes nothing', () => {
  beforeAll(begin)
  afterAll(end)

  it.each([
    [['octo'], 2, '"octo" is not a repository. Give for example octo/demo'],
    [['octo/demo', '--url', 'http://example.com/x'], 2, '--url: must be https, unless it is on this machine'],
    [['octo/demo', '--events', 'Push!'], 2, '--events: must be names of events'],
    [['octo/nowhere'], 8, 'The sandbox refused: Not Found'],
  ])('relay hook add %j', async (argv, code, text) => {
    const ran = await here.run('hook', 'add', ...argv)
    expect([ran.code, ran.out, ran.err]).toEqual([code, '', expect.stringContaining(text)])
    expect(await demo.hooks()).toEqual([])
  })

  it('relay hook add with another secret than the instance verifies with', async () => {
    const env = { RELAY_WEBHOOK_SECRET: 'another-secret' }
    const ran = await here.runWith({ env }, 'hook', 'add', 'octo/demo')
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining('with another webhook secret')])
    expect(await demo.hooks()).toEqual([])
  })

  it('relay hook add without the secret that the instance verifies with, and makes none', async () => {
    const env = { RELAY_WEBHOOK_SECRET: undefined }
    const ran = await here.runWith({ env }, 'hook', 'add', 'octo/demo')
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining('with another webhook secret')])
    const { settings } = JSON.parse((await here.runWith({ env }, 'config', '--json')).out)
    expect(settings.webhookSecret).toMatchObject({ set: false })
  })

  it('relay catch-up without a hook ends with 6, and with 2 for a bad time', async () => {
    expect(await here.run('catch-up')).toMatchObject({
      code: 6,
      err: expect.stringContaining('relay hook add'),
    })
    expect(await here.run('catch-up', 'octo/demo')).toMatchObject({ code: 6 })
    expect(await here.run('catch-up', '--since', 'x')).toMatchObject({ code: 2 })
  })
})
