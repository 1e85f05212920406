import { describe, expect, it } from 'vitest'
import { createProvider } from '../../src/providers/open.js'
import type { Comment } from '../../src/providers/provider.js'
import { type Received, type Reply, scriptedServer } from '../helpers/scripted-server.js'

const TOKEN = 'gho_canary_0123456789'
const SHA = 'ab'.repeat(20)
const pull = { owner: 'octo', repo: 'demo', pullNumber: 2 }
const issue = { owner: 'octo', repo: 'demo', issueNumber: 7 }

/** What a code host that has these pages answers: `next` names the following one, as GitHub does. */
const paged =
  (pages: readonly object[], next = true) =>
  ({ path }: Received): Reply => {
    const url = new URL(path, 'http://x')
    const page = Number(url.searchParams.get('page'))
    const link = `<${url.origin}${url.pathname}?page=${page + 1}>; rel="next", <${url.href}>; rel="last"`
    return {
      body: pages[page - 1] ?? {},
      headers: next && page < pages.length ? { link } : {},
    }
  }

async function ask(
  name: 'github' | 'gitea',
  answers: Readonly<Record<string, (request: Received) => Reply>>,
) {
  await using server = await scriptedServer((request) => {
    const found = Object.entries(answers).find(([end]) => request.path.split('?')[0]?.endsWith(end))
    return found ? found[1](request) : { status: 404, body: {} }
  })
  const provider = createProvider({ name, url: server.url })
  const result = await provider.headChecks(TOKEN, pull).catch((error: unknown) => error)
  return { result, paths: server.received.map(({ path }) => path.replace(/^.*?\/repos\/octo\/demo/, '')) }
}

const head = (): Reply => ({ body: { number: 2, head: { sha: SHA } } })
const run = (name: string, status: string, conclusion: string | null) => ({ name, status, conclusion })

describe('the checks of a head at GitHub', () => {
  it('are all check runs and statuses, from every page', async () => {
    const runs = [
      run('build', 'completed', 'success'),
      run('lint', 'completed', 'neutral'),
      run('docs', 'completed', 'skipped'),
    ]
    const more = ['failure', 'cancelled', 'timed_out', 'action_required', 'stale', 'startup_failure'].map(
      (conclusion) => run(conclusion, 'completed', conclusion),
    )
    const open = ['queued', 'in_progress', 'waiting', 'requested', 'pending'].map((status) =>
      run(status, status, null),
    )
    const statuses = ['success', 'pending', 'failure', 'error'].map((state) => ({
      context: `s/${state}`,
      state,
    }))
    const { result, paths } = await ask('github', {
      '/pulls/2': head,
      '/check-runs': paged([{ check_runs: runs }, { check_runs: more }, { check_runs: open }]),
      '/status': paged([{ statuses: statuses.slice(0, 1) }, { statuses: statuses.slice(1) }]),
    })
    const named = (name: string, state: string, says = name) => ({ name, state, says })
    expect(result).toEqual({
      sha: SHA,
      checks: [
        named('build', 'succeeded', 'success'),
        named('lint', 'succeeded', 'neutral'),
        named('docs', 'succeeded', 'skipped'),
        ...more.map(({ name }) => named(name, 'failed')),
        ...open.map(({ name }) => named(name, 'pending')),
        named('s/success', 'succeeded', 'success'),
        named('s/pending', 'pending', 'pending'),
        named('s/failure', 'failed', 'failure'),
        named('s/error', 'failed', 'error'),
      ],
    })
    expect(paths.toSorted()).toEqual([
      `/commits/${SHA}/check-runs?per_page=50&page=1`,
      `/commits/${SHA}/check-runs?per_page=50&page=2`,
      `/commits/${SHA}/check-runs?per_page=50&page=3`,
      `/commits/${SHA}/status?per_page=50&page=1`,
      `/commits/${SHA}/status?per_page=50&page=2`,
      '/pulls/2',
    ])
  })

  it.each([
    ['a head that is no commit', { '/pulls/2': () => ({ body: { head: { sha: '../main' } } }) }],
    ['no list', { '/pulls/2': head, '/check-runs': () => ({ body: {} }), '/status': () => ({ body: {} }) }],
  ])('are an error with %s', async (_, answers) => {
    expect((await ask('github', answers)).result).toMatchObject({ kind: 'provider_failed' })
  })

  it('are an error when they never end', async () => {
    const endless = paged(Array.from({ length: 99 }, () => ({ check_runs: [], statuses: [] })))
    const { result, paths } = await ask('github', {
      '/pulls/2': head,
      '/check-runs': endless,
      '/status': endless,
    })
    expect(result).toMatchObject({
      kind: 'unprocessable',
      message: 'GitHub lists more than relay reads (50 pages)',
    })
    expect(paths.length).toBeLessThanOrEqual(101)
  })
})

describe('the statuses of a head at Gitea', () => {
  const status = (context: string, state: string) => ({ context, status: state })

  it('are read until a page brings nothing new', async () => {
    const { result, paths } = await ask('gitea', {
      '/pulls/2': head,
      '/status': paged(
        [
          { statuses: [status('build', 'success'), status('lint', 'warning')] },
          { statuses: [status('e2e', 'pending'), status('docs', 'skipped')] },
          { statuses: null },
        ],
        false,
      ),
    })
    expect(result).toEqual({
      sha: SHA,
      checks: [
        { name: 'build', state: 'succeeded', says: 'success' },
        { name: 'lint', state: 'failed', says: 'warning' },
        { name: 'e2e', state: 'pending', says: 'pending' },
        { name: 'docs', state: 'succeeded', says: 'skipped' },
      ],
    })
    expect(paths).toEqual([
      '/pulls/2',
      ...[1, 2, 3].map((page) => `/commits/${SHA}/status?limit=50&page=${page}`),
    ])
  })

  it('are none in the empty answer of 1.15, and end where the same page comes again', async () => {
    const none = await ask('gitea', { '/pulls/2': head, '/status': () => ({ body: '' }) })
    expect(none.result).toEqual({ sha: SHA, checks: [] })
    const same = await ask('gitea', {
      '/pulls/2': head,
      '/status': () => ({ body: { statuses: [status('build', 'success')] } }),
    })
    expect(same.paths).toHaveLength(3)
  })
})

describe.each(['github', 'gitea'] as const)('the comments of an issue at %s', (name) => {
  it('are listed page by page, and edited', async () => {
    const comment = (id: number, login: string | null, body: string | null = 'x') => ({
      id,
      html_url: `https://x/issues/7#issuecomment-${id}`,
      body,
      user: login === null ? null : { login },
    })
    const pages = paged([[comment(1, 'mona')], [comment(2, null, null)]])
    await using server = await scriptedServer((request) =>
      request.method === 'PATCH' ? { body: comment(2, 'mona') } : pages(request),
    )
    const provider = createProvider({ name, url: server.url })
    const found: Comment[] = []
    for await (const each of provider.comments(TOKEN, issue)) found.push(each)
    expect(found).toEqual([
      { id: 1, url: 'https://x/issues/7#issuecomment-1', author: 'mona', body: 'x' },
      { id: 2, url: 'https://x/issues/7#issuecomment-2', author: undefined, body: '' },
    ])
    const edit = { owner: 'octo', repo: 'demo', commentId: 2, body: 'new' }
    expect(await provider.editComment(TOKEN, edit)).toEqual({
      id: 2,
      url: 'https://x/issues/7#issuecomment-2',
    })
    const base = name === 'github' ? '/api/v3' : '/api/v1'
    expect(server.received.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['GET', `${base}/repos/octo/demo/issues/7/comments?per_page=50&page=1`, ''],
      ['GET', `${base}/repos/octo/demo/issues/7/comments?per_page=50&page=2`, ''],
      ['PATCH', `${base}/repos/octo/demo/issues/comments/2`, '{"body":"new"}'],
    ])
  })
})

describe('what a code host says about a token', () => {
  const facts = async (name: 'github' | 'gitea', token: string, headers: Record<string, string>) => {
    await using server = await scriptedServer(() => ({ body: { login: 'mona' }, headers }))
    return await createProvider({ name, url: server.url }).inspectToken(token)
  }
  const at = (text: string) => ({ 'github-authentication-token-expiration': text })

  it.each([
    ['github', 'ghp_x', { 'x-oauth-scopes': 'repo, gist' }, ['repo', 'gist'], undefined],
    ['github', 'ghp_x', { 'x-oauth-scopes': '' }, [], undefined],
    ['github', 'github_pat_x', {}, undefined, undefined],
    ['github', 'ghu_x', { 'x-oauth-scopes': '' }, undefined, undefined],
    ['github', 'github_pat_x', at('2026-12-31 23:59:59 UTC'), undefined, Date.UTC(2026, 11, 31, 23, 59, 59)],
    [
      'github',
      'github_pat_x',
      at('2026-12-31 23:59:59 +0530'),
      undefined,
      Date.UTC(2026, 11, 31, 18, 29, 59),
    ],
    ['github', 'github_pat_x', at('2026-99-31 23:59:59 UTC'), undefined, undefined],
    ['github', 'github_pat_x', at('never'), undefined, undefined],
    ['gitea', 'x', { 'x-oauth-scopes': 'repo', ...at('2026-12-31 23:59:59 UTC') }, undefined, undefined],
  ] as const)('%s %s %j', async (name, token, headers, scopes, expiresAt) => {
    expect(await facts(name, token, headers)).toEqual({ login: 'mona', scopes, expiresAt })
  })
})
