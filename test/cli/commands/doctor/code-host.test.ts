import { describe, expect, it } from 'vitest'
import { startSandbox } from '../../../../src/testing/index.js'
import { testContext } from '../../../helpers/context.js'
import type { Answer, Received } from '../../../helpers/scripted-server.js'
import { closeAfter, codeHost, finding, gitea, profile, signIn } from './rig.js'
import { serveFor } from '../../rig.js'

/** What the check says of a code host of the kind `provider` that answers so; URL stands for its address. */
async function check(
  provider: string,
  answer: (request: Received) => Answer,
  path = '',
): Promise<readonly string[] | undefined> {
  const host = await codeHost(answer)
  const env = { RELAY_PROVIDER: provider, RELAY_PROVIDER_URL: `${host.url}${path}` }
  const found = await finding('code host', profile(env))
  return found?.map((text) => text.replaceAll(host.url, 'URL'))
}

/** Answers at one path only. */
const at =
  (path: string, answer: Answer) =>
  (request: Received): Answer =>
    request.path === path ? answer : { status: 404, body: '<h1>Not found</h1>' }

const github = { 'x-github-request-id': 'AB12' }
const swagger = { message: 'Only signed in user is allowed to call APIs.', url: 'URL/api/swagger' }

describe('the check of the code host', () => {
  it.each<[string, (request: Received) => Answer, string]>([
    ['gitea', gitea, 'URL is Gitea 1.21.0'],
    ['gitea', at('/api/v1/version', { body: { version: '7.0.5+gitea-1.21.11' } }), 'URL is Forgejo 7.0.5'],
    ['gitea', at('/api/v1/version', { status: 403, body: swagger }), 'URL is Gitea'],
    [
      'github',
      at('/api/v3/meta', { headers: github, body: { installed_version: '3.16.2' } }),
      'URL is GitHub Enterprise Server 3.16.2',
    ],
    [
      'github',
      at('/api/v3/meta', {
        status: 401,
        headers: { ...github, 'x-github-enterprise-version': 'enterprise-server@3.9.1' },
        body: { message: 'Must authenticate to access this API.' },
      }),
      'URL is GitHub Enterprise Server 3.9.1',
    ],
    ['github', at('/api/v3/meta', { status: 429, headers: github, body: {} }), 'URL is GitHub'],
  ])('names what it is: %s %#', async (provider, answer, text) => {
    expect(await check(provider, answer)).toEqual(['ok', text])
  })

  it('names the sandbox', async () => {
    await using sandbox = await startSandbox()
    const env = { RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: sandbox.url }
    expect(await finding('code host', profile(env))).toEqual(['ok', `${sandbox.url} is the sandbox`])
  })

  const elsewhere = 'check RELAY_PROVIDER_URL and its path'
  it.each<[string, string, (request: Received) => Answer, string, string]>([
    ['a web server', 'gitea', () => ({ body: '<html>It works!' }), '/api/v1/version gave 200', elsewhere],
    ['JSON of another kind', 'github', () => ({ body: { ok: true } }), '/api/v3/meta gave 200', elsewhere],
    [
      'a portal',
      'github',
      () => ({ status: 302, headers: { location: '/in' } }),
      '/api/v3/meta gave 302',
      elsewhere,
    ],
    [
      'a wrong path',
      'gitea',
      at('/git/api/v1/version', { body: { version: '1.21.0' } }),
      '/api/v1/version gave 404',
      elsewhere,
    ],
  ])('fails for %s', async (_, provider, answer, gave, fix) => {
    expect(await check(provider, answer)).toEqual([
      'fail',
      `URL answers, but not as ${provider}: URL${gave}`,
      fix,
    ])
  })

  it('fails for another kind, and names it', async () => {
    expect(await check('github', gitea)).toEqual([
      'fail',
      'URL is Gitea 1.21.0, not github',
      'set RELAY_PROVIDER=gitea',
    ])
    const meta = at('/api/v3/meta', { body: { installed_version: '3.16.2' } })
    expect(await check('gitea', meta)).toEqual([
      'fail',
      'URL is GitHub Enterprise Server 3.16.2, not gitea',
      'set RELAY_PROVIDER=github',
    ])
  })

  it('fails for a path at GitHub, which is at none', async () => {
    const answer = at('/octo/api/v3/meta', { body: { installed_version: '3.16.2' } })
    expect(await check('github', answer, '/octo')).toEqual([
      'fail',
      'URL/octo has a path, but GitHub Enterprise Server 3.16.2 has none',
      'set RELAY_PROVIDER_URL=URL',
    ])
  })
})

describe('the check of the token', () => {
  it('asks the code host whether it still works', async () => {
    const refused = await codeHost((request) =>
      request.path === '/api/v1/user'
        ? { status: 401, body: { message: 'token is required' } }
        : gitea(request),
    )
    const origin = refused.url
    const env = { RELAY_PROVIDER_URL: refused.url }
    expect(
      await finding(
        'token',
        profile(env, (store) => signIn(store, { origin })),
      ),
    ).toEqual(['fail', 'the code host rejects the token of ada', 'relay login --user ada'])
  })

  it('says when that could not be asked', async () => {
    const failing = await codeHost((request) =>
      request.path === '/api/v1/user' ? { status: 502 } : gitea(request),
    )
    const data = { origin: failing.url }
    expect(
      await finding(
        'token',
        profile({ RELAY_PROVIDER_URL: failing.url }, (store) => signIn(store, data)),
      ),
    ).toEqual([
      'skip',
      'the token of ada expires in 10 h; relay could not check that it works (Gitea failed (502))',
    ])
  })

  it.each([
    [30_500, '30 s'],
    [59 * 60_000 + 30_000, '59 min'],
    [119 * 60_000 + 30_000, '119 min'],
    [121 * 60_000, '2 h'],
    [49 * 3_600_000, '2 days'],
  ])('names the rest of its life: %i ms', async (ms, text) => {
    const host = await codeHost()
    const data = { origin: host.url, expiresAt: Date.now() + ms }
    expect(
      await finding(
        'token',
        profile({ RELAY_PROVIDER_URL: host.url }, (store) => signIn(store, data)),
      ),
    ).toEqual(['ok', `ada is signed in as octo; the token expires in ${text}`])
  })

  it('that has ended and cannot be renewed without the OAuth client', async () => {
    const ended = { expiresAt: Date.now() - 1, refreshToken: 'canary-refresh' }
    const env = { RELAY_CLIENT_ID: '', RELAY_CLIENT_SECRET: '' }
    expect(
      await finding(
        'token',
        profile(env, (store) => signIn(store, ended)),
      ),
    ).toEqual([
      'fail',
      'the token of ada has expired, and renewing it needs the OAuth client',
      'relay setup, or start the relay that has it',
    ])
  })
})

describe('the check of what the running instance has', () => {
  const NONE = { RELAY_CLIENT_ID: '', RELAY_CLIENT_SECRET: '' }

  /** A check of a profile that is served with this environment, made in a terminal with that one. */
  async function seen(
    served: Record<string, string>,
    terminal: Record<string, string>,
    check = 'OAuth client',
  ) {
    const { context } = await profile(served)
    closeAfter(await serveFor(context))
    return finding(check, Promise.resolve(testContext({ env: { ...context.env, ...terminal } })))
  }

  it('knows its limit for deliveries, and that it has the webhook secret', async () => {
    const served = { RELAY_MAX_BODY: '2000000' }
    const limit = 'accepts deliveries of up to 2,000,000 bytes (--max-body)'
    expect(await seen(served, { RELAY_MAX_BODY: '' }, 'webhook secret')).toEqual([
      'ok',
      `set, the same as process ${process.pid} has; ${limit}`,
    ])
    expect(await seen(served, { RELAY_MAX_BODY: '', RELAY_WEBHOOK_SECRET: '' }, 'webhook secret')).toEqual([
      'skip',
      `only process ${process.pid} has it, which ${limit}`,
    ])
  })

  it('knows its OAuth client', async () => {
    expect(await seen({}, NONE)).toEqual(['ok', `process ${process.pid} has client id client-id`])
  })

  it('knows that the running instance has none, whatever this terminal has', async () => {
    const terminal = { RELAY_CLIENT_ID: 'client-id', RELAY_CLIENT_SECRET: 'canary-client-secret' }
    expect(await seen(NONE, terminal)).toEqual([
      'fail',
      `process ${process.pid} has no OAuth client: sign-in is off`,
      'restart relay serve',
    ])
  })
})
