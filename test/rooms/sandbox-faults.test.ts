import { afterAll, describe, expect, it } from 'vitest'
import { exchange, requestText } from '../kit/http.js'
import { answerOf, call, getCode, json, NOW, redeem, refusal, signIn, start } from './sandbox-rig.js'

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
const react = (content: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${sandbox.url}/api/v3/repos/octo/demo/issues/1/reactions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ content }),
    ...(signal && { signal }),
  })

const RATE_LIMIT = '{"message":"API rate limit exceeded for user ID 1.",'
const SECONDARY =
  '{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",'

describe('the fault of a repository', () => {
  it.each([
    ['502', 502, 'text/html', {}, '<html><head><title>502 Bad Gateway'],
    ['rate-limit', 403, 'application/json', { remaining: '0', reset: String(NOW / 1000 + 60) }, RATE_LIMIT],
    ['secondary-limit', 403, 'application/json', { remaining: '4999' }, SECONDARY],
    ['invalid-json', 200, 'application/json', { remaining: '4999' }, '{"id":1,"html_url":"http'],
  ])('%s is answered %i with %s, and nothing is written', async (name, status, type, limits, text) => {
    const answer = await comment(`fault-${name}`)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      status,
      expect.stringContaining(type),
    ])
    for (const [limit, value] of Object.entries(limits))
      expect(answer.headers.get(`x-ratelimit-${limit}`)).toBe(value)
    expect(answer.headers.get('retry-after')).toBe(name === 'secondary-limit' ? '60' : null)
    expect((await answer.text()).startsWith(text)).toBe(true)
    expect(stored(`fault-${name}`)).toBe(0)
  })

  it.each([
    ['reset', 0],
    ['reset-after', 1],
  ])('%s ends the connection when %i comment was written', async (name, count) => {
    await expect(comment(`fault-${name}`)).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    expect(stored(`fault-${name}`)).toBe(count)
  })

  it('slow does nothing for a client that disconnected', async () => {
    const waiting = comment('fault-slow', AbortSignal.timeout(200))
    await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(stored('fault-slow')).toBe(0)
  })

  it('applies to each of the three writes, of a request with a valid token', async () => {
    const repo = '/repos/octo/fault-502'
    const merge = await call(sandbox, `PUT ${repo}/pulls/2/merge`, headers)
    const reacted = await call(sandbox, `POST ${repo}/issues/1/reactions`, headers, { content: 'heart' })
    const read = await call(sandbox, `GET ${repo}/issues/1`, headers)
    const stranger = await call(sandbox, `POST ${repo}/issues/1/comments`, {}, { body: 'x' })
    expect([merge, reacted, read, stranger].map(({ status }) => status)).toEqual([502, 502, 200, 401])
  })
})

describe('a fault that is set', () => {
  it('applies once, in order, or until it is cleared', async () => {
    sandbox.faults.always('comment', '502')
    sandbox.faults.next('comment', { kind: 'answer', status: 418, body: '{}' })
    sandbox.faults.next('comment', 'rate-limit')
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) statuses.push((await comment('demo')).status)
    sandbox.faults.clear()
    statuses.push((await comment('demo')).status)
    expect(statuses).toEqual([418, 403, 502, 502, 201])
  })

  it('slow delays an operation, late its answer', async () => {
    sandbox.faults.next('react', { kind: 'slow', ms: 50 })
    const started = performance.now()
    expect((await react('eyes')).status).toBe(201)
    expect(performance.now() - started).toBeGreaterThanOrEqual(45)
    sandbox.faults.next('react', { kind: 'late', ms: 60_000 })
    const stop = new AbortController()
    const late = react('rocket', stop.signal)
    await expect.poll(() => sandbox.state.reactions.map(({ content }) => content)).toContain('rocket')
    stop.abort()
    await expect(late).rejects.toThrow('aborted')
  })

  it('applies to what needs no token, too', async () => {
    sandbox.faults.next('device', '502')
    sandbox.faults.next('convert', '502')
    for (const path of ['/login/device/code', '/api/v3/app-manifests/x/conversions'])
      expect((await fetch(sandbox.url + path, { method: 'POST' })).status).toBe(502)
    const code = await getCode(sandbox)
    sandbox.faults.next('token', 'reset')
    await expect(redeem(sandbox, code)).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    expect(await json(redeem(sandbox, code))).toHaveProperty('access_token')
  })

  it('ends when the sandbox closes', async () => {
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

  it.each(['evil.example', 'evil.example:8788', '192.0.2.1'])('refuses the foreign Host %s', async (Host) => {
    const port = Number(new URL(sandbox.url).port)
    for (const path of ['/', '/login/oauth/authorize', '/api/v3/user']) {
      const { status, body } = await exchange(port, requestText('GET', path, { Host }))
      expect({ status, body: JSON.parse(body) }).toEqual(refusal(403, 'Forbidden host'))
    }
  })

  it.each(['/nothing', '/octo/nothing', '/octo/demo/issues/99', '/octo/no-issues/issues/1', '/a/b/c'])(
    'has no page %s',
    async (path) => {
      expect(await answerOf(await fetch(sandbox.url + path))).toEqual(refusal(404, 'Not Found'))
    },
  )

  it('records requests without queries', async () => {
    await fetch(`${sandbox.url}/?code=secret`)
    expect(sandbox.state.requests.at(-1)).toEqual({ method: 'GET', path: '/' })
  })

  it('shows text of others as text', async () => {
    const body = `<script>alert(1)</script><img src=x onerror="alert(2)">`
    await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body })
    const shown = await (await fetch(`${sandbox.url}/octo/demo/issues/1`)).text()
    expect(shown).toContain('&lt;script&gt;alert(1)')
    expect(shown).not.toMatch(/<script|<img/)
  })

  it('has a page behind every link of its front page', async () => {
    const front = await (await fetch(sandbox.url)).text()
    const links = [...front.matchAll(/href="([^"]+)"/g)].map(([, link = '']) => link)
    expect(links).toHaveLength(16)
    for (const link of links) expect((await fetch(sandbox.url + link)).status).toBe(200)
  })

  it('shows the newest hundred comments, and leads from an issue to its pull request', async () => {
    await using other = await start()
    const issue = other.state.issue('octo/demo', 2)
    for (let i = 0; i < 102; i++) if (issue) other.state.addComment(issue, 'octo', `comment ${i}.`)
    const answer = await fetch(`${other.url}/octo/demo/issues/2`)
    expect(answer.url).toBe(`${other.url}/octo/demo/pull/2`)
    const shown = await answer.text()
    expect(shown).toContain('2 older comments')
    expect(shown).not.toContain('comment 1.')
    expect(shown).toContain('comment 2.')
  })
})
