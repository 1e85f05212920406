import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { anywhere } from '../../src/base/command-line.js'
import { TokenEndpoint } from '../../src/auth/token-endpoint.js'
import { RelayError } from '../../src/base/errors.js'
import { PROVIDER_NAMES } from '../../src/base/source-names.js'
import { Secret } from '../../src/base/secret.js'
import type { Account } from '../../src/codehost/host.js'
import { openHost } from '../../src/codehost/hosts.js'
import { MERGE_COMMIT } from '../kit/gitea.js'
import { type Answer, type Asked, failure, ISSUE, PULL, type Reply, rig } from './codehost-rig.js'

const SHA = 'ab'.repeat(20)
const refusal = (status: number, message: string): Reply => ({ status, body: { message } })

describe('the address of a code host', () => {
  it.each([
    ['github', 'https://github.com/', 'https://api.github.com', 'https://github.com'],
    ['github', 'https://octo.ghe.com', 'https://api.octo.ghe.com', 'https://octo.ghe.com'],
    ['github', 'https://git.example.org', 'https://git.example.org/api/v3', 'https://git.example.org'],
    ['sandbox', 'http://localhost:3000', 'http://localhost:3000/api/v3', 'http://localhost:3000'],
    ['gitea', 'https://x.org/git/', 'https://x.org/git/api/v1', 'https://x.org'],
  ] as const)('%s at %s', async (name, url, apiUrl, origin) => {
    const host = await openHost({ name, url })
    expect([host.apiUrl, host.origin, host.url]).toEqual([apiUrl, origin, url.replace(/\/$/, '')])
  })

  it('is refused without encryption, with more than an address, or of another kind', async () => {
    for (const url of [
      'http://github.com',
      'https://a:b@x.org',
      'https://x.org?a',
      'https://x.org#a',
      'x.org',
      'ftp://x',
    ])
      await expect(openHost({ name: 'github', url })).rejects.toThrow(/^The provider's address must/)
  })

  it('has its issuer where that is known, and the only scopes that all actions need', async () => {
    const github = (await openHost({ name: 'github', url: 'https://github.com' })).oauth
    expect([github.issuer, github.scopes]).toEqual(['https://github.com/login/oauth', ['repo']])
    expect((await openHost({ name: 'github', url: 'https://ghes.example' })).oauth.issuer).toBeUndefined()
    const gitea = (await openHost({ name: 'gitea', url: 'https://x.org/git' })).oauth
    expect(gitea).toEqual({
      authorizationEndpoint: 'https://x.org/git/login/oauth/authorize',
      tokenEndpoint: 'https://x.org/git/login/oauth/access_token',
      issuer: undefined,
      scopes: ['write:issue', 'write:repository', 'read:user'],
    })
  })
})

describe('the software at an address', () => {
  const ghes = { 'x-github-enterprise-version': 'enterprise-server@3.14.2', 'x-github-request-id': 'A1' }
  const meta = { 'x-gitlab-meta': '{}' }
  it.each<['github' | 'gitea' | 'gitlab', number, Record<string, string>, unknown, string | undefined]>([
    ['github', 200, {}, { resources: {} }, 'GitHub'],
    ['github', 200, {}, { installed_version: '3.14.2' }, 'GitHub Enterprise Server 3.14.2'],
    ['github', 401, ghes, {}, 'GitHub Enterprise Server 3.14.2'],
    ['github', 429, { 'x-github-request-id': 'A1' }, undefined, 'GitHub'],
    ['github', 401, {}, {}, undefined],
    ['github', 200, {}, undefined, undefined],
    ['gitea', 200, {}, { version: '1.21.0' }, 'Gitea 1.21.0'],
    ['gitea', 200, {}, { version: '7.0.1+gitea-1.22.0' }, 'Forgejo 7.0.1'],
    ['gitea', 403, {}, { url: 'https://x/api/swagger' }, 'Gitea'],
    ['gitea', 404, {}, { version: '1.21.0' }, undefined],
    ['gitlab', 401, meta, { message: '401 Unauthorized' }, 'GitLab'],
    ['gitlab', 200, meta, { version: '19.1.0-ee' }, 'GitLab 19.1.0-ee'],
    ['gitlab', 401, {}, { message: '401 Unauthorized' }, undefined],
    ['gitlab', 404, meta, {}, undefined],
  ])('%s: %i %j %j is %s', async (name, status, headers, json, software) => {
    const { recognise } = (await openHost({ name, url: 'https://x.org' })).probe
    expect(recognise({ status, header: (key) => headers[key], json })).toBe(software)
  })
})

it.each(PROVIDER_NAMES)(
  '%s that is not to be called rejects every call, and is sent nothing',
  async (name) => {
    const why = new RelayError('settings', 'only the folder names it')
    const sent: string[] = []
    const sendOnce = async (address: string): Promise<never> => {
      sent.push(address)
      throw new Error('it was called')
    }
    const host = await openHost({ name, url: 'https://git.example', refusal: why, sendOnce })
    const user = host.as('token')
    const app = host.apps?.as({ id: 1, slug: 'relay', privateKey: new Secret('key') }, { command: anywhere })
    const client = { id: 'client', secret: new Secret('secret') }
    const hook = { url: 'https://relay.example', secret: client.secret, events: undefined }
    const calls: readonly (() => Promise<unknown> | undefined)[] = [
      () => user.facts(),
      () => user.comment(ISSUE, 'text'),
      () => user.comments(ISSUE)[Symbol.asyncIterator]().next(),
      () => user.editComment(ISSUE, 1, 'text'),
      () => user.headChecks(PULL),
      () => user.merge(PULL),
      () => user.react(ISSUE, '+1'),
      () => user.revoke?.(client),
      () => user.hooks.list(ISSUE),
      () => user.hooks.create(ISSUE, hook),
      () => user.hooks.change(ISSUE, 1, hook, { sameSecret: false }),
      () => user.hooks.remove(ISSUE, 1),
      () => user.hooks.test(ISSUE, 1),
      () => user.hooks.log?.(ISSUE, 1).page(),
      () => user.hooks.log?.(ISSUE, 1).redeliver('1'),
      () => host.register?.('token', { name: 'relay', redirectUri: 'http://127.0.0.1:1/' }),
      () => host.apps?.convert('code'),
      () => app?.describe(),
      () => app?.isInstalled(ISSUE),
      () => app?.hook(),
      () => app?.changeHook({ secret: client.secret }),
      () => app?.log.page(),
    ]
    const made = calls.flatMap((call) => call() ?? [])
    const ends = await Promise.allSettled(made)
    expect(ends).toEqual(made.map(() => ({ status: 'rejected', reason: why })))
    expect(() => new TokenEndpoint(host, client)).toThrow(why)
    expect(sent).toEqual([])
  },
)

describe('what is sent', () => {
  const comment = { kind: 'comment', id: 5 } as const
  const at = '/repos/octo/demo'
  const options = { method: 'squash', title: 'T', message: 'M', sha: SHA } as const
  const done: Reply = { body: { merged: true, sha: SHA, merge_commit_sha: MERGE_COMMIT, head: { sha: SHA } } }

  const allOfGitea = { Do: 'squash', MergeTitleField: 'T', MergeMessageField: 'M', head_commit_id: SHA }
  const later = { Do: 'merge', merge_when_checks_succeed: true }
  const unmerged: Reply = { status: 201, body: { head: { sha: SHA } } }
  const [put, post] = [`PUT ${at}/pulls/8/merge`, `POST ${at}/pulls/8/merge`]
  const [onIssue, onComment] = [`POST ${at}/issues/7/reactions`, `POST ${at}/issues/comments/5/reactions`]
  const made = (created: boolean) => ({ id: null, content: '+1', created })
  const plus = { content: '+1' }
  const added: Reply = { status: 201, body: plus }
  const wasThere: Reply = { body: plus }

  it.each<['github' | 'gitea', Reply, (account: Account) => Promise<unknown>, string, unknown, unknown]>([
    ['github', done, (a) => a.merge(PULL), put, {}, { merged: true, sha: SHA }],
    ['gitea', done, (a) => a.merge(PULL), post, { Do: 'merge' }, { merged: true, sha: MERGE_COMMIT }],
    ['gitea', unmerged, (a) => a.merge(PULL, options), post, allOfGitea, { merged: false, sha: null }],
    ['gitea', unmerged, (a) => a.merge(PULL, { auto: true }), post, later, { merged: false, sha: null }],
    ['gitea', added, (a) => a.react(ISSUE, '+1'), onIssue, plus, made(true)],
    ['gitea', wasThere, (a) => a.react(ISSUE, '+1', comment), onComment, plus, made(false)],
  ])('%s %#', async (name, answer, act, line, json, result) => {
    const { account, asked } = await rig(answer, { name })
    expect(await act(account)).toEqual(result)
    const write = asked.find(({ method }) => method !== 'GET')
    expect([write?.line, write?.json]).toEqual([line, json])
  })

  it('no merge that GitHub should make later', async () => {
    const { account, asked } = await rig(done)
    expect(await failure(account.merge(PULL, { auto: true }))).toMatchObject({ kind: 'unprocessable' })
    expect(asked).toEqual([])
  })

  it("the statuses of a fork's own project, which need not be visible", async () => {
    const common = { state: 'opened', sha: SHA, source_project_id: 9, target_project_id: 7 }
    const job = (id: number, name: string, status: string) => ({ id, name, status, allow_failure: false })
    const of = async (ofFork: Reply) =>
      await rig(
        ({ line }) =>
          line.includes('/projects/9/')
            ? ofFork
            : {
                body: line.includes('/statuses')
                  ? [job(1, 'ci', 'success'), job(2, 'lint', 'success')]
                  : common,
              },
        { name: 'gitlab' },
      )
    const there = await of({ body: [job(3, 'lint', 'failed')] })
    const ok = { name: 'ci', state: 'succeeded', says: 'success' }
    const checks = [ok, { name: 'lint', state: 'failed', says: 'failed' }]
    expect(await there.account.headChecks(PULL)).toEqual({ sha: SHA, checks })
    const hidden = await of({ status: 404, body: { message: '404 Project Not Found' } })
    const seen = [ok, { name: 'lint', state: 'succeeded', says: 'success' }]
    expect(await hidden.account.headChecks(PULL)).toEqual({ sha: SHA, checks: seen })
    const failed = await of({ status: 502, body: '' })
    expect(await failure(failed.account.headChecks(PULL))).toMatchObject({ kind: 'provider_failed' })
  })

  it.each([
    [404, { kind: 'not_found' }],
    [200, { kind: 'provider_failed', message: expect.stringContaining('Gitea failed (500)') }],
  ])('a comment that Gitea answers with 500 is explained by the issue: %i', async (status, error) => {
    const answer = ({ method }: Asked): Answer => (method === 'GET' ? { status } : { status: 500 })
    expect(await failure((await rig(answer, { name: 'gitea' })).account.comment(ISSUE, 'x'))).toMatchObject(
      error,
    )
  })

  it('a head that has moved is not merged at Gitea, which may not know the guard', async () => {
    const { account, lines } = await rig({ body: { head: { sha: 'c'.repeat(40) } } }, { name: 'gitea' })
    expect(await failure(account.merge(PULL, options))).toMatchObject({ kind: 'conflict' })
    expect(lines()).toEqual([`GET ${at}/pulls/8`])
  })
})

describe('a merge that is refused', () => {
  const open = (fields: object): Reply => ({ body: { state: 'open', merged: false, ...fields } })
  const closed = { body: { state: 'closed', merged: false, mergeable: true } }
  const missing = refusal(404, 'Not Found')
  const generic = refusal(405, 'no')
  const mayNot = 'Not merged: this account or its token may not merge it'
  const hidden = ' (no such repository or number, or no access to it)'
  const state = (mergeable_state: string) => open({ mergeable_state })
  const [mergeable, unmergeable] = [open({ mergeable: true }), open({ mergeable: false })]
  const notAllowed = 'User not allowed to merge PR'
  const draft = 'Work in progress PRs cannot be merged'
  /** Name of the code host, its answer to the merge, what it shows of the pull request, and what is said. */
  it.each<['github' | 'gitea', Answer, Answer, why: string, kind?: string]>([
    ['github', generic, closed, 'Not merged: it is closed'],
    ['github', generic, state('behind'), 'Not merged: its branch must first be brought up to date with'],
    ['github', generic, state('blocked'), 'Not merged: approvals or checks are missing (GitHub: no)'],
    ['github', generic, state('draft'), 'Not merged: it is a draft (GitHub: no)'],
    ['github', generic, state('unknown'), 'Not merged: the code host is still checking whether it'],
    ['github', generic, state('clean'), 'GitHub refused: no'],
    ['github', generic, 'reset', 'GitHub refused: no'],
    ['github', generic, { body: [] }, 'GitHub refused: no'],
    ['gitea', missing, closed, 'Not merged: it is closed'],
    ['gitea', refusal(405, draft), unmergeable, `Not merged: it is a draft (Gitea: ${draft})`],
    ['gitea', generic, unmergeable, 'it conflicts with its base branch, or the code host is'],
    ['gitea', refusal(405, 'no [reason: x]'), mergeable, 'Gitea refused: no [reason: x]'],
    ['github', missing, mergeable, `${mayNot} (GitHub: Not Found)`, 'forbidden'],
    ['gitea', refusal(405, notAllowed), mergeable, `${mayNot} (Gitea: ${notAllowed})`, 'forbidden'],
    ['github', missing, missing, `GitHub refused: Not Found${hidden}`, 'not_found'],
    ['gitea', missing, missing, `Gitea refused: Not Found${hidden}`, 'not_found'],
  ])('the pull request of %s says why, %#', async (name, write, read, why, kind = 'conflict') => {
    const { account, asked } = await rig(({ method }) => (method === 'GET' ? read : write), { name })
    const message = expect.stringContaining(why)
    expect(await failure(account.merge(PULL))).toMatchObject({ kind, message })
    expect(asked.filter(({ method }) => method !== 'GET')).toHaveLength(1)
  })
})

/** Pages; with `next`, each names the following one. */
function paged(pages: readonly (object | string)[], next: boolean) {
  return ({ url }: Asked): Reply => {
    const page = Number(new URL(url).searchParams.get('page'))
    const link = `<https://x/?page=${page + 1}>; rel="next"`
    return { body: pages[page - 1] ?? '', headers: next && page < pages.length ? { link } : {} }
  }
}

describe('the checks of a head', () => {
  const ask = async (name: 'github' | 'gitea', answers: Record<string, (asked: Asked) => Reply>) => {
    const { account, lines } = await rig(
      (asked) => {
        const [place = ''] = asked.line.split('?')
        const [, answer] = Object.entries(answers).find(([end]) => place.endsWith(end)) ?? []
        return answer?.(asked) ?? { status: 404 }
      },
      { name },
    )
    return { result: await account.headChecks(PULL).catch((error: unknown) => error), lines: lines() }
  }
  const head = (): Reply => ({ body: { head: { sha: SHA } } })
  const run = (name: string, status: string, conclusion: string | null) => ({ name, status, conclusion })

  it('are at GitHub all check runs and statuses, from every page', async () => {
    const ended = 'success neutral skipped failure cancelled timed_out action_required stale'
    const pages = [
      { check_runs: ended.split(' ').map((conclusion) => run(conclusion, 'completed', conclusion)) },
      { check_runs: ['queued', 'in_progress', 'waiting'].map((status) => run(status, status, null)) },
    ]
    const statuses = ['success', 'pending', 'failure', 'error'].map((state) => ({ context: state, state }))
    const { result } = await ask('github', {
      '/pulls/8': head,
      '/check-runs': paged(pages, true),
      '/status': paged([{ statuses }], true),
    })
    const states = 'succeeded succeeded succeeded failed failed failed failed failed pending pending pending'
    const all = `${states} succeeded pending failed failed`.split(' ')
    expect(result).toMatchObject({ sha: SHA, checks: all.map((state) => ({ state })) })
  })

  it('are at Gitea read until a page brings nothing new, empty or null', async () => {
    const status = (context: string, state: string) => ({ context, status: state })
    const first = { statuses: [status('build', 'success'), status('lint', 'warning')] }
    const second = { statuses: [status('e2e', 'pending'), status('docs', 'skipped')] }
    const { result, lines } = await ask('gitea', {
      '/pulls/8': head,
      '/status': paged([first, second, { statuses: null }], false),
    })
    const checks = [
      { name: 'build', state: 'succeeded', says: 'success' },
      { name: 'lint', state: 'failed', says: 'warning' },
      { name: 'e2e', state: 'pending', says: 'pending' },
      { name: 'docs', state: 'succeeded', says: 'skipped' },
    ]
    expect(result).toEqual({ sha: SHA, checks })
    expect(lines).toHaveLength(4)
    const none = await ask('gitea', { '/pulls/8': head, '/status': () => ({}) })
    expect(none.result).toEqual({ sha: SHA, checks: [] })
    const same = await ask('gitea', { '/pulls/8': head, '/status': () => ({ body: first }) })
    expect(same.lines).toHaveLength(3)
  })
})

describe('a token', () => {
  const date = '2026-12-31 23:59:59'
  const expiry = 'github-authentication-token-expiration'
  it.each<[string, Record<string, string>, readonly string[] | undefined, string | undefined]>([
    ['gho_x', { 'x-oauth-scopes': 'repo, user' }, ['repo', 'user'], undefined],
    ['ghp_x', {}, [], undefined],
    ['github_pat_x', { [expiry]: `${date} UTC` }, undefined, '2026-12-31T23:59:59Z'],
    ['ghp_x', { 'x-oauth-scopes': 'repo', [expiry]: `${date} +0200` }, ['repo'], '2026-12-31T21:59:59Z'],
    ['gho_x', { [expiry]: 'soon' }, undefined, undefined],
  ])('%s with %j', async (token, headers, scopes, expires) => {
    const { host } = await rig({ headers, body: { login: 'mona' } })
    const expiresAt = expires === undefined ? undefined : Date.parse(expires)
    expect(await host.as(token).facts()).toEqual({ login: 'mona', scopes, expiresAt })
  })
})

it('an App is itself by a token that GitHub takes, also where the clock here is a minute ahead', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = new Secret(String(privateKey.export({ type: 'pkcs8', format: 'pem' })))
  const { host, asked } = await rig({ body: {} })
  const now = Date.now() / 1000
  await host.apps?.as({ id: 12, slug: 'relay-x', privateKey: key }, { command: anywhere }).hook()
  const [, claims = ''] = asked[0]?.headers['authorization']?.split('.') ?? []
  const { iss, iat, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  expect([iss, iat - now < -59, exp - now < 541, exp - now > 500]).toEqual(['12', true, true, true])
})

it('the key of an App that is none is not quoted', async () => {
  const app = { id: 12, slug: 'relay-x', privateKey: new Secret('-----BEGIN not a key') }
  const { host } = await rig({})
  const call = host.apps?.as(app, { command: anywhere }).hook() ?? Promise.resolve()
  const message = 'The stored key of the App is unusable. Run relay setup again'
  expect(await failure(call)).toEqual(new RelayError('settings', message))
})
