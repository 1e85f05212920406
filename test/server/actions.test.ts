import { hc } from 'hono/client'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import { hostCheck } from '../../src/http/host.js'
import { listen, type Listener } from '../../src/http/listen.js'
import { createRouter } from '../../src/http/router.js'
import { createProvider } from '../../src/providers/open.js'
import { startSandbox, type Sandbox } from '../../src/sandbox/start.js'
import { actionRoutes } from '../../src/server/routes/actions.js'
import { openDatabase } from '../../src/store/open.js'
import { createTokens, type Tokens } from '../../src/tokens/tokens.js'
import { connect } from '../helpers/http.js'
import { sandboxToken } from '../helpers/sandbox-token.js'

const CLIENT = { id: 'relay-test', secret: 'client-secret-canary' }
const DAY = 86_400_000
/** Short, for the rows in which the provider is too slow. */
const TIME_LIMIT = 500

const NAME = 'must be 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..'

const demo = { owner: 'octo', repo: 'demo' }
const hello = { ...demo, issueNumber: 1, body: 'hello' }

let sandbox: Sandbox
let tokens: Tokens
let listener: Listener
let token: string
let app: ReturnType<typeof serviceOf>

function serviceOf(origin: string) {
  const provider = createProvider({ name: 'sandbox', url: origin, timeLimit: TIME_LIMIT })
  const edge = { hostAllowed: hostCheck({ host: '127.0.0.1', allowed: [] }), log: silentLog }
  return createRouter(edge).route('/', actionRoutes({ provider, tokens }))
}

beforeAll(async () => {
  sandbox = await startSandbox({ clientId: CLIENT.id, clientSecret: new Secret(CLIENT.secret) })
  tokens = createTokens((await openDatabase({ kind: 'memory', folder: '' })).store)
  app = serviceOf(sandbox.url)
  listener = await listen(app.fetch, { host: '127.0.0.1', port: 0, log: silentLog })
  token = await sandboxToken(sandbox, CLIENT)
  await tokens.save('mona', { accessToken: token, expiresAt: Date.now() + DAY, origin: sandbox.url })
})

afterAll(async () => {
  await listener.close()
  await sandbox.close()
})

beforeEach(() => sandbox.faults.clear())

const JSON_TYPE = { 'content-type': 'application/json' }

/** What a POST comes back with: everything that is documented about it. */
async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${listener.url}/api/${path}`, {
    method: 'POST',
    headers: { ...JSON_TYPE, authorization: `Bearer ${token}`, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  expect(text).not.toContain(token)
  expect(response.headers.get('content-type')).toBe('application/json')
  return { status: response.status, body: JSON.parse(text) as unknown, headers: response.headers }
}

async function statusAndBody(path: string, body: unknown, headers?: Record<string, string>) {
  const answer = await post(path, body, headers)
  return [answer.status, answer.body]
}

const requestsOf = (method: string) =>
  sandbox.state.requests.filter((request) => request.method === method).length

describe('what is done', () => {
  it('comments', async () => {
    const answer = await statusAndBody('comment', { ...hello, body: 'héllo 👋' })
    const comment = sandbox.state.comments.at(-1)
    expect(comment).toMatchObject({ repo: 'octo/demo', issueNumber: 1, body: 'héllo 👋', user: 'octo' })
    const url = `${sandbox.url}/octo/demo/issues/1#issuecomment-${comment?.id}`
    expect(answer).toEqual([200, { ok: true, id: comment?.id, url }])
  })

  it('reacts, to the issue and to comments, once', async () => {
    await post('comment', hello)
    const id = sandbox.state.comments.at(-1)?.id
    const [reviewComment] = sandbox.state.reviewComments
    const targets = [
      { issueNumber: 1 },
      { issueNumber: 1, commentId: id },
      { issueNumber: 2, reviewCommentId: reviewComment?.id },
    ]
    for (const target of targets) {
      const answers = [
        await statusAndBody('react', { ...demo, ...target, content: 'rocket' }),
        await statusAndBody('react', { ...demo, ...target, content: 'rocket' }),
      ]
      const made = sandbox.state.reactions.at(-1)?.id
      expect(answers).toEqual([
        [200, { ok: true, id: made, content: 'rocket', created: true }],
        [200, { ok: true, id: made, content: 'rocket', created: false }],
      ])
    }
  })

  it('merges the head it was told', async () => {
    const pull = sandbox.state.issue('octo/demo', 2)?.pull
    const body = { ...demo, pullNumber: 2, method: 'squash', title: 'T', message: 'M', sha: pull?.head.sha }
    const answer = await statusAndBody('merge', body)
    const merge = sandbox.state.issue('octo/demo', 2)?.pull?.merge
    expect(merge).toMatchObject({ method: 'squash', title: 'T', message: 'M' })
    expect(answer).toEqual([200, { ok: true, merged: true, sha: merge?.sha }])
  })

  it('in-process, and with types, as over the network', async () => {
    const client = hc<typeof app>('http://localhost', { fetch: app.request })
    const answer = await client.api.comment.$post(
      { json: hello },
      { headers: { authorization: `Bearer ${token}` } },
    )
    const { ok, id, url }: { ok: true; id: number; url: string } = await answer.json()
    expect({ ok, id, url }).toEqual({
      ok: true,
      id: sandbox.state.comments.at(-1)?.id,
      url: expect.any(String),
    })
  })
})

describe('401', () => {
  const missing = { error: 'Missing bearer token' }
  const invalid = { error: 'Invalid or expired token' }

  it.each<[string, object]>([
    ['', missing],
    ['Basic b2N0bzpwdw==', missing],
    ['Bearer', missing],
    ['Bearer unknown', invalid],
    ['Bearer a b', invalid],
    ['Bearer é', invalid],
    [`Bearer ${'x'.repeat(8_193)}`, invalid],
  ])('%.40s', async (authorization, error) => {
    const before = sandbox.state.requests.length
    const answer = await post('comment', hello, { authorization })
    expect([answer.status, answer.body]).toEqual([401, error])
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="relay"/)
    expect(sandbox.state.requests).toHaveLength(before)
  })

  it('takes the scheme in any case', async () => {
    expect((await post('comment', hello, { authorization: `bEARER  ${token}` })).status).toBe(200)
  })

  it('a token that has expired, was revoked, or came from elsewhere stays here', async () => {
    const day = Date.now() + DAY
    await tokens.save('old', { accessToken: 'old', expiresAt: Date.now() - 1, origin: sandbox.url })
    await tokens.save('gone', { accessToken: 'gone', expiresAt: day, origin: sandbox.url })
    await tokens.revoke('gone')
    await tokens.save('foreign', { accessToken: 'foreign', expiresAt: day, origin: 'https://github.com' })
    const before = sandbox.state.requests.length
    for (const bearer of ['old', 'gone', 'foreign'])
      expect(await statusAndBody('comment', hello, { authorization: `Bearer ${bearer}` })).toEqual([
        401,
        invalid,
      ])
    expect(sandbox.state.requests).toHaveLength(before)
  })

  it('a token that the provider no longer knows', async () => {
    await tokens.save('stale', { accessToken: 'stale', expiresAt: Date.now() + DAY, origin: sandbox.url })
    const answer = await post('comment', hello, { authorization: 'Bearer stale' })
    expect([answer.status, answer.body]).toEqual([401, invalid])
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="relay"/)
  })
})

describe('what is wrong with a request is told in order: 401, 415, 413, 400', () => {
  const big = 'x'.repeat(1_048_577)
  const nobody = { authorization: 'Bearer nobody' }
  const plain = { 'content-type': 'text/plain' }

  it.each<[string, Record<string, string>, string, number, string]>([
    ['all', { ...nobody, ...plain }, big, 401, 'Invalid or expired token'],
    ['all but the token', plain, big, 415, 'Content-Type must be application/json'],
    ['the size', {}, big, 413, 'Request too large'],
    ['the content', {}, big.slice(1), 400, 'Invalid request: not valid JSON'],
    [
      'a field',
      {},
      '{"owner":"..","repo":"demo","issueNumber":1}',
      400,
      `Invalid request: owner: ${NAME}; body: required`,
    ],
  ])('%s', async (_, headers, body, status, error) => {
    for (const path of ['comment', 'merge', 'react'].slice(0, status === 400 ? 1 : 3))
      expect(await statusAndBody(path, body, headers)).toEqual([status, { error }])
  })

  it.each(['', 'application/jsonp', 'application/x-www-form-urlencoded', 'text/json'])(
    '415: %j',
    async (type) => {
      expect((await post('react', '{}', { 'content-type': type })).status).toBe(415)
    },
  )

  it.each(['application/json', 'Application/JSON; charset=utf-8', 'application/json;charset=UTF-8'])(
    '%s',
    async (type) => {
      expect((await post('comment', hello, { 'content-type': type })).status).toBe(200)
    },
  )

  it('a body left unread does not spoil the next request on the connection', async () => {
    const connection = await connect(listener.port)
    const head = (headers: string) => `POST /api/comment HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n`
    connection.send(head(`Content-Length: ${big.length}`) + big)
    connection.send(head(`Authorization: Bearer ${token}\r\nContent-Length: ${big.length}`) + big)
    const body = JSON.stringify(hello)
    const json = `Authorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
    connection.send(head(json) + body)
    const statuses = [await connection.answer(), await connection.answer(), await connection.answer()]
    expect(statuses.map(({ status }) => status)).toEqual([401, 415, 200])
    connection.socket.destroy()
  })
})

describe('what the provider says', () => {
  const none = 'The sandbox refused: Not Found (no such repository or number, or no access to it)'
  const doubt = '; the request may have been carried out all the same'
  it.each<[string, object, number, string]>([
    [
      'comment',
      { ...hello, issueNumber: 4 },
      403,
      'The sandbox refused: Unable to create comment because issue is locked.',
    ],
    ['comment', { ...hello, issueNumber: 99 }, 404, none],
    ['comment', { ...hello, repo: 'none' }, 404, none],
    ['merge', { ...demo, pullNumber: 1 }, 404, none],
    ['merge', { ...demo, pullNumber: 3 }, 409, 'The sandbox refused: Pull Request is not mergeable'],
    [
      'merge',
      { ...demo, pullNumber: 5, sha: '0'.repeat(40) },
      409,
      'The sandbox refused: Head branch was modified. Review and try the merge again.',
    ],
    [
      'comment',
      { ...hello, repo: 'no-issues' },
      410,
      'The sandbox refused: Issues are disabled for this repo',
    ],
    [
      'comment',
      { ...hello, body: 'x'.repeat(65_537) },
      422,
      'The sandbox refused: Validation Failed (IssueComment.data: Body is too long (maximum is 65536 characters))',
    ],
    ['comment', { ...hello, repo: 'fault-502' }, 502, 'The sandbox failed (502)'],
    [
      'comment',
      { ...hello, repo: 'fault-invalid-json' },
      502,
      `The sandbox gave an answer that was not understood${doubt}`,
    ],
    [
      'comment',
      { ...hello, repo: 'fault-reset' },
      502,
      `The sandbox broke the connection (ECONNRESET)${doubt}`,
    ],
    ['comment', { ...hello, repo: 'fault-slow' }, 504, `The sandbox did not answer within 0.5 s${doubt}`],
  ])('%s %j', async (path, body, status, error) => {
    const before = requestsOf('POST') + requestsOf('PUT')
    expect(await statusAndBody(path, body)).toEqual([status, { error }])
    expect(requestsOf('POST') + requestsOf('PUT')).toBe(before + 1)
  })

  it.each([
    ['rate-limit', 'API rate limit exceeded for user ID 1.'],
    [
      'secondary-limit',
      'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
    ],
  ])('429 with Retry-After: %s', async (fault, said) => {
    const answer = await post('react', { ...demo, repo: `fault-${fault}`, issueNumber: 1, content: 'eyes' })
    expect([answer.status, answer.body]).toEqual([429, { error: `The sandbox refused: ${said}` }])
    const wait = Number(answer.headers.get('retry-after'))
    expect(wait).toBeGreaterThanOrEqual(59)
    expect(wait).toBeLessThanOrEqual(61)
  })
})

describe('a write is made once', () => {
  const doubt =
    'The sandbox broke the connection (ECONNRESET); the request may have been carried out all the same'

  it('although the connection broke after a comment was posted', async () => {
    const commentsOf = () => sandbox.state.comments.filter(({ repo }) => repo === 'octo/fault-reset-after')
    expect(await statusAndBody('comment', { ...hello, repo: 'fault-reset-after' })).toEqual([
      502,
      { error: doubt },
    ])
    expect(commentsOf().map(({ body }) => body)).toEqual(['hello'])
  })

  it('although the connection broke after a merge', async () => {
    const before = requestsOf('PUT')
    expect(await statusAndBody('merge', { ...demo, repo: 'fault-reset-after', pullNumber: 2 })).toEqual([
      502,
      { error: doubt },
    ])
    expect(requestsOf('PUT')).toBe(before + 1)
    expect(sandbox.state.merges.filter(({ repo }) => repo === 'octo/fault-reset-after')).toHaveLength(1)
  })

  it('although the client has gone', async () => {
    sandbox.faults.next('comment', { kind: 'slow', ms: 100 })
    const before = requestsOf('POST')
    const client = new AbortController()
    const answer = fetch(`${listener.url}/api/comment`, {
      method: 'POST',
      headers: { ...JSON_TYPE, authorization: `Bearer ${token}` },
      body: JSON.stringify({ ...hello, body: 'from one who left' }),
      signal: client.signal,
    })
    await vi.waitFor(() => expect(requestsOf('POST')).toBe(before + 1))
    client.abort()
    await expect(answer).rejects.toThrow('aborted')
    await vi.waitFor(() => expect(sandbox.state.comments.at(-1)?.body).toBe('from one who left'))
  })
})
