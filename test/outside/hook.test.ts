import { beforeEach, describe, expect, it } from 'vitest'
import { NOW, repository } from '../kit/code-host.js'
import { linesOf } from '../kit/journal.js'
import { place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { prints, type Ran } from '../kit/run.js'
import { objects } from './example.js'
import { fresh, json } from './fixture.js'

const ELSEWHERE = 'http://127.0.0.1:9/elsewhere'
const RIGHTS =
  'Managing hooks needs admin rights on the repository, and a token with the scope repo or admin:repo_hook (a fine-grained token: the permission Webhooks)'
const REST =
  'relay log --refused shows what was refused; relay hook add octo/demo repairs the hook; relay doctor checks the rest'

const here = fresh(() => place({ signedIn: true }))
const demo = fresh(() => repository(here.sandbox))
let serving: Serving
let url: string
beforeEach(async () => {
  serving = await here.serve('--port', String(await closedPort()))
  url = `${serving.address}/webhook`
})

const hook = (...argv: string[]) => here.run('hook', ...argv)
/** Adds the hook, and waits for the ping that this brings. */
const add = async (...flags: string[]): Promise<Ran> => {
  const ran = await hook('add', 'octo/demo', ...flags)
  await here.sandbox.idle()
  return ran
}
/** A command's error as one line. */
const unwrapped = ({ err, ...ran }: Ran) => ({ ...ran, err: err.replaceAll(/\s+/g, ' ').trim() })
const says = (code: number, text: string) => ({ code, out: '', err: `error: ${text}` })
const saved = async (): Promise<string> => (await hook('list')).out
const idOf = async (): Promise<number> => (await demo.hooks())[0]?.id ?? 0

type Fault = Parameters<typeof here.sandbox.faults.next>[1]
const answer = (
  status: 301 | 307 | 403 | 404 | 422,
  message: string,
  headers: Record<string, string> = {},
  more: object = {},
): Fault => ({ kind: 'answer', status, headers, body: JSON.stringify({ message, ...more }) })

/** The two hooks of a list as a program gets them. */
const common = { v: 1, type: 'hook', active: true, contentType: 'json', hasSecret: true }
const OK = { code: 200, message: 'OK' }
const other = {
  ...common,
  id: 602,
  url: ELSEWHERE,
  events: ['push'],
  lastResponse: { code: 502, message: 'failed to connect to host' },
}

describe('relay hook add', () => {
  it('creates the hook of the running relay, and repairs it afterwards', async () => {
    expect(await add()).toEqual(prints(`hook of octo/demo created: ${url}\n`))
    const id = await idOf()
    await demo.changeHook(id, { url, secret: 'other', events: ['push'] })
    const again = await json(hook('add', 'octo/demo', '--events', 'push, issue_comment', '--json'))
    const changes = { created: false, repaired: ['it had other events'], found: false }
    const events = ['push', 'issue_comment']
    expect(again).toEqual({ ...common, id, url, ours: true, events, lastResponse: OK, ...changes })
    await demo.comment('signed with the secret of the instance')
    expect((await linesOf(here)).map(({ event }) => event)).toEqual(['ping', 'issue_comment'])
  })

  it('warns of an event that the code host does not send', async () => {
    const { err } = await hook('add', 'octo/demo', '--events', 'push,issue_coment')
    expect(err).toContain('warning: sandbox sends no event issue_coment (did you mean issue_comment?)\n')
  })

  it('needs an address, and a signed-in user', async () => {
    await serving.stop()
    const ran = await hook('add', 'octo/demo')
    expect([ran.code, ran.err]).toEqual([1, expect.stringContaining('give the address with --url')])
    expect((await hook('add', 'octo/demo', '--url', ELSEWHERE)).code).toBe(0)
    const refused = await hook('add', 'octo/demo', '--url', ELSEWHERE, '--user', 'eve')
    expect([refused.code, refused.err]).toEqual([4, expect.stringContaining('relay login')])
  })

  it.each(['another-secret', undefined])('changes nothing with the secret %s', async (secret) => {
    const env = { RELAY_WEBHOOK_SECRET: secret }
    const ran = await here.runWith({ env }, 'hook', 'add', 'octo/demo')
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining('with another webhook secret')])
    expect(await demo.hooks()).toEqual([])
    const { settings } = await json(here.runWith({ env }, 'config', '--json'))
    expect(settings.webhookSecret).toMatchObject({ set: secret !== undefined })
  })

  const TWENTY = 'The "*" event cannot have more than 20 hooks'
  it.each<[string, Fault, string]>([
    [
      'an archived repository',
      answer(403, 'Repository was archived so is read-only.'),
      'Repository was archived so is read-only. Unarchive the repository first, or do without its hook',
    ],
    [
      'more than 20 hooks',
      answer(
        422,
        'Validation Failed',
        {},
        { errors: [{ resource: 'Hook', code: 'custom', message: TWENTY }] },
      ),
      `Validation Failed (Hook: ${TWENTY}). Remove one that is not needed: relay hook list octo/demo`,
    ],
  ])('is refused for %s', async (_, fault, why) => {
    for (const each of [NOW, fault]) here.sandbox.faults.next('hook', each)
    expect(unwrapped(await hook('add', 'octo/demo'))).toEqual(says(8, `The sandbox refused: ${why}`))
    expect([await demo.hooks(), await saved()]).toEqual([[], ''])
    expect((await hook('add', 'octo/nowhere')).err).toContain('The sandbox refused: Not Found')
  })
})

describe('relay hook list', () => {
  it('lists the hooks there, marks its own, and the hooks of the profile', async () => {
    expect(await hook('list')).toMatchObject({ code: 0, out: '' })
    expect((await hook('list')).err).toContain('. relay hook add <owner/repo> creates one')
    expect((await hook('list', 'octo/demo')).err).toContain('octo/demo has no hooks')
    await add()
    await demo.addHook({ url: ELSEWHERE, secret: 'x', events: ['push'] })
    await here.sandbox.idle()
    const { out } = await hook('list', 'octo/demo')
    expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['leads', 'id', 'last answer', 'settings', 'address'],
      ['here', '601', '200 OK', 'json, every event', url],
      ['', '602', '502 failed to connect to host', 'json, push', ELSEWHERE],
      [''],
    ])
    expect(objects(await hook('list', 'octo/demo', '--json'))).toEqual([
      { ...common, id: 601, url, ours: true, events: ['*'], lastResponse: OK },
      { ...other, ours: false },
    ])
    expect(await saved()).toBe(`octo/demo  ${url}\n`)
    const own = { v: 1, type: 'hook', repo: 'octo/demo', id: 601, url, permanent: true }
    expect(objects(await hook('list', '--json'))).toEqual([own])
  })

  it('lists a hook whose creation was interrupted, and how to finish it', async () => {
    for (const fault of [NOW, 'reset'] as const) here.sandbox.faults.next('hook', fault)
    expect((await hook('add', 'octo/demo')).code).toBe(8)
    const perhaps = `octo/demo  ${url}  perhaps not there; finish with relay hook add octo/demo\n`
    expect([await demo.hooks(), await saved()]).toEqual([[], perhaps])
    expect(await json(hook('list', '--json'))).toMatchObject({ id: null, url, permanent: true })
    await hook('add', 'octo/demo')
    expect(await saved()).toBe(`octo/demo  ${url}\n`)
  })
})

describe('relay hook test', () => {
  const test = (...flags: string[]) => hook('test', 'octo/demo', ...flags)

  it('sends a ping, and finds it in the journal', async () => {
    expect(await test()).toMatchObject({ code: 6 })
    await add()
    const newest = Number((await linesOf(here)).at(-1)?.['n'])
    expect(await test()).toEqual(prints(`ping of octo/demo arrived: #${newest + 1}\n`))
    const found = await json(test('--json'))
    expect(found).toEqual({ v: 1, type: 'test', repo: 'octo/demo', hook: 601, n: newest + 2 })
    await serving.stop()
    expect((await test()).err).toContain('Start it with relay serve')
  })

  it('says at once what the code host got when its ping fails', async () => {
    await add()
    await demo.changeHook(await idOf(), { url, secret: 'other' })
    const got = 'The code host got: 401 Invalid HTTP Response: 401'
    expect(unwrapped(await test())).toEqual(says(7, `The delivery did not arrive. ${got}. ${REST}`))
  })

  it.each([
    ['nothing', 'within 0.3 s. The code host got: 200 OK.'],
    ['502', 'within 0.3 s.'],
  ] as const)(
    'gives up after a while when nothing is sent, and the code host then says %s',
    async (end, got) => {
      await add()
      const lost = { kind: 'answer', status: 202, body: '' } as const
      for (const fault of [NOW, lost, ...(end === '502' ? [end] : [])])
        here.sandbox.faults.next('hook', fault)
      const seams = { limits: { arrival: 300 } }
      const ran = await here.runWith({ seams }, 'hook', 'test', 'octo/demo')
      expect(unwrapped(ran)).toEqual(says(7, `The delivery did not arrive ${got} ${REST}`))
    },
  )

  it('finds the ping of a repository that has another name now', async () => {
    await add()
    const [before] = await linesOf(here)
    const id = await idOf()
    const moved = (status: 301 | 307, path: string): Fault =>
      answer(status, 'Moved', { Location: `/api/v3/repos/octo/demo/hooks${path}` })
    const { faults } = here.sandbox
    faults.next('hook', moved(301, '?per_page=100&page=1'))
    faults.next('hook', NOW)
    faults.next('hook', moved(307, `/${id}/pings`))
    faults.next('deliveries', moved(301, `/${id}/deliveries`))
    const arrived = `ping of octo/old arrived: #${Number(before?.['n']) + 1}\n`
    expect(await hook('test', 'octo/old')).toEqual(prints(arrived))
  })
})

describe('relay hook remove', () => {
  const remove = (...flags: string[]) => hook('remove', 'octo/demo', ...flags)
  const NONE =
    'octo/demo has no hook that leads here. relay hook list octo/demo shows all; name the address of another with --url'

  it('removes what leads here, and nothing else', async () => {
    await add()
    await demo.addHook({ url: ELSEWHERE, secret: 'x', events: ['push'] })
    expect(await remove()).toEqual(prints(`hook of octo/demo removed: ${url}\n`))
    expect((await demo.hooks()).map((each) => each.url)).toEqual([ELSEWHERE])
    expect(unwrapped(await remove())).toEqual(says(6, NONE))
    await here.sandbox.idle()
    expect(await json(remove('--url', ELSEWHERE, '--json'))).toEqual({ ...other, ours: true })
    expect(await demo.hooks()).toEqual([])
  })

  it('of a hook that somebody removed says so, and forgets it', async () => {
    await add()
    await demo.removeHook(await idOf())
    expect(unwrapped(await remove())).toEqual(says(6, NONE))
    expect(await saved()).toBe('')
  })

  it('of a repository that is gone names --local, which forgets the hook and asks nothing', async () => {
    await add()
    here.sandbox.faults.next('hook', answer(404, 'Not Found'))
    expect(await remove()).toMatchObject({
      code: 8,
      err: expect.stringContaining('relay hook remove octo/demo --local forgets its hook\n'),
    })
    expect(await remove('--local', '--url', url)).toMatchObject({ code: 2 })
    const asked = here.sandbox.requests.length
    const forgotten = `hook of octo/demo forgotten here, and not removed at ${here.sandbox.url}: ${url}\n`
    expect(await remove('--local')).toEqual(prints(forgotten))
    expect(here.sandbox.requests.length).toBe(asked)
    expect(await saved()).toBe('')
    expect(await remove('--local')).toMatchObject({ code: 6 })
  })
})

describe('a code host that refuses each request about hooks', () => {
  const SOON = String(Math.floor(Date.now() / 1000) + 1800)
  const APPS =
    'Although you appear to have the correct authorization credentials, the `octo` organization has enabled OAuth App access restrictions, meaning that data access to third-parties is limited.'
  const BUSY = 'You have exceeded a secondary rate limit.'

  it.each<[string, Fault, string]>([
    [
      'the app of an organization',
      answer(403, APPS),
      `${APPS} Ask an owner of octo to approve the OAuth app in the organization's settings, under third-party access`,
    ],
    [
      'a token without single sign-on',
      answer(403, 'Resource protected by organization SAML enforcement.'),
      'Resource protected by organization SAML enforcement. Sign in again with relay login, and authorize the app for octo when the code host asks',
    ],
    [
      'a token without the permission, which it names',
      answer(403, 'Resource not accessible by integration', {
        'X-Accepted-GitHub-Permissions': 'repository_hooks=read',
      }),
      'Resource not accessible by integration. The token needs the permission repository_hooks=read. Sign in with the scope repo or admin:repo_hook (a fine-grained token: the permission Webhooks): relay login, or relay login --with-token',
    ],
    [
      'a user',
      answer(403, 'Must have admin rights to Repository.'),
      `Must have admin rights to Repository. ${RIGHTS}`,
    ],
    [
      'for an hour',
      answer(403, 'API rate limit exceeded', { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': SOON }),
      'API rate limit exceeded. Try again in 1800 s',
    ],
    [
      'for a while',
      'secondary-limit',
      `${BUSY} Please wait a few minutes before you try again. Try again in 60 s`,
    ],
    ['without a time', answer(403, BUSY), `${BUSY} Try again in 60 s`],
    ['and fails', '502', 'The sandbox failed (502). Try again later'],
    [
      'a repository that moved',
      answer(301, 'Moved Permanently'),
      'The sandbox answered with a redirect that is not followed (301): Moved Permanently. The repository was renamed or moved. Give its new name',
    ],
  ])('%s: each command says so, and what to do', async (_, fault, text) => {
    await add()
    const why = text.startsWith('The sandbox') ? text : `The sandbox refused: ${text}`
    for (const command of ['add', 'list', 'test', 'remove']) {
      here.sandbox.faults.next('hook', fault)
      const { code, out, err } = unwrapped(await hook(command, 'octo/demo'))
      // The seconds of a limit go by.
      const said = err.replace(/in 1[78]\d\d s$/, 'in 1800 s')
      expect({ code, out, err: said }).toEqual(says(8, why))
    }
    expect(await demo.hooks()).toHaveLength(1)
    expect(await saved()).toContain('octo/demo')
  })
})
