import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../../src/sandbox/sandbox.js'
import { exchange, requestText } from '../../kit/http.js'
import { answerOf, call, CLIENT, NOW, refusal, signIn, start } from '../rig.js'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await start()
})
afterAll(() => sandbox[Symbol.asyncDispose]())

describe('the REST API', () => {
  it('describes the token and the limits in headers', async () => {
    const { status, headers } = await call(
      sandbox,
      'GET /user',
      await signIn(sandbox, 'public_repo read:user'),
    )
    const reset = Number(headers.get('x-ratelimit-reset'))
    expect(status).toBe(200)
    expect(reset * 1000 - NOW).toBeGreaterThan(0)
    expect(reset * 1000 - NOW).toBeLessThanOrEqual(3_600_000)
    expect(Object.fromEntries([...headers].filter(([name]) => name.startsWith('x-')))).toEqual({
      'x-request-id': expect.any(String),
      'x-oauth-scopes': 'public_repo, read:user',
      'x-oauth-client-id': CLIENT.id,
      'x-github-enterprise-version': 'enterprise-server@3.17.0',
      'x-github-request-id': expect.stringMatching(/^[0-9A-F]{16}$/),
      'x-github-media-type': 'github.v3; format=json',
      'x-github-api-version-selected': '2022-11-28',
      'x-ratelimit-limit': '5000',
      'x-ratelimit-remaining': '4999',
      'x-ratelimit-used': '1',
      'x-ratelimit-reset': String(reset),
      'x-ratelimit-resource': 'core',
    })
  })

  it('returns its version without a token', async () => {
    const answer = await call(sandbox, 'GET /meta', {})
    expect(answer.headers.get('x-github-request-id')).toMatch(/^[0-9A-F]{16}$/)
    expect(await answerOf(answer)).toEqual({
      status: 200,
      body: { verifiable_password_authentication: false, installed_version: '3.17.0' },
    })
  })

  it.each([
    ['no token', {}, 'Requires authentication'],
    ['another scheme', { authorization: 'Basic eDp5' }, 'Requires authentication'],
    ['a made-up token', { authorization: `Bearer gho_${'0'.repeat(40)}` }, 'Bad credentials'],
  ])('refuses %s', async (_, headers, message) => {
    const answer = await call(sandbox, 'GET /user', headers)
    expect(answer.headers.get('x-ratelimit-limit')).toBe('5000')
    expect(await answerOf(answer)).toEqual(refusal(401, message))
  })

  it('accepts the older authorization scheme', async () => {
    const { authorization } = await signIn(sandbox)
    const older = { authorization: authorization.replace('Bearer', 'token') }
    expect((await call(sandbox, 'GET /user', older)).status).toBe(200)
  })

  it('refuses a request without a User-Agent', async () => {
    const { port } = new URL(sandbox.url)
    const { authorization } = await signIn(sandbox)
    const answer = await exchange(
      Number(port),
      requestText('GET', '/api/v3/user', { Authorization: authorization }),
    )
    expect([answer.status, JSON.parse(answer.body)]).toEqual([
      403,
      expect.objectContaining({
        message: expect.stringMatching(/^Request forbidden by administrative rules\./),
      }),
    ])
  })

  it.each([
    'POST /repos/octo/demo/issues/1/comments',
    'PUT /repos/octo/demo/pulls/2/merge',
    'POST /repos/octo/demo/issues/1/reactions',
  ])('hides %s from a read-only token', async (request) => {
    const answer = await call(sandbox, request, await signIn(sandbox, 'read:user'), {
      body: 'x',
      content: 'heart',
    })
    expect(answer.headers.get('x-accepted-oauth-scopes')).toBe('public_repo, repo')
    expect(await answerOf(answer)).toEqual(refusal(404, 'Not Found'))
    expect(sandbox.state.comments).toEqual([])
  })

  it.each(['GET /nothing', 'POST /user', 'GET /repos/octo/demo/pulls/1', 'GET /repos/octo/demo/issues/01x'])(
    'has no %s',
    async (request) => {
      expect(await answerOf(await call(sandbox, request, await signIn(sandbox)))).toEqual(
        refusal(404, 'Not Found'),
      )
    },
  )

  it('shows the repository', async () => {
    const answer = await call(sandbox, 'GET /repos/octo/demo', await signIn(sandbox))
    expect(await answer.json()).toMatchObject({
      full_name: 'octo/demo',
      owner: { login: 'octo' },
      private: false,
    })
  })
})
