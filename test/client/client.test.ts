import { createServer } from 'node:net'
import { once } from 'node:events'
import { afterAll, describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { createClient, type RelayClient } from '../../src/client/client.js'
import { createLoopbackClient } from '../../src/net/loopback.js'
import { portOf, scriptedServer, type Answer } from '../helpers/scripted-server.js'

const BEARER = 'bearer-canary'
const issue = { owner: 'octo', repo: 'demo', issueNumber: 1 }
const DOUBT = '; the request may have been carried out all the same'

const loopback = createLoopbackClient()
afterAll(() => loopback[Symbol.dispose]())

function client(url: string) {
  return createClient({ url, bearer: BEARER, send: loopback.send })
}

/** What a comment sent to a service that answers so comes to. */
async function outcome(answer: Answer) {
  await using server = await scriptedServer(() => answer)
  const error: unknown = await client(server.url)
    .comment({ ...issue, body: 'hello' })
    .catch((error: unknown) => error)
  if (!(error instanceof RelayError)) throw new Error('it did not fail as it should')
  const { kind, message, retryAfter } = error
  return { kind, message: message.replace(server.url, 'URL'), retryAfter, requests: server.received.length }
}

describe('calls', () => {
  const pull = { owner: 'octo', repo: 'demo', pullNumber: 2 }
  const squash = { ...pull, method: 'squash', sha: 'b'.repeat(40) } as const
  const heart = { ...issue, content: 'heart', commentId: 5 } as const
  const commented = { id: 5, url: 'https://git.example/octo/demo/issues/1#issuecomment-5' }
  const merged = { merged: true, sha: 'a'.repeat(40) } as const
  const reacted = { id: null, content: 'heart', created: true } as const

  it.each<[string, object, object, (client: RelayClient) => Promise<object>]>([
    [
      'comment',
      { ...issue, body: 'héllo' },
      commented,
      (client) => client.comment({ ...issue, body: 'héllo' }),
    ],
    ['merge', squash, merged, (client) => client.merge(squash)],
    ['merge', pull, { merged: false, sha: null }, (client) => client.merge(pull)],
    ['react', heart, reacted, (client) => client.react(heart)],
  ])('%s', async (name, input, result, call) => {
    await using server = await scriptedServer(() => ({ body: { ok: true, ...result } }))
    expect(await call(client(server.url))).toEqual(result)
    const [request] = server.received
    expect({ ...request, body: JSON.parse(request?.body ?? ''), headers: undefined }).toEqual({
      method: 'POST',
      path: `/api/${name}`,
      headers: undefined,
      body: input,
    })
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${BEARER}`,
      'content-type': 'application/json',
    })
    expect(server.received).toHaveLength(1)
  })
})

describe('refusals', () => {
  it.each([
    [400, 'bad_request'],
    [401, 'unauthenticated'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [405, 'method_not_allowed'],
    [408, 'request_timeout'],
    [409, 'conflict'],
    [410, 'gone'],
    [413, 'too_large'],
    [415, 'unsupported_media_type'],
    [422, 'unprocessable'],
    [429, 'rate_limited'],
    [431, 'header_too_large'],
    [500, 'internal'],
    [502, 'provider_failed'],
    [503, 'unavailable'],
    [504, 'provider_timeout'],
    [418, 'unavailable'],
  ])('%i', async (status, kind) => {
    const said = { kind, message: 'the reason', retryAfter: undefined, requests: 1 }
    expect(await outcome({ status, body: { error: 'the reason' } })).toEqual(said)
  })

  it('names the time of the next try', async () => {
    const answer = { status: 429, headers: { 'retry-after': '60' }, body: { error: 'too many' } }
    expect(await outcome(answer)).toMatchObject({ kind: 'rate_limited', retryAfter: 60 })
  })

  it.each(['<html>', '{}', '{"error":1}', 'null', '[]', ''])('%j names no time', async (body) => {
    const said = { kind: 'unavailable', message: 'relay answered 503', retryAfter: undefined, requests: 1 }
    expect(await outcome({ status: 503, body })).toEqual(said)
  })
})

describe('no answer', () => {
  it('cannot be reached', async () => {
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const url = `http://127.0.0.1:${portOf(free)}`
    free.close()
    await expect(client(url).comment({ ...issue, body: 'hello' })).rejects.toMatchObject({
      kind: 'unavailable',
      message: `relay at ${url} cannot be reached (connection refused)`,
    })
  })

  it('breaks the connection: it may have happened, and is not sent again', async () => {
    expect(await outcome('reset')).toEqual({
      kind: 'unavailable',
      message: `relay at URL gave no complete answer (connection closed before an answer)${DOUBT}`,
      retryAfter: undefined,
      requests: 1,
    })
  })

  it.each(['{"ok":tr', ''])('an answer that is no answer: %j', async (body) => {
    expect(await outcome({ status: 200, body })).toEqual({
      kind: 'unavailable',
      message: `relay at URL gave an answer that is not understood${DOUBT}`,
      retryAfter: undefined,
      requests: 1,
    })
  })

  it('a redirect is not followed, so that the bearer goes nowhere else', async () => {
    await using elsewhere = await scriptedServer(() => ({ body: { ok: true } }))
    const answer = { status: 307, headers: { location: `${elsewhere.url}/api/comment` } }
    expect(await outcome(answer)).toMatchObject({ kind: 'unavailable', requests: 1 })
    expect(elsewhere.received).toEqual([])
  })
})

describe('interrupted', () => {
  const reason = new RelayError('cancelled', 'Interrupted')

  it('before: nothing is sent', async () => {
    await using server = await scriptedServer(() => ({}))
    const calling = client(server.url).comment({ ...issue, body: 'x' }, { signal: AbortSignal.abort(reason) })
    await expect(calling).rejects.toBe(reason)
    expect(server.received).toEqual([])
  })

  it('after it was sent: it may have happened', async () => {
    const abort = new AbortController()
    await using server = await scriptedServer(() => {
      abort.abort(reason)
      return 'silence'
    })
    const calling = client(server.url).comment({ ...issue, body: 'x' }, { signal: abort.signal })
    await expect(calling).rejects.toMatchObject({ kind: 'cancelled', message: `Interrupted${DOUBT}` })
    expect(server.received).toHaveLength(1)
  })
})
