import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import { createProvider } from '../../../src/providers/open.js'
import type { Provider } from '../../../src/providers/provider.js'
import type { Serving } from '../../../src/serve/serve.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { type Alone, serveFor, shell, startAlone } from '../rig.js'

const REPO = { owner: 'octo', repo: 'demo' }
const ELSEWHERE = 'http://127.0.0.1:9/elsewhere'

let alone: Alone
let serving: Serving
let provider: Provider
let token: string
let url: string
beforeEach(async () => {
  alone = await startAlone()
  serving = await serveFor(testContext({ env: { ...alone.shell.env, RELAY_PORT: '0' } }).context)
  url = `${serving.url}/webhook`
  provider = createProvider({ name: 'sandbox', url: alone.sandbox.url })
  token = alone.grant.access_token
})
afterEach(async () => {
  await serving[Symbol.asyncDispose]()
  await alone[Symbol.asyncDispose]()
})

const run = (...argv: string[]) => alone.shell.run(argv)
const objects = ({ out }: { out: string }): unknown[] =>
  out.split('\n').flatMap((line): unknown => (line === '' ? [] : JSON.parse(line)))
const hooks = () => provider.hooks.list(token, REPO)
const comment = async (body: string): Promise<void> => {
  await provider.comment(token, { ...REPO, issueNumber: 1, body })
  await alone.sandbox.idle()
}

describe('relay hook add', () => {
  it('creates the hook of the running relay, and repairs it afterwards', async () => {
    expect(await run('hook', 'add', 'octo/demo')).toEqual({
      code: 0,
      out: `hook of octo/demo created: ${url}\n`,
      err: '',
    })
    await alone.sandbox.idle()
    const [hook] = await hooks()
    const secret = new Secret('other')
    await provider.hooks.change(token, REPO, hook?.id ?? 0, { url, secret, events: ['push'] })
    const again = await run('hook', 'add', 'octo/demo', '--events', 'push, issue_comment', '--json')
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
    await comment('signed with the secret of the instance')
    expect(await serving.relay.journal.newest()).toBeGreaterThan(0)
  })

  it.each([
    [['octo'], 2, '"octo" is not a repository. Give for example octo/demo'],
    [['octo/demo', '--url', 'http://example.com/x'], 2, '--url: must be https, unless it is on this machine'],
    [['octo/demo', '--events', 'Push!'], 2, '--events: must be names of events'],
    [['octo/nowhere'], 8, 'The sandbox refused: Not Found'],
  ])('refuses %j', async (argv, code, text) => {
    const ran = await run('hook', 'add', ...argv)
    expect([ran.code, ran.out, ran.err]).toEqual([code, '', expect.stringContaining(text)])
    expect(await hooks()).toEqual([])
  })

  it('refuses another secret than the instance verifies with', async () => {
    const env = { RELAY_WEBHOOK_SECRET: 'another-secret' }
    const ran = await alone.shell.run(['hook', 'add', 'octo/demo'], { env })
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining('with another webhook secret')])
    expect(await hooks()).toEqual([])
  })

  it('needs an address, and a signed-in user', async () => {
    await serving[Symbol.asyncDispose]()
    const ran = await run('hook', 'add', 'octo/demo')
    expect([ran.code, ran.err]).toEqual([1, expect.stringContaining('give the address with --url')])
    expect((await run('hook', 'add', 'octo/demo', '--url', ELSEWHERE)).code).toBe(0)
    const stranger = shell({ ...alone.shell.env, RELAY_USER: 'eve' }, alone.shell.home)
    const refused = await stranger.run(['hook', 'add', 'octo/demo', '--url', ELSEWHERE])
    expect([refused.code, refused.err]).toEqual([4, expect.stringContaining('relay login')])
  })
})

describe('relay hook list, test and remove', () => {
  it('lists the hooks there, marks its own, and the hooks of the profile', async () => {
    expect(await run('hook', 'list')).toMatchObject({ code: 0, out: '' })
    expect((await run('hook', 'list', 'octo/demo')).err).toContain('octo/demo has no hooks')
    await run('hook', 'add', 'octo/demo')
    await provider.hooks.create(token, REPO, { url: ELSEWHERE, secret: new Secret('x'), events: ['push'] })
    await alone.sandbox.idle()
    const { out } = await run('hook', 'list', 'octo/demo')
    expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['leads', 'id', 'last answer', 'settings', 'address'],
      ['here', '601', '200 OK', 'json, every event', url],
      ['', '602', '502 failed to connect to host', 'json, push', ELSEWHERE],
      [''],
    ])
    const common = { v: 1, type: 'hook', active: true, contentType: 'json', hasSecret: true }
    expect(objects(await run('hook', 'list', 'octo/demo', '--json'))).toEqual([
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
    expect((await run('hook', 'list')).out).toBe(`octo/demo  ${url}\n`)
    expect(objects(await run('hook', 'list', '--json'))).toEqual([
      { v: 1, type: 'hook', repo: 'octo/demo', id: 601, url, permanent: true },
    ])
  })

  it('lists a hook whose creation was interrupted, and how to finish it', async () => {
    for (const fault of [{ kind: 'slow', ms: 0 }, 'reset'] as const) alone.sandbox.faults.next('hook', fault)
    expect((await run('hook', 'add', 'octo/demo')).code).toBe(8)
    expect([await hooks(), (await run('hook', 'list')).out]).toEqual([
      [],
      `octo/demo  ${url}  perhaps not there; finish with relay hook add octo/demo\n`,
    ])
    expect(objects(await run('hook', 'list', '--json'))).toEqual([
      { v: 1, type: 'hook', repo: 'octo/demo', id: null, url, permanent: true },
    ])
    await run('hook', 'add', 'octo/demo')
    expect((await run('hook', 'list')).out).toBe(`octo/demo  ${url}\n`)
  })

  it('sends a ping, and finds it in the journal', async () => {
    expect(await run('hook', 'test', 'octo/demo')).toMatchObject({ code: 6 })
    await run('hook', 'add', 'octo/demo')
    await alone.sandbox.idle()
    const before = await serving.relay.journal.newest()
    expect(await run('hook', 'test', 'octo/demo')).toEqual({
      code: 0,
      out: `ping of octo/demo arrived: #${before + 1}\n`,
      err: '',
    })
    expect(objects(await run('hook', 'test', 'octo/demo', '--json'))).toEqual([
      { v: 1, type: 'test', repo: 'octo/demo', hook: 601, n: before + 2 },
    ])
    await serving[Symbol.asyncDispose]()
    expect((await run('hook', 'test', 'octo/demo')).err).toContain('Start it with relay serve')
  })

  it('removes what leads here, and nothing else', async () => {
    await run('hook', 'add', 'octo/demo')
    await provider.hooks.create(token, REPO, { url: ELSEWHERE, secret: new Secret('x'), events: ['push'] })
    expect(await run('hook', 'remove', 'octo/demo')).toEqual({
      code: 0,
      out: `hook of octo/demo removed: ${url}\n`,
      err: '',
    })
    expect((await hooks()).map((hook) => hook.url)).toEqual([ELSEWHERE])
    expect(await run('hook', 'remove', 'octo/demo')).toMatchObject({
      code: 6,
      err: expect.stringContaining('relay hook list octo/demo shows all'),
    })
    await alone.sandbox.idle()
    expect(objects(await run('hook', 'remove', 'octo/demo', '--url', ELSEWHERE, '--json'))).toEqual([
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
    expect(await hooks()).toEqual([])
    expect(await run('hook', 'remove', 'octo/demo', '--json')).toEqual({
      code: 6,
      out: '',
      err: '{"v":1,"type":"error","code":"no_match","error":"octo/demo has no hook that leads here. relay hook list octo/demo shows all; name the address of another with --url"}\n',
    })
  })
})

describe('relay catch-up', () => {
  it('gets what was sent while nothing ran, and says so', async () => {
    await run('hook', 'add', 'octo/demo')
    await alone.sandbox.idle()
    await serving[Symbol.asyncDispose]()
    for (const text of ['one', 'two']) await comment(text)
    const dry = await run('catch-up', '--dry-run', '--json')
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
    expect((await run('catch-up', 'octo/demo')).err).toContain('Start it with relay serve')
    const port = new URL(url).port
    serving = await serveFor(testContext({ env: { ...alone.shell.env, RELAY_PORT: port } }).context)
    expect((await run('catch-up', '--since', '1s', '--dry-run')).code).toBe(0)
    expect(await run('catch-up')).toEqual({
      code: 0,
      out: 'caught up with octo/demo: 2 missing, 2 arrived\n',
      err: 'octo/demo: 2 missing\n',
    })
    expect(objects(await run('catch-up', 'octo/demo', '--json'))).toEqual([
      { v: 1, type: 'caught-up', repo: 'octo/demo', missing: 0, arrived: 0, failed: [] },
    ])
  })

  it('never gets again what retention has removed', async () => {
    await run('hook', 'add', 'octo/demo')
    for (const text of ['one', 'two', 'three']) await comment(text)
    const { journal } = serving.relay
    const removed = await journal.sweep({ keep: 1, keepMax: Infinity, now: Date.now() + 60_000 })
    expect([removed, await journal.count()]).toEqual([3, 1])
    expect((await run('catch-up', 'octo/demo')).out).toBe('caught up with octo/demo: nothing was missing\n')
    expect(await journal.count()).toBe(1)
  })

  it('ends with 6 without a hook, and with 2 for a bad time', async () => {
    expect(await run('catch-up')).toMatchObject({ code: 6, err: expect.stringContaining('relay hook add') })
    expect(await run('catch-up', 'octo/demo')).toMatchObject({ code: 6 })
    expect(await run('catch-up', '--since', 'x')).toMatchObject({ code: 2 })
  })

  it('ends with 8 where the code host has no log', async () => {
    const env = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'https://git.example.com' }
    const gitea = shell({ ...env, RELAY_HOME: emptyFolder() })
    expect(await gitea.run(['catch-up', 'octo/demo'])).toMatchObject({
      code: 8,
      out: '',
      err: expect.stringContaining('gitea shows programs no log'),
    })
  })
})
