import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { exchange } from '../kit/http.js'
import { endToken } from '../kit/pages.js'
import { CLIENT, hostVariables, place } from '../kit/place.js'
import { shared } from './fixture.js'

/** The sandbox's repository, and a comment there. */
const DEMO = { owner: 'octo', repo: 'demo' }
const HELLO = { ...DEMO, issueNumber: 1, body: 'hello' }
const CUT = 'gave no complete answer (connection closed before an answer)'
const doubt = '; the request may have been carried out all the same'
const NAME = 'must be 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..'

const here = shared(() => place())
const relay = shared(() => here.serve())
let token: string
beforeAll(async () => {
  token = await here.useToken()
})

/** Sends a JSON request with the token, unless `headers` say otherwise. */
function send(
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
  { signal, address = relay.address }: { signal?: AbortSignal; address?: string } = {},
): Promise<Response> {
  return fetch(`${address}/api/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal: signal ?? null,
  })
}

/** Sends, and reads the answer, which must be JSON without the token. */
async function post(...request: Parameters<typeof send>) {
  const response = await send(...request)
  const text = await response.text()
  expect(text).not.toContain(token)
  expect(response.headers.get('content-type')).toBe('application/json')
  return { status: response.status, body: JSON.parse(text), headers: response.headers }
}

/** The same, reduced to status and body. */
async function ask(...request: Parameters<typeof send>): Promise<[status: number, body: unknown]> {
  const answer = await post(...request)
  return [answer.status, answer.body]
}

/** The number of requests with this method that the sandbox got. */
function requests(method: string): number {
  return here.sandbox.requests.filter((request) => request.method === method).length
}

describe('an action', () => {
  it('comments', async () => {
    const answer = await ask('comment', { ...HELLO, body: 'héllo 👋' })
    const comment = here.sandbox.comments.at(-1)
    expect(comment).toMatchObject({ repo: 'octo/demo', issueNumber: 1, body: 'héllo 👋', user: 'octo' })
    const url = `${here.sandbox.url}/octo/demo/issues/1#issuecomment-${comment?.id}`
    expect(answer).toEqual([200, { ok: true, id: comment?.id, url }])
  })

  it('reacts, to the issue and to comments, once', async () => {
    await post('comment', HELLO)
    const id = here.sandbox.comments.at(-1)?.id
    const [reviewComment] = here.sandbox.reviewComments
    const review = { issueNumber: 2, reviewCommentId: reviewComment?.id }
    for (const target of [{ issueNumber: 1 }, { issueNumber: 1, commentId: id }, review]) {
      for (const created of [true, false]) {
        const answer = await ask('react', { ...DEMO, ...target, content: 'rocket' })
        const made = here.sandbox.reactions.at(-1)?.id
        expect(answer).toEqual([200, { ok: true, id: made, content: 'rocket', created }])
      }
    }
  })

  it('merges the given head', async () => {
    const pull = here.sandbox.issue('octo/demo', 2)?.pull
    const body = { ...DEMO, pullNumber: 2, method: 'squash', title: 'T', message: 'M', sha: pull?.head.sha }
    const answer = await ask('merge', body)
    const merge = here.sandbox.issue('octo/demo', 2)?.pull?.merge
    expect(merge).toMatchObject({ method: 'squash', title: 'T', message: 'M' })
    expect(answer).toEqual([200, { ok: true, merged: true, sha: merge?.sha }])
  })

  it('accepts a renewed token by its old value, and uses the new one at the code host', async () => {
    const lifetimes = { access: 55, refresh: 86_400 }
    await using own = await place({ sandbox: { lifetimes } })
    const { address } = await own.serve()
    const old = await own.signIn()
    lifetimes.access = 3600
    // It ends within a minute, so this renews it; the sandbox then no longer knows the old one, as GitHub.
    expect((await own.run('token')).out).not.toContain(old)
    const authorization = `Bearer ${old}`
    expect((await post('comment', HELLO, { authorization }, { address })).status).toBe(200)
    expect(own.sandbox.comments).toHaveLength(1)
    expect(await own.run('revoke')).toMatchObject({ code: 0 })
    expect((await post('comment', HELLO, { authorization }, { address })).status).toBe(401)
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
    const before = here.sandbox.requests.length
    const answer = await post('comment', HELLO, { authorization })
    expect([answer.status, answer.body]).toEqual([401, error])
    const reason = error === invalid ? ', error="invalid_token"' : ''
    expect(answer.headers.get('www-authenticate')).toBe(`Bearer realm="relay"${reason}`)
    expect(here.sandbox.requests).toHaveLength(before)
  })

  it('not for a scheme in other letter case', async () => {
    expect((await post('comment', HELLO, { authorization: `bEARER  ${token}` })).status).toBe(200)
  })

  it('for a token that is expired, revoked or of another origin, which is not sent to the code host', async () => {
    await using other = await place()
    const foreign = await other.sandbox.token('repo')
    await using own = await place()
    const { sandbox } = own
    const at = { env: hostVariables('sandbox', other.sandbox.url, CLIENT), stdin: foreign }
    expect(await own.runWith(at, 'login', '--with-token', '--user', 'foreign')).toMatchObject({ code: 0 })
    const { address } = await own.serve()
    const gone = await own.useToken(undefined, 'gone')
    expect(await own.run('revoke', '--local', '--user', 'gone')).toMatchObject({ code: 0 })
    const old = await sandbox.token('repo')
    const short = { env: { RELAY_TOKEN_TTL: '1s' }, stdin: old }
    const ran = await own.runWith(short, 'login', '--with-token', '--user', 'old', '--json')
    await sleep(Math.max(Date.parse(JSON.parse(ran.out).expiresAt) - Date.now(), 0))
    const before = sandbox.requests.length
    for (const bearer of [old, gone, foreign]) {
      const answer = await ask('comment', HELLO, { authorization: `Bearer ${bearer}` }, { address })
      expect(answer).toEqual([401, invalid])
    }
    expect(sandbox.requests).toHaveLength(before)
    expect(other.sandbox.comments).toEqual([])
  })

  it('for a token that the provider no longer knows', async () => {
    const stale = await here.useToken(undefined, 'stale')
    await endToken(here.sandbox.url, CLIENT, stale)
    const answer = await post('comment', HELLO, { authorization: `Bearer ${stale}` })
    expect([answer.status, answer.body]).toEqual([401, invalid])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="relay", error="invalid_token"')
  })
})

describe('a request is checked in order: 401, 415, 413, 400', () => {
  const big = 'x'.repeat(1_048_577)
  const BAD_FIELD = '{"owner":"..","repo":"demo","issueNumber":1}'
  const nobody = { authorization: 'Bearer nobody' }
  const plain = { 'content-type': 'text/plain' }

  it.each<[string, Record<string, string>, string, number, string]>([
    ['all', { ...nobody, ...plain }, big, 401, 'Invalid or expired token'],
    ['all but the token', plain, big, 415, 'Content-Type must be application/json'],
    ['the size', {}, big, 413, 'Request too large'],
    ['the content', {}, big.slice(1), 400, 'Invalid request: not valid JSON'],
    ['a field', {}, BAD_FIELD, 400, `Invalid request: owner: ${NAME}; body: required`],
  ])('%s', async (_, headers, body, status, error) => {
    for (const path of ['comment', 'merge', 'react'].slice(0, status === 400 ? 1 : 3))
      expect(await ask(path, body, headers)).toEqual([status, { error }])
  })

  const TYPES = {
    415: ['', 'application/jsonp', 'application/x-www-form-urlencoded', 'text/json'],
    200: ['application/json', 'Application/JSON; charset=utf-8', 'application/json;charset=UTF-8'],
  }
  it.each(Object.entries(TYPES))('%s for the types %j', async (status, types) => {
    for (const type of types)
      expect((await post('comment', HELLO, { 'content-type': type })).status).toBe(Number(status))
  })

  it.each([
    ['Authorization', 401],
    ['Content-Type', 415],
  ])('%s given twice', async (name, status) => {
    const lines = [
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${JSON.stringify(HELLO).length}`,
    ]
    const twice = [...lines, lines.find((line) => line.startsWith(name)), '', JSON.stringify(HELLO)]
    const request = `POST /api/comment HTTP/1.1\r\nHost: localhost\r\n${twice.join('\r\n')}`
    expect((await exchange(relay.port, request)).status).toBe(status)
  })
})

describe('an error of the provider', () => {
  const none = 'refused: Not Found (no such repository or number, or no access to it)'
  const CONFLICT =
    'Not merged: it conflicts with its base branch (The sandbox: Pull Request is not mergeable)'
  const LONG = 'Validation Failed (IssueComment.data: Body is too long (maximum is 65536 characters))'

  it.each<[string, object, number, string]>([
    ['comment', { issueNumber: 4 }, 403, 'refused: Unable to create comment because issue is locked.'],
    ['comment', { issueNumber: 99 }, 404, none],
    ['merge', { pullNumber: 1 }, 404, none],
    ['merge', { pullNumber: 3 }, 409, CONFLICT],
    [
      'merge',
      { pullNumber: 5, sha: '0'.repeat(40) },
      409,
      'refused: Head branch was modified. Review and try the merge again.',
    ],
    ['comment', { repo: 'no-issues' }, 410, 'refused: Issues are disabled for this repo'],
    ['comment', { body: 'x'.repeat(65_537) }, 422, `refused: ${LONG}`],
    ['comment', { repo: 'fault-502' }, 502, `failed (502)${doubt}`],
    ['comment', { repo: 'fault-invalid-json' }, 502, `gave an answer that was not understood${doubt}`],
    ['comment', { repo: 'fault-reset' }, 502, `${CUT}${doubt}`],
  ])('%s %j', async (path, body, status, error) => {
    const before = requests('POST') + requests('PUT')
    const request = path === 'merge' ? { ...DEMO, ...body } : { ...HELLO, ...body }
    const said = error.startsWith('Not merged') ? error : `The sandbox ${error}`
    expect(await ask(path, request)).toEqual([status, { error: said }])
    expect(requests('POST') + requests('PUT')).toBe(before + 1)
  })

  it('that is none within the time limit: 504', async () => {
    await using own = await place()
    const bearer = await own.useToken()
    const { address } = await own.serveWith({ seams: { limits: { codeHost: 500 } } })
    const headers = { authorization: `Bearer ${bearer}` }
    const answer = await ask('comment', { ...HELLO, repo: 'fault-slow' }, headers, { address })
    expect(answer).toEqual([504, { error: `The sandbox did not answer within 0.5 s${doubt}` }])
    const isWrite = ({ method, path }: Record<string, string>) =>
      method === 'POST' && path?.startsWith('/api/')
    expect(own.sandbox.requests.filter((request) => isWrite({ ...request }))).toHaveLength(1)
  })

  const BUSY = 'You have exceeded a secondary rate limit.'
  it.each([
    ['rate-limit', 'API rate limit exceeded for user ID 1.'],
    ['secondary-limit', `${BUSY} Please wait a few minutes before you try again.`],
  ])('429 with Retry-After: %s', async (fault, said) => {
    const reaction = { ...DEMO, repo: `fault-${fault}`, issueNumber: 1, content: 'eyes' }
    const answer = await post('react', reaction)
    expect([answer.status, answer.body]).toEqual([429, { error: `The sandbox refused: ${said}` }])
    const wait = Number(answer.headers.get('retry-after'))
    expect(wait).toBeGreaterThanOrEqual(59)
    expect(wait).toBeLessThanOrEqual(61)
  })
})

describe('a write is made once', () => {
  const error = `The sandbox ${CUT}${doubt}`

  it('although the connection broke after a comment was posted', async () => {
    const commentsOf = () => here.sandbox.comments.filter(({ repo }) => repo === 'octo/fault-reset-after')
    expect(await ask('comment', { ...HELLO, repo: 'fault-reset-after' })).toEqual([502, { error }])
    expect(commentsOf().map(({ body }) => body)).toEqual(['hello'])
  })

  it('although the client disconnected', async () => {
    here.sandbox.faults.next('comment', { kind: 'slow', ms: 400 })
    const before = requests('POST')
    const client = new AbortController()
    const answer = send('comment', { ...HELLO, body: 'from a client that left' }, {}, client)
    await expect.poll(() => requests('POST')).toBe(before + 1)
    client.abort()
    await expect(answer).rejects.toThrow('aborted')
    await expect.poll(() => here.sandbox.comments.at(-1)?.body).toBe('from a client that left')
  })
})
