import { afterAll, describe, expect, it } from 'vitest'
import { exchange, requestText } from '../kit/http.js'
import { call, NOW, refusal, signIn, start } from './sandbox-rig.js'

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
})

describe('a sandbox', () => {
  it.each(['evil.example', 'evil.example:8788', '192.0.2.1'])('refuses the foreign Host %s', async (Host) => {
    const port = Number(new URL(sandbox.url).port)
    for (const path of ['/', '/login/oauth/authorize', '/api/v3/user']) {
      const { status, body } = await exchange(port, requestText('GET', path, { Host }))
      expect({ status, body: JSON.parse(body) }).toEqual(refusal(403, 'Forbidden host'))
    }
  })

  it('shows text of others as text', async () => {
    const body = `<script>alert(1)</script><img src=x onerror="alert(2)">`
    await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body })
    const shown = await (await fetch(`${sandbox.url}/octo/demo/issues/1`)).text()
    expect(shown).toContain('&lt;script&gt;alert(1)')
    expect(shown).not.toMatch(/<script|<img/)
  })
})
