import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { hostCheck } from '../../src/http/host.js'
import { createRouter } from '../../src/http/router.js'

const app = createRouter({ hostAllowed: hostCheck({ host: '127.0.0.1', allowed: [] }), log: silentLog })
  .get('/things', (c) => c.json({ things: [] }))
  .post('/things', (c) => c.json({ ok: true }))
  .delete('/things/:id', (c) => c.json({ id: c.req.param('id') }))
  .get('/things/newest', (c) => c.json({ id: 'newest' }))

async function call(method: string, path: string) {
  const response = await app.request(path, { method })
  const { status, headers } = response
  return {
    status,
    allow: headers.get('allow'),
    type: headers.get('content-type'),
    body: await response.text(),
  }
}

const type = 'application/json'
const refusal = (allow: string) => ({ status: 405, allow, type, body: '{"error":"Method not allowed"}' })

describe('the routing table decides', () => {
  it.each([
    ['PUT', '/things', refusal('GET, HEAD, POST')],
    ['OPTIONS', '/things', refusal('GET, HEAD, POST')],
    ['PROPFIND', '/things', refusal('GET, HEAD, POST')],
    ['GET', '/things/7', refusal('DELETE')],
    ['POST', '/things/newest', refusal('GET, HEAD, DELETE')],
    ['HEAD', '/things/7', { ...refusal('DELETE'), body: '' }],
    ['HEAD', '/things', { status: 200, allow: null, type, body: '' }],
    ['GET', '/thing', { status: 404, allow: null, type, body: '{"error":"Not found"}' }],
    ['GET', '/things/', { status: 404, allow: null, type, body: '{"error":"Not found"}' }],
    ['OPTIONS', '/nowhere', { status: 404, allow: null, type, body: '{"error":"Not found"}' }],
    ['DELETE', '/things/7', { status: 200, allow: null, type, body: '{"id":"7"}' }],
  ])('%s %s', async (method, path, expected) => {
    expect(await call(method, path)).toEqual(expected)
  })

  it('sends no CORS headers', async () => {
    const response = await app.request('/things', {
      method: 'OPTIONS',
      headers: { Origin: 'http://evil.example' },
    })
    expect([...response.headers.keys()]).toEqual(['allow', 'content-type'])
  })

  it('checks the address of an in-process request', async () => {
    expect(await call('GET', 'http://127.0.0.1:8787/things')).toMatchObject({ status: 200 })
    expect(await call('GET', 'http://evil.example/things')).toEqual({
      status: 403,
      allow: null,
      type,
      body: '{"error":"Forbidden host"}',
    })
  })
})
