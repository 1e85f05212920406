import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { REACTIONS } from '../../src/codehost/host.js'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { exchange, requestText } from '../kit/http.js'
import { answerOf, call, CLIENT, json, NOW, refusal, signIn, start } from './sandbox-rig.js'

let sandbox: Sandbox
let headers: { authorization: string }
beforeAll(async () => {
  sandbox = await start({ checkDuration: 1 })
  headers = await signIn(sandbox, 'repo read:user')
})
afterAll(() => sandbox[Symbol.asyncDispose]())

const DEMO = '/repos/octo/demo'
const get = <T>(path: string): Promise<T> => json<T>(call(sandbox, `GET ${DEMO}${path}`, headers))

describe('the REST API', () => {
  it('describes the token and the limits in headers', async () => {
    const answer = await call(sandbox, 'GET /user', headers)
    const reset = Number(answer.headers.get('x-ratelimit-reset'))
    expect(reset * 1000 - NOW).toBeGreaterThan(0)
    expect(reset * 1000 - NOW).toBeLessThanOrEqual(3_600_000)
    expect(Object.fromEntries([...answer.headers].filter(([name]) => name.startsWith('x-')))).toEqual({
      'x-request-id': expect.any(String),
      'x-oauth-scopes': 'repo, read:user',
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

  it('says its version without a token', async () => {
    expect(await answerOf(await call(sandbox, 'GET /meta', {}))).toEqual({
      status: 200,
      body: { verifiable_password_authentication: false, installed_version: '3.17.0' },
    })
  })

  it('has an empty list of scopes for a token without any', async () => {
    const user = await call(sandbox, 'GET /user', await signIn(sandbox, ''))
    expect(user.headers.get('x-oauth-scopes')).toBe('')
  })

  it.each([
    ['no token', {}, 'Requires authentication'],
    ['another scheme', { authorization: 'Basic eDp5' }, 'Requires authentication'],
    ['a made-up token', { authorization: `Bearer gho_${'0'.repeat(40)}` }, 'Bad credentials'],
  ])('refuses %s', async (_, given, message) => {
    expect(await answerOf(await call(sandbox, 'GET /user', given))).toEqual(refusal(401, message))
  })

  it('accepts the older authorization scheme', async () => {
    const older = { authorization: headers.authorization.replace('Bearer', 'token') }
    expect((await call(sandbox, 'GET /user', older)).status).toBe(200)
  })

  it('refuses a request without a User-Agent', async () => {
    const { port } = new URL(sandbox.url)
    const text = requestText('GET', '/api/v3/user', { Authorization: headers.authorization })
    const answer = await exchange(Number(port), text)
    expect([answer.status, answer.body]).toEqual([
      403,
      expect.stringContaining('Request forbidden by administrative rules.'),
    ])
  })

  it('has no headers for pages of other origins', async () => {
    const answer = await call(sandbox, 'GET /user', { ...headers, origin: 'https://evil.example' })
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })
})

describe('the refusals of the REST API', () => {
  const comment = 'POST /repos/octo/demo/issues/1/comments'
  const merge = 'PUT /repos/octo/demo/pulls/2/merge'
  const react = 'POST /repos/octo/demo/issues/1/reactions'
  const invalid = (resource: string, code: string, field: string, message?: string) => [
    { resource, code, field, ...(message !== undefined && { message }) },
  ]
  const unprocessable = (message: string) => invalid('IssueComment', 'unprocessable', 'data', message)
  const locked = (what: string): string => `Unable to create ${what} because issue is locked.`
  const head = '0'.repeat(40)

  it.each<[string, unknown, number, string, object[]?]>([
    ['GET /nothing', undefined, 404, 'Not Found'],
    ['POST /user', {}, 404, 'Not Found'],
    ['GET /repos/octo/demo/pulls/1', undefined, 404, 'Not Found'],
    ['GET /repos/octo/demo/issues/01x', undefined, 404, 'Not Found'],
    [comment, { body: ' \n' }, 422, 'Validation Failed', unprocessable("Body can't be blank")],
    [comment, {}, 422, 'Invalid request.\n\n"body" wasn\'t supplied.'],
    [comment, { body: 1 }, 422, "Invalid request.\n\nFor 'properties/body', 1 is not a string."],
    [comment, [], 400, 'Body should be a JSON object'],
    ['POST /repos/octo/demo/issues/4/comments', { body: 'x' }, 403, locked('comment')],
    ['POST /repos/octo/no-issues/issues/1/comments', { body: 'x' }, 410, 'Issues are disabled for this repo'],
    ['POST /repos/octo/demo/issues/99/comments', { body: 'x' }, 404, 'Not Found'],
    ['POST /repos/octo/nothing/issues/1/comments', { body: 'x' }, 404, 'Not Found'],
    ['PATCH /repos/octo/demo/issues/comments/1', { body: 'x' }, 404, 'Not Found'],
    [react, { content: 'thumbs' }, 422, 'Validation Failed', invalid('Reaction', 'invalid', 'content')],
    ['POST /repos/octo/demo/issues/4/reactions', { content: 'heart' }, 403, locked('reaction')],
    ['POST /repos/octo/demo/pulls/comments/1/reactions', { content: 'heart' }, 404, 'Not Found'],
    [merge, { sha: head }, 409, 'Head branch was modified. Review and try the merge again.'],
    ['PUT /repos/octo/demo/pulls/3/merge', {}, 405, 'Pull Request is not mergeable'],
    ['PUT /repos/octo/demo/pulls/1/merge', {}, 404, 'Not Found'],
    [
      merge,
      { merge_method: 'octopus' },
      422,
      'Invalid request.\n\n"octopus" is not a member of ["merge", "squash", "rebase"].',
    ],
    [
      'PUT /repos/octo/demo/contents/a',
      { message: 'x', content: '', branch: 'no' },
      404,
      'Branch no not found',
    ],
    ['GET /repos/octo/demo/commits/no/check-runs', undefined, 422, 'No commit found for SHA: no'],
    [
      'POST /repos/octo/demo/statuses/main',
      { state: 'green' },
      422,
      'Validation Failed',
      invalid('Status', 'custom', 'state', 'State is not included in the list'),
    ],
  ])('%s with %j: %i %s', async (request, body, status, message, errors) => {
    expect(await answerOf(await call(sandbox, request, headers, body))).toEqual(
      refusal(status, message, errors),
    )
    expect([sandbox.state.comments, sandbox.state.merges]).toEqual([[], []])
  })

  it('of what is not JSON, or over 1 MiB', async () => {
    const url = `${sandbox.url}/api/v3${DEMO}/issues/1/comments`
    const post = async (body: string) => answerOf(await fetch(url, { method: 'POST', headers, body }))
    expect(await post('{"body":')).toEqual(refusal(400, 'Problems parsing JSON'))
    expect(await post('x'.repeat(1_048_577))).toEqual(refusal(413, 'Request too large'))
  })
})

describe('what is written', () => {
  it('is a comment of up to 65,536 characters, in any case of the names, found at its address', async () => {
    const post = (body: string) => call(sandbox, 'POST /repos/Octo/DEMO/issues/2/comments', headers, { body })
    const answer = await post('\u0001'.repeat(65_536))
    const made = await json<{ url: string; html_url: string }>(answer)
    expect([answer.status, answer.headers.get('location')]).toEqual([201, made.url])
    expect(made.html_url).toContain('/octo/demo/pull/2#issuecomment-')
    expect(await json(fetch(made.url, { headers }))).toEqual(made)
    expect((await post('x'.repeat(65_537))).status).toBe(422)
  })

  it('is listed page by page, oldest first', async () => {
    const path = `${DEMO}/issues/5/comments`
    for (const body of ['one', 'two', 'three']) await call(sandbox, `POST ${path}`, headers, { body })
    const answer = await call(sandbox, `GET ${path}?per_page=2`, headers)
    const next = `<${sandbox.url}/api/v3${path}?per_page=2&page=2>`
    expect(answer.headers.get('link')).toBe(`${next}; rel="next", ${next}; rel="last"`)
    expect(await json(answer)).toMatchObject([{ body: 'one' }, { body: 'two' }])
  })

  it.each(REACTIONS)('is a reaction %s, new once', async (content) => {
    const react = async () =>
      answerOf(await call(sandbox, `POST ${DEMO}/issues/1/reactions`, headers, { content }))
    const first = await react()
    expect(first).toMatchObject({ status: 201, body: { content, created_at: '2026-05-04T03:02:01Z' } })
    expect(await react()).toEqual({ status: 200, body: first.body })
  })

  it('is a commit, whose check is found by its hash and by its branch', async () => {
    const file = { message: 'Let it fail', content: 'aGVsbG8=', branch: 'typo' }
    const pushed = call(sandbox, `PUT ${DEMO}/contents/docs/hello.md`, headers, file)
    const { commit } = await json<{ commit: { sha: string } }>(pushed)
    await sandbox.idle()
    const completed = await get('/commits/heads/typo/check-runs')
    expect(completed).toMatchObject({
      check_runs: [
        { name: 'test', head_sha: commit.sha, conclusion: 'failure', pull_requests: [{ number: 5 }] },
      ],
    })
    expect(await get('/pulls/5')).toMatchObject({ head: { sha: commit.sha } })
  })

  it('is a check in progress at first, which is abandoned when the sandbox closes', async () => {
    await using slow = await start({ checkDuration: 60_000 })
    const file = { message: 'x', content: '' }
    await call(slow, `PUT ${DEMO}/contents/a`, await signIn(slow), file)
    const runs = await json(call(slow, `GET ${DEMO}/commits/main/check-runs`, await signIn(slow)))
    expect(runs).toMatchObject({
      check_runs: [{ status: 'in_progress', conclusion: null, completed_at: null }],
    })
  })

  it('is a status, of which the newest of each context decides', async () => {
    const report = async (state: string, context: string): Promise<unknown> => {
      const { head } = await get<{ head: { sha: string } }>('/pulls/2')
      await call(sandbox, `POST ${DEMO}/statuses/${head.sha}`, headers, { state, context })
      return (await get<{ state: string }>(`/commits/${head.sha}/status`)).state
    }
    const states = [
      await report('success', 'build'),
      await report('pending', 'deploy'),
      await report('error', 'deploy'),
      await report('success', 'deploy'),
    ]
    expect(states).toEqual(['success', 'pending', 'failure', 'success'])
    expect(await get('/commits/greeting/status?per_page=1')).toMatchObject({
      total_count: 2,
      statuses: [{ context: 'deploy', state: 'success', description: null, target_url: null }],
    })
  })
})
