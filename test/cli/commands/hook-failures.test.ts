import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import { testHook } from '../../../src/cli/commands/hook/test.js'
import { createProvider } from '../../../src/providers/open.js'
import type { Provider } from '../../../src/providers/provider.js'
import type { Fault, FaultName } from '../../../src/sandbox/faults.js'
import type { Serving } from '../../../src/serve/serve.js'
import { testContext } from '../../helpers/context.js'
import { startSandbox } from '../../../src/testing/index.js'
import { type Alone, keepToken, serveFor, shell, startAlone } from '../rig.js'

const REPO = { owner: 'octo', repo: 'demo' }
const RIGHTS =
  'Managing hooks needs admin rights on the repository, and a token with the scope repo or admin:repo_hook (a fine-grained token: the permission Webhooks)'

let alone: Alone
let serving: Serving
let provider: Provider
let token: string
beforeEach(async () => {
  alone = await startAlone()
  serving = await serveFor(testContext({ env: { ...alone.shell.env, RELAY_PORT: '0' } }).context)
  provider = createProvider({ name: 'sandbox', url: alone.sandbox.url })
  token = alone.grant.access_token
})
afterEach(async () => {
  await serving[Symbol.asyncDispose]()
  await alone[Symbol.asyncDispose]()
})

/** What a command ended with, its text as one line. */
async function run(...argv: string[]) {
  const { code, out, err } = await alone.shell.run(argv)
  return { code, out, err: err.replaceAll(/\s+/g, ' ').trim() }
}
const refused = (text: string) => ({ code: 8, out: '', err: `error: ${text}` })
const hooks = () => provider.hooks.list(token, REPO)
const saved = async (): Promise<string> => (await run('hook', 'list')).out
const answer = (status: 301 | 307 | 403, message: string, headers: Record<string, string> = {}): Fault => ({
  kind: 'answer',
  status,
  headers,
  body: JSON.stringify({ message }),
})
const comment = async (body: string): Promise<void> => {
  await provider.comment(token, { ...REPO, issueNumber: 1, body })
  await alone.sandbox.idle()
}

describe('a code host that refuses', () => {
  const SOON = String(Math.floor(Date.now() / 1000) + 1800)
  it.each<[string, Fault | FaultName, string]>([
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
    ['and fails', '502', 'The sandbox failed (502). Try again later'],
    [
      'a repository that moved',
      answer(301, 'Moved Permanently'),
      'The sandbox answered with a redirect that is not followed (301): Moved Permanently. The repository was renamed or moved. Give its new name',
    ],
  ])('%s: each command says so, and what to do', async (_, fault, text) => {
    await run('hook', 'add', 'octo/demo')
    await alone.sandbox.idle()
    for (const argv of [['add'], ['list'], ['test'], ['remove']]) {
      alone.sandbox.faults.next('hook', fault)
      const { code, out, err } = await run('hook', ...argv, 'octo/demo')
      // The seconds of a limit go by.
      const said = err.replace(/in 1[78]\d\d s$/, 'in 1800 s')
      expect({ code, out, err: said }).toEqual(refused(text))
    }
    expect(await hooks()).toHaveLength(1)
    expect(await saved()).toContain('octo/demo')
  })

  it('an archived repository, and one that a write does not find any more', async () => {
    const nothing: Fault = { kind: 'slow', ms: 0 }
    alone.sandbox.faults.next('hook', nothing)
    alone.sandbox.faults.next('hook', answer(403, 'Repository was archived so is read-only.'))
    expect(await run('hook', 'add', 'octo/demo')).toEqual(
      refused(
        'The sandbox refused: Repository was archived so is read-only. Unarchive the repository first, or do without its hook',
      ),
    )
    alone.sandbox.faults.next('hook', nothing)
    alone.sandbox.faults.next('hook', answer(301, 'Moved Permanently'))
    expect(await run('hook', 'add', 'octo/demo')).toEqual(
      refused(
        'The sandbox answered with a redirect that is not followed (301): Moved Permanently. The repository was renamed or moved. Give its new name',
      ),
    )
    expect([await hooks(), await saved()]).toEqual([[], ''])
  })

  it('a token without the scope, which it names', async () => {
    await run('hook', 'add', 'octo/demo')
    const weak = await alone.sandbox.token('public_repo')
    await keepToken(alone.shell, { accessToken: weak, origin: alone.sandbox.url })
    const hidden = 'The sandbox refused: Not Found (no such repository or number, or no access to it)'
    const sign = RIGHTS.replace(/.* a token with/, 'Sign in with')
    expect(await run('hook', 'remove', 'octo/demo')).toEqual(
      refused(
        `${hidden}. The token needs one of the scopes admin:repo_hook, repo, write:repo_hook, read:repo_hook; it has public_repo. ${sign}: relay login, or relay login --with-token. Check the name, or sign in as another user`,
      ),
    )
  })

  it('to remove a hook with a token that may only write: the hook stays, and so does what the profile knows', async () => {
    const weak = await alone.sandbox.token('write:repo_hook')
    await keepToken(alone.shell, { accessToken: weak, origin: alone.sandbox.url })
    expect(await run('hook', 'add', 'octo/demo')).toMatchObject({ code: 0 })
    expect(await run('hook', 'remove', 'octo/demo')).toMatchObject({
      code: 8,
      out: '',
      err: expect.stringContaining(
        'The token needs one of the scopes admin:repo_hook, repo; it has write:repo_hook',
      ),
    })
    expect(await hooks()).toHaveLength(1)
    expect(await saved()).toContain('octo/demo')
  })

  it('more than 20 hooks', async () => {
    for (let n = 0; n < 20; n++) {
      const url = `http://127.0.0.1:9/${n}`
      await provider.hooks.create(token, REPO, { url, secret: new Secret('x'), events: undefined })
    }
    expect(await run('hook', 'add', 'octo/demo')).toEqual(
      refused(
        'The sandbox refused: Validation Failed (Hook: The "*" event cannot have more than 20 hooks). Remove one that is not needed: relay hook list octo/demo',
      ),
    )
    expect(await saved()).toBe('')
  })
})

describe('relay hook remove', () => {
  it('of a hook that somebody removed says so, and forgets it', async () => {
    await run('hook', 'add', 'octo/demo')
    const [hook] = await hooks()
    await provider.hooks.remove(token, REPO, hook?.id ?? 0)
    expect(await run('hook', 'remove', 'octo/demo')).toEqual({
      code: 6,
      out: '',
      err: 'error: octo/demo has no hook that leads here. relay hook list octo/demo shows all; name the address of another with --url',
    })
    expect(await saved()).toBe('')
  })
})

describe('relay hook test', () => {
  it('says at once what the code host got when its ping fails', async () => {
    await run('hook', 'add', 'octo/demo')
    const [hook] = await hooks()
    const settings = { url: hook?.url ?? '', secret: new Secret('other'), events: undefined }
    await provider.hooks.change(token, REPO, hook?.id ?? 0, settings)
    expect(await run('hook', 'test', 'octo/demo')).toEqual({
      code: 7,
      out: '',
      err: 'error: The delivery did not arrive. The code host got: 401 Invalid HTTP Response: 401. relay log --refused shows what was refused; relay hook add octo/demo repairs the hook; relay doctor checks the rest',
    })
  })

  it('gives up after a while when nothing is sent, also when the code host then fails', async () => {
    await run('hook', 'add', 'octo/demo')
    await alone.sandbox.idle()
    const lost: Fault = { kind: 'answer', status: 202, body: '' }
    for (const end of ['nothing', '502'] as const) {
      for (const fault of [{ kind: 'slow', ms: 0 }, lost] as const) alone.sandbox.faults.next('hook', fault)
      if (end === '502') alone.sandbox.faults.next('hook', end)
      const { context } = testContext({ env: alone.shell.env })
      await expect(testHook(context, {}, 'octo/demo', 300)).rejects.toMatchObject({
        kind: 'timed_out',
        message: `The delivery did not arrive within 0.3 s.${end === '502' ? '' : ' The code host got: 200 OK.'} relay log --refused shows what was refused; relay hook add octo/demo repairs the hook; relay doctor checks the rest`,
      })
    }
  })

  it('finds the ping of a repository that has another name now', async () => {
    await run('hook', 'add', 'octo/demo')
    await alone.sandbox.idle()
    const before = await serving.relay.journal.newest()
    const [hook] = await hooks()
    const moved = (status: 301 | 307, path: string): Fault =>
      answer(status, 'Moved', { Location: `/api/v3/repos/octo/demo/hooks${path}` })
    const { faults } = alone.sandbox
    faults.next('hook', moved(301, '?per_page=100&page=1'))
    faults.next('hook', { kind: 'slow', ms: 0 })
    faults.next('hook', moved(307, `/${hook?.id}/pings`))
    faults.next('deliveries', moved(301, `/${hook?.id}/deliveries`))
    expect(await run('hook', 'test', 'octo/old')).toEqual({
      code: 0,
      out: `ping of octo/old arrived: #${before + 1}\n`,
      err: '',
    })
  })
})

describe('relay catch-up', () => {
  it('waits where the code host limits or fails, and gets everything', async () => {
    await run('hook', 'add', 'octo/demo')
    await alone.sandbox.idle()
    const { url } = serving
    await serving[Symbol.asyncDispose]()
    for (const text of ['one', 'two']) await comment(text)
    const env = { ...alone.shell.env, RELAY_PORT: new URL(url).port }
    serving = await serveFor(testContext({ env }).context)
    const limit = answer(403, 'You have exceeded a secondary rate limit.', { 'Retry-After': '1' })
    for (const operation of ['hook', 'deliveries', 'redeliver'] as const) {
      alone.sandbox.faults.next(operation, limit)
      alone.sandbox.faults.next(operation, '502')
    }
    const { code, out, err } = await run('catch-up')
    expect([code, out]).toEqual([0, 'caught up with octo/demo: 2 missing, 2 arrived\n'])
    const waits = err.match(/Continues in \d+ s: The sandbox (refused|failed)/g)
    expect(waits).toHaveLength(6)
    expect(await journalTexts()).toEqual(['one', 'two'])
  })

  it('does not wait for a limit of a day, and says when', async () => {
    await run('hook', 'add', 'octo/demo')
    await alone.sandbox.idle()
    alone.sandbox.faults.always('deliveries', answer(403, 'secondary rate limit', { 'Retry-After': '86400' }))
    expect(await run('catch-up')).toEqual(
      refused('The sandbox refused: secondary rate limit. Try again in 86400 s'),
    )
  })

  it('reads the other logs when one cannot be read, and then says why', async () => {
    for (const repo of ['octo/demo', 'octo/no-issues']) await run('hook', 'add', repo)
    await alone.sandbox.idle()
    const [hook] = await hooks()
    await provider.hooks.remove(token, REPO, hook?.id ?? 0)
    const why =
      'Could not catch up with octo/demo: octo/demo has no hook that leads here. Create it with relay hook add octo/demo'
    expect(await run('catch-up')).toEqual({
      code: 6,
      out: 'caught up with octo/no-issues: nothing was missing\n',
      err: `error: ${why}`,
    })
    const json = await alone.shell.run(['catch-up', '--dry-run', '--json'])
    expect([json.code, json.out, json.err]).toEqual([
      6,
      '',
      `would ask for 0 of octo/no-issues\n${JSON.stringify({ v: 1, type: 'error', code: 'no_match', error: why })}\n`,
    ])
  })

  it('names what fails again, with the reason, and gets the rest', async () => {
    await run('hook', 'add', 'octo/demo')
    await alone.sandbox.idle()
    const { url } = serving
    await serving[Symbol.asyncDispose]()
    for (const text of ['one', 'two']) await comment(text)
    const env = { ...alone.shell.env, RELAY_PORT: new URL(url).port }
    const broken = { ...env, RELAY_WEBHOOK_SECRET: 'another-secret' }
    serving = await serveFor(testContext({ env: broken }).context)
    const failed = await alone.shell.run(['catch-up', '--json'], { env: broken })
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
    await serving[Symbol.asyncDispose]()
    serving = await serveFor(testContext({ env }).context)
    alone.sandbox.faults.next('redeliver', answer(403, 'Must have admin rights to Repository.'))
    const rest = await run('catch-up')
    expect([rest.code, rest.out]).toEqual([
      8,
      expect.stringMatching(
        /^caught up with octo\/demo: 2 missing, 1 arrived, 1 could not be had \(issue_comment\.created of .*: The sandbox refused: Must have admin rights to Repository\.\)\n$/,
      ),
    ])
    expect(await journalTexts()).toEqual(['two'])
  })
})

describe('a log entry that is older than three days', () => {
  it('is left out, unless --since asks for it', async () => {
    const FOUR_DAYS_MS = 4 * 86_400_000
    const client = { id: 'relay-test', secret: 'client-secret-canary' }
    await using sandbox = await startSandbox({ client, clock: () => Date.now() - FOUR_DAYS_MS })
    const old = createProvider({ name: 'sandbox', url: sandbox.url })
    const granted = await sandbox.token('repo')
    const here = shell({ RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: sandbox.url })
    await keepToken(here, { accessToken: granted, origin: sandbox.url })
    await using relay = await serveFor(testContext({ env: { ...here.env, RELAY_PORT: '0' } }).context)
    await here.run(['hook', 'add', 'octo/demo'])
    await sandbox.idle()
    const [hook] = await old.hooks.list(granted, REPO)
    const url = `${relay.url}/webhook`
    const id = hook?.id ?? 0
    await old.hooks.change(granted, REPO, id, { url, secret: new Secret('other'), events: undefined })
    await old.comment(granted, { ...REPO, issueNumber: 1, body: 'old' })
    await sandbox.idle()
    const nothing = 'caught up with octo/demo: nothing was missing\n'
    expect(await here.run(['catch-up'])).toEqual({ code: 0, out: nothing, err: '' })
    await here.run(['hook', 'add', 'octo/demo'])
    expect((await here.run(['catch-up', '--since', '5d'])).out).toBe(
      'caught up with octo/demo: 1 missing, 1 arrived\n',
    )
  })
})

async function journalTexts(): Promise<string[]> {
  const { journal } = serving.relay
  const texts: string[] = []
  for (const { n, event } of await journal.after(0, 100)) {
    if (event !== 'issue_comment') continue
    const entry = await journal.read(n)
    texts.push(JSON.parse(Buffer.from(entry?.body ?? '').toString()).comment.body)
  }
  return texts
}
