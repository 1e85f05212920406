import { afterAll, describe, expect, it } from 'vitest'
import type { Fault } from '../../src/sandbox/faults.js'
import { exchange, requestText } from '../kit/http.js'
import { answerOf, call, getCode, NOW, redeem, refusal, signIn, start } from './sandbox-rig.js'

const sandbox = await start()
const headers = await signIn(sandbox)
afterAll(() => sandbox[Symbol.asyncDispose]())

const comment = (repo: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${sandbox.url}/api/v3/repos/octo/${repo}/issues/1/comments`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ body: repo }),
    ...(signal && { signal }),
  })
const stored = (repo: string): number =>
  sandbox.state.comments.filter((comment) => comment.repo === `octo/${repo}`).length

describe('by repository', () => {
  it('502 is the HTML page of a proxy', async () => {
    const answer = await comment('fault-502')
    expect([answer.status, answer.headers.get('content-type')]).toEqual([502, 'text/html'])
    expect(await answer.text()).toMatch(/^<html>.*Bad Gateway/)
    expect(stored('fault-502')).toBe(0)
  })

  it('rate-limit is a 403 with the end of the hour', async () => {
    const answer = await comment('fault-rate-limit')
    const limits = ['limit', 'remaining', 'used', 'reset'].map((name) =>
      answer.headers.get(`x-ratelimit-${name}`),
    )
    expect(limits).toEqual(['5000', '0', '5000', String(NOW / 1000 + 60)])
    expect(answer.headers.get('retry-after')).toBeNull()
    expect(await answerOf(answer)).toEqual(refusal(403, 'API rate limit exceeded for user ID 1.'))
  })

  it('secondary-limit is a 403 with the time to wait', async () => {
    const answer = await comment('fault-secondary-limit')
    expect([answer.headers.get('retry-after'), answer.headers.get('x-ratelimit-remaining')]).toEqual([
      '60',
      '4999',
    ])
    const message =
      'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.'
    expect(await answerOf(answer)).toEqual(refusal(403, message))
  })

  it('invalid-json is cut off in the middle, with status 200', async () => {
    const answer = await comment('fault-invalid-json')
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      200,
      'application/json; charset=utf-8',
    ])
    await expect(answer.json()).rejects.toThrow(SyntaxError)
  })

  it('reset ends the connection and does nothing', async () => {
    await expect(comment('fault-reset')).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    expect(stored('fault-reset')).toBe(0)
  })

  it('reset-after does the operation and ends the connection', async () => {
    await expect(comment('fault-reset-after')).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    expect(stored('fault-reset-after')).toBe(1)
  })

  it('slow does nothing for a client that disconnected', async () => {
    await expect(comment('fault-slow', AbortSignal.timeout(200))).rejects.toMatchObject({
      name: 'TimeoutError',
    })
    expect(stored('fault-slow')).toBe(0)
  })

  it('applies to each of the three writes', async () => {
    const repo = '/repos/octo/fault-502'
    const merge = await call(sandbox, `PUT ${repo}/pulls/2/merge`, headers)
    const react = await call(sandbox, `POST ${repo}/issues/1/reactions`, headers, { content: 'heart' })
    expect([merge.status, react.status]).toEqual([502, 502])
    expect((await call(sandbox, `GET ${repo}/issues/1`, headers)).status).toBe(200)
  })

  it('applies only to requests with a valid token', async () => {
    const answer = await call(sandbox, 'POST /repos/octo/fault-502/issues/1/comments', {}, { body: 'x' })
    expect(answer.status).toBe(401)
  })
})

describe('set in-process', () => {
  it('a one-shot fault applies once, several apply in order', async () => {
    sandbox.faults.next('comment', '502')
    sandbox.faults.next('comment', { kind: 'answer', status: 418, body: '{}' })
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await comment('demo')).status)
    expect(statuses).toEqual([502, 418, 201])
  })

  it('a permanent fault applies until it is cleared', async () => {
    sandbox.faults.always('user', '502')
    const user = async (): Promise<number> => (await call(sandbox, 'GET /user', headers)).status
    expect([await user(), await user()]).toEqual([502, 502])
    sandbox.faults.clear()
    expect(await user()).toBe(200)
  })

  it('a slow operation is done after the given time', async () => {
    const fault: Fault = { kind: 'slow', ms: 50 }
    sandbox.faults.next('react', fault)
    const started = performance.now()
    const answer = await call(sandbox, 'POST /repos/octo/demo/issues/1/reactions', headers, {
      content: 'eyes',
    })
    expect(answer.status).toBe(201)
    expect(performance.now() - started).toBeGreaterThanOrEqual(45)
  })

  it('a late operation is done before the given time', async () => {
    sandbox.faults.next('react', { kind: 'late', ms: 60_000 })
    const stop = new AbortController()
    const reactions = `${sandbox.url}/api/v3/repos/octo/demo/issues/1/reactions`
    const answer = fetch(reactions, {
      method: 'POST',
      headers,
      body: '{"content":"rocket"}',
      signal: stop.signal,
    })
    await expect.poll(() => sandbox.state.reactions.map(({ content }) => content)).toContain('rocket')
    stop.abort()
    await expect(answer).rejects.toThrow('aborted')
  })

  it('asking for a device code and exchanging a manifest fail too', async () => {
    sandbox.faults.next('device', '502')
    sandbox.faults.next('convert', '502')
    for (const path of ['/login/device/code', '/api/v3/app-manifests/x/conversions'])
      expect((await fetch(sandbox.url + path, { method: 'POST' })).status).toBe(502)
  })

  it('the token endpoint fails like the other operations', async () => {
    const code = await getCode(sandbox)
    sandbox.faults.next('token', '502')
    expect((await redeem(sandbox, code)).status).toBe(502)
    sandbox.faults.next('token', 'invalid-json')
    await expect((await redeem(sandbox, code)).json()).rejects.toThrow(SyntaxError)
    sandbox.faults.next('token', 'reset')
    await expect(redeem(sandbox, code)).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    expect(await (await redeem(sandbox, code)).json()).toHaveProperty('access_token')
  })

  it('a merge is done before reset-after', async () => {
    sandbox.faults.next('merge', 'reset-after')
    await expect(call(sandbox, 'PUT /repos/octo/demo/pulls/5/merge', headers)).rejects.toThrow('fetch failed')
    expect(sandbox.state.merges).toMatchObject([{ pullNumber: 5 }])
  })

  it('closing the sandbox ends a slow operation', async () => {
    const sandbox = await start()
    const authorization = await signIn(sandbox)
    sandbox.faults.always('user', 'slow')
    const waiting = call(sandbox, 'GET /user', authorization)
    while (sandbox.state.requests.at(-1)?.path !== '/api/v3/user') await new Promise(setImmediate)
    await sandbox[Symbol.asyncDispose]()
    expect((await waiting).status).toBe(503)
  })
})

describe('a sandbox', () => {
  it('listens on the loopback interface at the given port', async () => {
    await using first = await start()
    expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const port = Number(new URL(first.url).port)
    await expect(start({ port })).rejects.toMatchObject({ kind: 'unavailable' })
    await first[Symbol.asyncDispose]()
    await using second = await start({ port })
    expect(second.url).toBe(first.url)
  })

  it.each(['evil.example', 'evil.example:8788', '192.0.2.1'])(
    'refuses the foreign Host %s everywhere',
    async (Host) => {
      await using sandbox = await start()
      const port = Number(new URL(sandbox.url).port)
      for (const path of ['/', '/login/oauth/authorize', '/api/v3/user']) {
        const { status, body } = await exchange(port, requestText('GET', path, { Host }))
        expect({ status, body: JSON.parse(body) }).toEqual(refusal(403, 'Forbidden host'))
      }
      expect((await exchange(port, requestText('GET', '/'))).status).toBe(200)
    },
  )

  it('responds to an unknown path like GitHub', async () => {
    await using sandbox = await start()
    for (const path of [
      '/nothing',
      '/octo/nothing',
      '/octo/demo/issues/99',
      '/octo/no-issues/issues/1',
      '/a/b/c',
    ]) {
      expect(await answerOf(await fetch(sandbox.url + path))).toEqual(refusal(404, 'Not Found'))
    }
  })

  it('records requests without queries', async () => {
    await using sandbox = await start()
    await fetch(`${sandbox.url}/?code=secret`)
    expect(sandbox.state.requests).toEqual([{ method: 'GET', path: '/' }])
  })

  it('works without a webhook', async () => {
    await using sandbox = await start()
    await sandbox.ping()
    const headers = await signIn(sandbox)
    const answer = await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body: 'x' })
    expect(answer.status).toBe(201)
    await sandbox.idle()
  })
})
