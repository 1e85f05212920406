import { hc } from 'hono/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ActionService, DAY, DEMO, HELLO, startActionService } from '../helpers/action-service.js'
import { connect, exchange } from '../helpers/http.js'

const NAME = 'must be 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..'

let service: ActionService

beforeAll(async () => {
  service = await startActionService()
})
afterAll(() => service[Symbol.asyncDispose]())

describe('an action', () => {
  it('comments', async () => {
    const answer = await service.ask('comment', { ...HELLO, body: 'héllo 👋' })
    const comment = service.sandbox.comments.at(-1)
    expect(comment).toMatchObject({ repo: 'octo/demo', issueNumber: 1, body: 'héllo 👋', user: 'octo' })
    const url = `${service.sandbox.url}/octo/demo/issues/1#issuecomment-${comment?.id}`
    expect(answer).toEqual([200, { ok: true, id: comment?.id, url }])
  })

  it('reacts, to the issue and to comments, once', async () => {
    await service.post('comment', HELLO)
    const id = service.sandbox.comments.at(-1)?.id
    const [reviewComment] = service.sandbox.reviewComments
    const targets = [
      { issueNumber: 1 },
      { issueNumber: 1, commentId: id },
      { issueNumber: 2, reviewCommentId: reviewComment?.id },
    ]
    for (const target of targets) {
      const answers = [
        await service.ask('react', { ...DEMO, ...target, content: 'rocket' }),
        await service.ask('react', { ...DEMO, ...target, content: 'rocket' }),
      ]
      const made = service.sandbox.reactions.at(-1)?.id
      expect(answers).toEqual([
        [200, { ok: true, id: made, content: 'rocket', created: true }],
        [200, { ok: true, id: made, content: 'rocket', created: false }],
      ])
    }
  })

  it('merges the given head', async () => {
    const pull = service.sandbox.issue('octo/demo', 2)?.pull
    const body = { ...DEMO, pullNumber: 2, method: 'squash', title: 'T', message: 'M', sha: pull?.head.sha }
    const answer = await service.ask('merge', body)
    const merge = service.sandbox.issue('octo/demo', 2)?.pull?.merge
    expect(merge).toMatchObject({ method: 'squash', title: 'T', message: 'M' })
    expect(answer).toEqual([200, { ok: true, merged: true, sha: merge?.sha }])
  })

  it('accepts a renewed token by its old value, and uses the new one at the code host', async () => {
    const origin = service.sandbox.url
    const expiresAt = Date.now() + DAY
    const refreshToken = 'refresh'
    await service.tokens.save('ada', { accessToken: 'fetched', expiresAt, origin, refreshToken })
    const renewed = { accessToken: service.token, expiresAt, origin, refreshToken: 'next' }
    await service.tokens.renew('ada', { refreshToken, origin }, renewed)
    const authorization = 'Bearer fetched'
    expect((await service.post('comment', HELLO, { authorization })).status).toBe(200)
    await service.tokens.revoke('ada')
    expect((await service.post('comment', HELLO, { authorization })).status).toBe(401)
  })

  it('works in-process too, with a typed client', async () => {
    const client = hc<ActionService['app']>('http://localhost', { fetch: service.app.request })
    const answer = await client.api.comment.$post(
      { json: HELLO },
      { headers: { authorization: `Bearer ${service.token}` } },
    )
    const { ok, id, url }: { ok: true; id: number; url: string } = await answer.json()
    expect({ ok, id, url }).toEqual({
      ok: true,
      id: service.sandbox.comments.at(-1)?.id,
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
    const before = service.sandbox.requests.length
    const answer = await service.post('comment', HELLO, { authorization })
    expect([answer.status, answer.body]).toEqual([401, error])
    const reason = error === invalid ? ', error="invalid_token"' : ''
    expect(answer.headers.get('www-authenticate')).toBe(`Bearer realm="relay"${reason}`)
    expect(service.sandbox.requests).toHaveLength(before)
  })

  it('not for a scheme in other letter case', async () => {
    expect((await service.post('comment', HELLO, { authorization: `bEARER  ${service.token}` })).status).toBe(
      200,
    )
  })

  it('for a token that is expired, revoked or of another origin, which is not sent to the code host', async () => {
    const day = Date.now() + DAY
    await service.tokens.save('old', {
      accessToken: 'old',
      expiresAt: Date.now() - 1,
      origin: service.sandbox.url,
    })
    await service.tokens.save('gone', { accessToken: 'gone', expiresAt: day, origin: service.sandbox.url })
    await service.tokens.revoke('gone')
    await service.tokens.save('foreign', {
      accessToken: 'foreign',
      expiresAt: day,
      origin: 'https://github.com',
    })
    const before = service.sandbox.requests.length
    for (const bearer of ['old', 'gone', 'foreign'])
      expect(await service.ask('comment', HELLO, { authorization: `Bearer ${bearer}` })).toEqual([
        401,
        invalid,
      ])
    expect(service.sandbox.requests).toHaveLength(before)
  })

  it('for a token that the provider no longer knows', async () => {
    await service.tokens.save('stale', {
      accessToken: 'stale',
      expiresAt: Date.now() + DAY,
      origin: service.sandbox.url,
    })
    const answer = await service.post('comment', HELLO, { authorization: 'Bearer stale' })
    expect([answer.status, answer.body]).toEqual([401, invalid])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="relay", error="invalid_token"')
  })
})

describe('a request is checked in order: 401, 415, 413, 400', () => {
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
      expect(await service.ask(path, body, headers)).toEqual([status, { error }])
  })

  it.each(['', 'application/jsonp', 'application/x-www-form-urlencoded', 'text/json'])(
    '415: %j',
    async (type) => {
      expect((await service.post('react', '{}', { 'content-type': type })).status).toBe(415)
    },
  )

  it.each(['application/json', 'Application/JSON; charset=utf-8', 'application/json;charset=UTF-8'])(
    '%s',
    async (type) => {
      expect((await service.post('comment', HELLO, { 'content-type': type })).status).toBe(200)
    },
  )

  it.each([
    ['Authorization', 401],
    ['Content-Type', 415],
  ])('%s given twice', async (name, status) => {
    const lines = [
      `Authorization: Bearer ${service.token}`,
      'Content-Type: application/json',
      `Content-Length: ${JSON.stringify(HELLO).length}`,
    ]
    const twice = [...lines, lines.find((line) => line.startsWith(name)), '', JSON.stringify(HELLO)]
    const request = `POST /api/comment HTTP/1.1\r\nHost: localhost\r\n${twice.join('\r\n')}`
    expect((await exchange(service.listener.port, request)).status).toBe(status)
  })

  it.each([
    ['a Host of its own', 403, 'Host: evil.example'],
    ['two of them', 400, 'Host: localhost\r\nHost: localhost'],
    ['none', 400, 'X: y'],
  ])('%s', async (_, status, host) => {
    const request = `POST /api/comment HTTP/1.1\r\n${host}\r\nContent-Length: 0\r\n\r\n`
    expect((await exchange(service.listener.port, request)).status).toBe(status)
  })

  it('accepts a chunked body', async () => {
    const body = JSON.stringify(HELLO)
    const head = `POST /api/comment HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${service.token}`
    const coded = `Content-Type: application/json\r\nTransfer-Encoding: chunked`
    const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    const answer = await exchange(service.listener.port, `${head}\r\n${coded}\r\n\r\n${chunks}`)
    expect(answer.status).toBe(200)
  })

  it('reads a refused body, so that the next request on the connection works', async () => {
    const connection = await connect(service.listener.port)
    const head = (headers: string) => `POST /api/comment HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n`
    connection.send(head(`Content-Length: ${big.length}`) + big)
    connection.send(head(`Authorization: Bearer ${service.token}\r\nContent-Length: ${big.length}`) + big)
    const body = JSON.stringify(HELLO)
    const json = `Authorization: Bearer ${service.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
    connection.send(head(json) + body)
    const statuses = [await connection.answer(), await connection.answer(), await connection.answer()]
    expect(statuses.map(({ status }) => status)).toEqual([401, 415, 200])
    connection.socket.destroy()
  })
})
