import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { TestSandbox } from 'webhook-relay/testing'
import { limited, NOW, repository, type Repository } from '../kit/code-host.js'
import { SECRET } from '../kit/delivery.js'
import { commentsOf, linesOf } from '../kit/journal.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import type { Ran } from '../kit/run.js'
import { prints } from '../kit/run.js'

type Fault = Parameters<TestSandbox['faults']['next']>[1]

const RIGHTS =
  'Managing hooks needs admin rights on the repository, and a token with the scope repo or admin:repo_hook (a fine-grained token: the permission Webhooks)'

let here: Place
let serving: Serving
let demo: Repository
const begin = async (): Promise<void> => {
  here = await place({ signedIn: true })
  serving = await here.serve('--port', String(await closedPort()))
  demo = await repository(here.sandbox)
}
const end = (): PromiseLike<void> => here[Symbol.asyncDispose]()
/** Ends the relay, has comments sent, and starts it again at the same address. */
const miss = async (texts: readonly string[], env = {}): Promise<void> => {
  const { port } = new URL(serving.address)
  await serving.stop()
  await demo.comment(...texts)
  serving = await here.serveWith({ env }, '--port', port)
}

/** A command's error as one line. */
const unwrapped = ({ code, out, err }: Ran) => ({ code, out, err: err.replaceAll(/\s+/g, ' ').trim() })
const run = async (...argv: string[]) => unwrapped(await here.run(...argv))
const refused = (text: string) => ({ code: 8, out: '', err: `error: ${text}` })
const saved = async (): Promise<string> => (await run('hook', 'list')).out
const answer = (
  status: 301 | 307 | 403 | 404 | 422,
  message: string,
  headers: Record<string, string> = {},
  more: object = {},
): Fault => ({ kind: 'answer', status, headers, body: JSON.stringify({ message, ...more }) })
describe('a code host that refuses each request about hooks', () => {
  beforeAll(async () => {
    await begin()
    await run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
  })
  afterAll(end)

  const SOON = String(Math.floor(Date.now() / 1000) + 1800)
  it.each<[string, Fault, string]>([
    [
      'the app of an organization',
      answer(
        403,
        'Although you appear to have the correct authorization credentials, the `octo` organization has enabled OAuth App access restrictions, meaning that data access to third-parties is limited.',
      ),
      "The sandbox refused: Although you appear to have the correct authorization credentials, the `octo` organization has enabled OAuth App access restrictions, meaning that data access to third-parties is limited. Ask an owner of octo to approve the OAuth app in the organization's settings, under third-party access",
    ],
    [
      'a token without single sign-on',
      answer(403, 'Resource protected by organization SAML enforcement.'),
      'The sandbox refused: Resource protected by organization SAML enforcement. Sign in again with relay login, and authorize the app for octo when the code host asks',
    ],
    [
      'a token without the permission, which it names',
      answer(403, 'Resource not accessible by integration', {
        'X-Accepted-GitHub-Permissions': 'repository_hooks=read',
      }),
      'The sandbox refused: Resource not accessible by integration. The token needs the permission repository_hooks=read. Sign in with the scope repo or admin:repo_hook (a fine-grained token: the permission Webhooks): relay login, or relay login --with-token',
    ],
    [
      'a user',
      answer(403, 'Must have admin rights to Repository.'),
      `The sandbox refused: Must have admin rights to Repository. ${RIGHTS}`,
    ],
    [
      'for an hour',
      answer(403, 'API rate limit exceeded', { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': SOON }),
      'The sandbox refused: API rate limit exceeded. Try again in 1800 s',
    ],
    [
      'for a while',
      'secondary-limit',
      'The sandbox refused: You have exceeded a secondary rate limit. Please wait a few minutes before you try again. Try again in 60 s',
    ],
    [
      'without a time',
      answer(403, 'You have exceeded a secondary rate limit.'),
      'The sandbox refused: You have exceeded a secondary rate limit. Try again in 60 s',
    ],
    ['and fails', '502', 'The sandbox failed (502). Try again later'],
    [
      'a repository that moved',
      answer(301, 'Moved Permanently'),
      'The sandbox answered with a redirect that is not followed (301): Moved Permanently. The repository was renamed or moved. Give its new name',
    ],
  ])('%s: each command says so, and what to do', async (_, fault, text) => {
    for (const argv of [['add'], ['list'], ['test'], ['remove']]) {
      here.sandbox.faults.next('hook', fault)
      const { code, out, err } = await run('hook', ...argv, 'octo/demo')
      // The seconds of a limit go by.
      const said = err.replace(/in 1[78]\d\d s$/, 'in 1800 s')
      expect({ code, out, err: said }).toEqual(refused(text))
    }
    expect(await demo.hooks()).toHaveLength(1)
    expect(await saved()).toContain('octo/demo')
  })
})

describe('a code host that refuses', () => {
  beforeEach(begin)
  afterEach(end)

  it('an archived repository, and one that a write does not find any more', async () => {
    here.sandbox.faults.next('hook', NOW)
    here.sandbox.faults.next('hook', answer(403, 'Repository was archived so is read-only.'))
    expect(await run('hook', 'add', 'octo/demo')).toEqual(
      refused(
        'The sandbox refused: Repository was archived so is read-only. Unarchive the repository first, or do without its hook',
      ),
    )
    expect([await demo.hooks(), await saved()]).toEqual([[], ''])
  })

  it('a token without the scope, which it names', async () => {
    await run('hook', 'add', 'octo/demo')
    const scopes = {
      'X-OAuth-Scopes': 'public_repo',
      'X-Accepted-OAuth-Scopes': 'admin:repo_hook, repo, write:repo_hook, read:repo_hook',
    }
    here.sandbox.faults.next('hook', answer(404, 'Not Found', scopes))
    const hidden = 'The sandbox refused: Not Found (no such repository or number, or no access to it)'
    const sign = RIGHTS.replace(/.* a token with/, 'Sign in with')
    expect(await run('hook', 'remove', 'octo/demo')).toEqual(
      refused(
        `${hidden}. The token needs one of the scopes admin:repo_hook, repo, write:repo_hook, read:repo_hook; it has public_repo. ${sign}: relay login, or relay login --with-token. Check the name, or sign in as another user`,
      ),
    )
  })

  it('more than 20 hooks', async () => {
    const message = 'The "*" event cannot have more than 20 hooks'
    const errors = [{ resource: 'Hook', code: 'custom', message }]
    here.sandbox.faults.next('hook', NOW)
    here.sandbox.faults.next('hook', answer(422, 'Validation Failed', {}, { errors }))
    expect(await run('hook', 'add', 'octo/demo')).toEqual(
      refused(
        'The sandbox refused: Validation Failed (Hook: The "*" event cannot have more than 20 hooks). Remove one that is not needed: relay hook list octo/demo',
      ),
    )
    expect(await saved()).toBe('')
  })
})

describe('relay hook remove', () => {
  beforeEach(begin)
  afterEach(end)

  it('of a hook that somebody removed says so, and forgets it', async () => {
    await run('hook', 'add', 'octo/demo')
    const [hook] = await demo.hooks()
    await demo.removeHook(hook?.id ?? 0)
    expect(await run('hook', 'remove', 'octo/demo')).toEqual({
      code: 6,
      out: '',
      err: 'error: octo/demo has no hook that leads here. relay hook list octo/demo shows all; name the address of another with --url',
    })
    expect(await saved()).toBe('')
  })
})

describe('relay hook test', () => {
  beforeEach(begin)
  afterEach(end)

  it('says at once what the code host got when its ping fails', async () => {
    await run('hook', 'add', 'octo/demo')
    const [hook] = await demo.hooks()
    await demo.changeHook(hook?.id ?? 0, { url: hook?.url ?? '', secret: 'other' })
    expect(await run('hook', 'test', 'octo/demo')).toEqual({
      code: 7,
      out: '',
      err: 'error: The delivery did not arrive. The code host got: 401 Invalid HTTP Response: 401. relay log --refused shows what was refused; relay hook add octo/demo repairs the hook; relay doctor checks the rest',
    })
  })

  it('gives up after a while when nothing is sent, also when the code host then fails', async () => {
    await run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    const lost: Fault = { kind: 'answer', status: 202, body: '' }
    for (const end of ['nothing', '502'] as const) {
      for (const fault of [NOW, lost] as const) here.sandbox.faults.next('hook', fault)
      if (end === '502') here.sandbox.faults.next('hook', end)
      const seams = { limits: { arrival: 300 } }
      expect(unwrapped(await here.runWith({ seams }, 'hook', 'test', 'octo/demo'))).toEqual({
        code: 7,
        out: '',
        err: `error: The delivery did not arrive within 0.3 s.${end === '502' ? '' : ' The code host got: 200 OK.'} relay log --refused shows what was refused; relay hook add octo/demo repairs the hook; relay doctor checks the rest`,
      })
    }
  })

  it('finds the ping of a repository that has another name now', async () => {
    await run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    const [before] = await linesOf(here)
    const [hook] = await demo.hooks()
    const moved = (status: 301 | 307, path: string): Fault =>
      answer(status, 'Moved', { Location: `/api/v3/repos/octo/demo/hooks${path}` })
    const { faults } = here.sandbox
    faults.next('hook', moved(301, '?per_page=100&page=1'))
    faults.next('hook', NOW)
    faults.next('hook', moved(307, `/${hook?.id}/pings`))
    faults.next('deliveries', moved(301, `/${hook?.id}/deliveries`))
    expect(await run('hook', 'test', 'octo/old')).toEqual(
      prints(`ping of octo/old arrived: #${Number(before?.['n']) + 1}\n`),
    )
  })
})

describe('relay catch-up', () => {
  beforeEach(begin)
  afterEach(end)

  it('waits where the code host limits or fails, and gets everything', async () => {
    await run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    await miss(['one', 'two'])
    here.sandbox.faults.next('hook', '502')
    for (const operation of ['deliveries', 'redeliver'] as const)
      here.sandbox.faults.next(operation, limited(0))
    const { code, out, err } = await run('catch-up')
    expect([code, out]).toEqual([0, 'caught up with octo/demo: 2 missing, 2 arrived\n'])
    const waits = err.match(/Continues in \d+ s: The sandbox (refused|failed)/g)
    expect(waits).toHaveLength(3)
    expect(await commentsOf(here)).toEqual(['one', 'two'])
  })

  it('does not wait for a limit of a day, and says when', async () => {
    await run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    here.sandbox.faults.always('deliveries', answer(403, 'secondary rate limit', { 'Retry-After': '86400' }))
    expect(await run('catch-up')).toEqual(
      refused('The sandbox refused: secondary rate limit. Try again in 86400 s'),
    )
  })

  it('reads the other logs when one cannot be read, and then says why', async () => {
    for (const repo of ['octo/demo', 'octo/no-issues']) await run('hook', 'add', repo)
    await here.sandbox.idle()
    const [hook] = await demo.hooks()
    await demo.removeHook(hook?.id ?? 0)
    const why =
      'Could not catch up with octo/demo: octo/demo has no hook that leads here. Create it with relay hook add octo/demo'
    expect(await run('catch-up')).toEqual({
      code: 6,
      out: 'caught up with octo/no-issues: nothing was missing\n',
      err: `error: ${why}`,
    })
    const json = await here.run('catch-up', '--dry-run', '--json')
    expect([json.code, json.out, json.err]).toEqual([
      6,
      '',
      `would ask for 0 of octo/no-issues\n${JSON.stringify({ v: 1, type: 'error', code: 'no_match', error: why })}\n`,
    ])
  })

  it('names what fails again, with the reason, and gets the rest', async () => {
    await run('hook', 'add', 'octo/demo')
    await here.sandbox.idle()
    const env = { RELAY_WEBHOOK_SECRET: 'another-secret' }
    await miss(['one', 'two'], env)
    const failed = await here.runWith({ env }, 'catch-up', '--json')
    const [entry] = failed.out
      .split('\n')
      .flatMap((line): object[] => (line === '' ? [] : [JSON.parse(line)]))
    const one = {
      id: expect.stringMatching(/^\d{19}$/),
      guid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      event: 'issue_comment',
      action: 'created',
      deliveredAt: expect.stringMatching(/^\d{4}-.*Z$/),
      why: 'the redelivery failed too: Invalid HTTP Response: 401 (401)',
    }
    expect([failed.code, entry, failed.err]).toEqual([
      8,
      { v: 1, type: 'caught-up', repo: 'octo/demo', missing: 2, arrived: 0, failed: [one, one] },
      'octo/demo: 2 missing\n{"v":1,"type":"error","code":"provider_failed","error":"2 could not be had. relay doctor checks the hook; relay catch-up asks again"}\n',
    ])
    await miss([])
    here.sandbox.faults.next('redeliver', answer(403, 'Must have admin rights to Repository.'))
    const rest = await run('catch-up')
    expect([rest.code, rest.out]).toEqual([
      8,
      expect.stringMatching(
        /^caught up with octo\/demo: 2 missing, 1 arrived, 1 could not be had \(issue_comment\.created of .*: The sandbox refused: Must have admin rights to Repository\.\)\n$/,
      ),
    ])
    expect(await commentsOf(here)).toEqual(['two'])
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
    const nothing = 'caught up with octo/demo: nothing was missing\n'
    expect(await past.run('catch-up')).toEqual({ code: 0, out: nothing, err: '' })
    await there.changeHook(hook?.id ?? 0, { url, secret: SECRET })
    expect((await past.run('catch-up', '--since', '5d')).out).toBe(
      'caught up with octo/demo: 1 missing, 1 arrived\n',
    )
  })
})
