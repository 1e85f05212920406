import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { SendOnce } from '../../../src/net/client.js'
import { createProvider } from '../../../src/providers/open.js'
import type { Provider } from '../../../src/providers/provider.js'
import { scriptedServer, type Reply } from '../../helpers/scripted-server.js'

const TOKEN = 'gho_canary_0123456789'
const issue = { owner: 'octo', repo: 'demo', issueNumber: 7 }
const pull = { owner: 'octo', repo: 'demo', pullNumber: 8 }

const github = (url: string): Provider => createProvider({ name: 'github', url })

/** The one call that `act` makes, and what came of it, when the server gives that answer. */
async function ask<T>(answer: Reply, act: (provider: Provider) => Promise<T>) {
  await using server = await scriptedServer(() => answer)
  const result = await act(github(server.url))
  return { result, received: server.received }
}

const commented = {
  status: 201,
  body: { id: 5, html_url: 'https://github.com/octo/demo/issues/7#issuecomment-5' },
}

describe('what is sent', () => {
  it('comments on an issue', async () => {
    const { result, received } = await ask(commented, (p) =>
      p.comment(TOKEN, { ...issue, body: 'Hé 👋\n\u001b[0m' }),
    )
    expect(result).toEqual({ id: 5, url: 'https://github.com/octo/demo/issues/7#issuecomment-5' })
    expect(received).toEqual([
      {
        method: 'POST',
        path: '/api/v3/repos/octo/demo/issues/7/comments',
        body: JSON.stringify({ body: 'Hé 👋\n\u001b[0m' }),
        headers: expect.objectContaining({
          accept: 'application/vnd.github+json',
          authorization: `Bearer ${TOKEN}`,
          'content-type': 'application/json',
          'user-agent': 'webhook-relay',
          'x-github-api-version': '2022-11-28',
        }),
      },
    ])
  })

  it('merges with every option, and with none', async () => {
    const answer = { body: { sha: 'abc', merged: true, message: 'Pull Request successfully merged' } }
    const options = { method: 'squash', title: 'T', message: 'M', sha: 'f'.repeat(40) } as const
    const full = await ask(answer, (p) => p.merge(TOKEN, { ...pull, ...options }))
    const bare = await ask(answer, (p) => p.merge(TOKEN, pull))
    expect([full.result, bare.result]).toEqual([
      { merged: true, sha: 'abc' },
      { merged: true, sha: 'abc' },
    ])
    expect(
      [full.received[0], bare.received[0]].map((r) => [r?.method, r?.path, JSON.parse(r?.body ?? '')]),
    ).toEqual([
      [
        'PUT',
        '/api/v3/repos/octo/demo/pulls/8/merge',
        { merge_method: 'squash', commit_title: 'T', commit_message: 'M', sha: 'f'.repeat(40) },
      ],
      ['PUT', '/api/v3/repos/octo/demo/pulls/8/merge', {}],
    ])
  })

  it.each([
    [{}, '/api/v3/repos/octo/demo/issues/7/reactions'],
    [{ commentId: 3 }, '/api/v3/repos/octo/demo/issues/comments/3/reactions'],
    [{ reviewCommentId: 4 }, '/api/v3/repos/octo/demo/pulls/comments/4/reactions'],
  ])('reacts %j', async (on, path) => {
    const act = (p: Provider) => p.react(TOKEN, { ...issue, ...on, content: '+1' })
    const made = await ask({ status: 201, body: { id: 9, content: '+1' } }, act)
    const there = await ask({ status: 200, body: { id: 9, content: '+1' } }, act)
    expect(made.received.map((r) => [r.method, r.path, r.body])).toEqual([['POST', path, '{"content":"+1"}']])
    expect(made.result).toEqual({ id: 9, content: '+1', created: true })
    expect(there.result).toEqual({ id: 9, content: '+1', created: false })
  })

  it('returns the account of the token', async () => {
    const { result, received } = await ask({ body: { login: 'mona', id: 1 } }, (p) => p.whoAmI(TOKEN))
    expect(result).toEqual({ login: 'mona' })
    expect(received.map((r) => [r.method, r.path, r.body])).toEqual([['GET', '/api/v3/user', '']])
    expect(received[0]?.headers['content-type']).toBeUndefined()
  })
})

describe('names in paths', () => {
  it.each(['..', '.', ''])('refuses %j before anything is sent', async (owner) => {
    await using server = await scriptedServer(() => commented)
    await expect(github(server.url).comment(TOKEN, { ...issue, owner, body: 'x' })).rejects.toMatchObject({
      kind: 'bad_request',
    })
    expect(server.received).toEqual([])
  })

  it('encodes everything else', async () => {
    const { received } = await ask(commented, (p) =>
      p.comment(TOKEN, { ...issue, owner: '../a?b#c%2e', body: 'x' }),
    )
    expect(received[0]?.path).toBe('/api/v3/repos/..%2Fa%3Fb%23c%252e/demo/issues/7/comments')
  })
})

describe('what GitHub refuses', () => {
  const doubt = '; the request may have been carried out all the same'
  const notMergeable = {
    message: 'Pull Request is not mergeable',
    documentation_url: 'https://docs',
    status: '405',
  }
  const moved = { message: 'Head branch was modified. Review and try the merge again.' }
  const invalid = {
    message: 'Validation Failed',
    errors: [
      { resource: 'IssueComment', field: 'body', code: 'missing_field' },
      'body is too long',
      { code: 'custom', message: 'no' },
    ],
  }
  it.each<[Reply, string, string]>([
    [{ status: 401, body: { message: 'Bad credentials' } }, 'invalid_token', 'Invalid or expired token'],
    [{ status: 403, body: { message: 'Issue is locked' } }, 'forbidden', 'GitHub refused: Issue is locked'],
    [
      { status: 404, body: { message: 'Not Found' } },
      'not_found',
      'GitHub refused: Not Found (no such repository or number, or no access to it)',
    ],
    [{ status: 405, body: notMergeable }, 'conflict', 'GitHub refused: Pull Request is not mergeable'],
    [{ status: 409, body: moved }, 'conflict', `GitHub refused: ${moved.message}`],
    [
      { status: 410, body: { message: 'Issues are disabled' } },
      'gone',
      'GitHub refused: Issues are disabled',
    ],
    [
      { status: 422, body: invalid },
      'unprocessable',
      'GitHub refused: Validation Failed (IssueComment.body: missing_field, body is too long, no)',
    ],
    [{ status: 451, body: '' }, 'unprocessable', 'GitHub refused: status 451'],
    [
      { status: 500, body: { message: 'Server Error' } },
      'provider_failed',
      `GitHub failed (500): Server Error${doubt}`,
    ],
    [{ status: 502, body: '<html><h1>Bad gateway</h1>' }, 'provider_failed', `GitHub failed (502)${doubt}`],
    [{ status: 503, body: '[1]' }, 'provider_failed', `GitHub failed (503)${doubt}`],
  ])('%j', async (answer, kind, message) => {
    await using server = await scriptedServer(() => answer)
    const merged = github(server.url).merge(TOKEN, pull)
    await expect(merged).rejects.toMatchObject({ kind, message, retryAfter: undefined })
    expect(server.received.filter(({ method }) => method !== 'GET')).toHaveLength(1)
  })

  it('is reported in one line, without control characters or the token', async () => {
    const message = `a\u0007\u202eb\n\u001b[31mc ${TOKEN} ${'x'.repeat(400)}`
    await using server = await scriptedServer(() => ({ status: 422, body: { message } }))
    const error: unknown = await github(server.url)
      .merge(TOKEN, pull)
      .catch((e: unknown) => e)
    const expected = `a`.concat('b [31mc [secret] ', 'x'.repeat(400)).slice(0, 299)
    expect(error).toMatchObject({ message: `GitHub refused: ${expected}…` })
  })
})

describe('rate limits', () => {
  const date = 'Fri, 20 Nov 2026 10:00:00 GMT'
  const reset = String(Date.parse(date) / 1000 + 90)
  const primary = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset, date }
  const limit = { message: 'API rate limit exceeded' }
  const secondary = { message: 'You have exceeded a secondary rate limit.' }
  it.each<[Reply & { body: { message: string } }, number]>([
    [{ status: 403, headers: primary, body: limit }, 90],
    [{ status: 429, headers: primary, body: limit }, 90],
    [{ status: 403, headers: { ...primary, 'x-ratelimit-reset': '1' }, body: limit }, 1],
    [{ status: 403, headers: { 'retry-after': '7' }, body: secondary }, 7],
    [{ status: 429, headers: { 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT', date }, body: secondary }, 30],
    [{ status: 403, headers: { 'x-ratelimit-remaining': '12' }, body: secondary }, 60],
    [{ status: 429, headers: { 'retry-after': 'soon' }, body: secondary }, 60],
    [{ status: 429, headers: { 'retry-after': '9'.repeat(30) }, body: secondary }, 86_400],
  ])('%j', async (answer, retryAfter) => {
    await using server = await scriptedServer(() => answer)
    await expect(github(server.url).comment(TOKEN, { ...issue, body: 'x' })).rejects.toMatchObject({
      kind: 'rate_limited',
      message: `GitHub refused: ${answer.body.message}`,
      retryAfter,
    })
    expect(server.received).toHaveLength(1)
  })

  it('is not what every 403 means', async () => {
    const answer = { status: 403, headers: { 'x-ratelimit-remaining': '12' }, body: { message: 'No' } }
    await using server = await scriptedServer(() => answer)
    await expect(github(server.url).merge(TOKEN, pull)).rejects.toMatchObject({ kind: 'forbidden' })
  })
})

describe('addresses', () => {
  it.each([
    ['https://github.com', 'https://api.github.com/user'],
    ['https://github.com/', 'https://api.github.com/user'],
    ['https://octo.ghe.com', 'https://api.octo.ghe.com/user'],
    ['https://git.example.org', 'https://git.example.org/api/v3/user'],
    ['http://localhost:3000', 'http://localhost:3000/api/v3/user'],
  ])('%s is called at %s', async (url, expected) => {
    const called: string[] = []
    const sendOnce: SendOnce = async (address) => {
      called.push(address)
      const body = Readable.from([Buffer.from('{"login":"mona"}')])
      return { status: 200, header: () => undefined, body, discard: () => {} }
    }
    await createProvider({ name: 'github', url, sendOnce }).whoAmI(TOKEN)
    expect(called).toEqual([expected])
  })

  it('describes github.com', () => {
    const { url, origin, name, webhook, oauth } = github('https://github.com/')
    expect({ url, origin, name, webhook, oauth }).toEqual({
      name: 'github',
      url: 'https://github.com',
      origin: 'https://github.com',
      webhook: {
        eventHeader: 'x-github-event',
        deliveryHeader: 'x-github-delivery',
        hookHeader: 'x-github-hook-id',
        formSignature: 'body',
        digestHeaders: [],
        events: expect.objectContaining({ marks: expect.any(Object) }),
        style: expect.any(Function),
        headers: expect.any(Function),
        verify: expect.any(Function),
        proof: { 'x-hub-signature-256': /^sha256=[0-9a-f]{64}$/ },
        summary: {
          action: ['action'],
          number: ['number', 'issue.number', 'pull_request.number'],
          repo: ['repository.full_name'],
        },
      },
      oauth: {
        authorizationEndpoint: 'https://github.com/login/oauth/authorize',
        tokenEndpoint: 'https://github.com/login/oauth/access_token',
        deviceEndpoint: 'https://github.com/login/device/code',
        issuer: 'https://github.com/login/oauth',
        scopes: ['repo'],
      },
    })
  })

  it('trusts no issuer of an Enterprise Server, and the sandbox its own', () => {
    expect(github('https://git.example.org').oauth.issuer).toBeUndefined()
    const sandbox = createProvider({ name: 'sandbox', url: 'http://127.0.0.1:8788' })
    expect(sandbox.oauth).toEqual({
      authorizationEndpoint: 'http://127.0.0.1:8788/login/oauth/authorize',
      tokenEndpoint: 'http://127.0.0.1:8788/login/oauth/access_token',
      deviceEndpoint: 'http://127.0.0.1:8788/login/device/code',
      issuer: 'http://127.0.0.1:8788/login/oauth',
      scopes: ['repo'],
    })
  })
})
