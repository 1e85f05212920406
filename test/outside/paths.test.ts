import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exchange, requestText } from '../kit/http.js'
import { type Place, place } from '../kit/place.js'

let here: Place
let port: number

beforeAll(async () => {
  const env = { RELAY_PROVIDER: 'github', RELAY_ALLOWED_HOSTS: 'relay.example' }
  here = await place({ host: 'none', env })
  port = (await here.serve()).port
})

afterAll(() => here[Symbol.asyncDispose]())

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY']

const PATHS: Record<string, string> = {
  '/': 'GET, HEAD',
  '/health': 'GET, HEAD',
  '/ready': 'GET, HEAD',
  '/webhook': 'POST',
  '/auth/github': 'GET, HEAD',
  '/auth/provider': 'GET, HEAD',
  '/auth/github/callback': 'GET, HEAD',
  '/auth/provider/callback': 'GET, HEAD',
  '/auth/token/someone': 'DELETE',
  '/api/comment': 'POST',
  '/api/merge': 'POST',
  '/api/react': 'POST',
}

async function call(request: string) {
  const { status, headers, body } = await exchange(port, request)
  return { status, type: headers['content-type'], allow: headers['allow'], body }
}

describe('a wrong method', () => {
  const wrong = Object.entries(PATHS).flatMap(([path, allow]) =>
    METHODS.filter((method) => !allow.includes(method)).map((method) => ({ method, path, allow })),
  )

  it.each(wrong)('$method $path', async ({ method, path, allow }) => {
    expect(await call(requestText(method, path))).toEqual({
      status: 405,
      type: 'application/json',
      allow,
      body: '{"error":"Method not allowed"}',
    })
  })

  it('is refused without a body to HEAD, too', async () => {
    expect(await call(requestText('HEAD', '/webhook'))).toEqual({
      status: 405,
      type: 'application/json',
      allow: 'POST',
      body: '',
    })
  })
})

describe('an unknown path', () => {
  const unknown = [
    '/nowhere',
    '/health/',
    '/Health',
    '/webhook/x',
    '/auth',
    '/auth/gitea',
    '/auth/gitea/callback',
  ]
  const odd = [
    '/api',
    '/api/delete',
    '/auth/token/a/b',
    '//health',
    '/health%2f',
    '/constructor',
    '/__proto__',
  ]

  it.each([...unknown, ...odd])('%s', async (path) => {
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      expect(await call(requestText(method, path))).toEqual({
        status: 404,
        type: 'application/json',
        allow: undefined,
        body: '{"error":"Not found"}',
      })
    }
  })
})

describe('the Host check', () => {
  it.each(Object.entries(PATHS))('comes before everything: %s', async (path, allow) => {
    for (const method of [allow.split(',')[0] ?? '', 'PUT']) {
      expect(await call(requestText(method, path, { Host: 'evil.example' }))).toEqual({
        status: 403,
        type: 'application/json',
        allow: undefined,
        body: '{"error":"Forbidden host"}',
      })
    }
  })

  it('accepts the names that the settings allow', async () => {
    expect(await call(requestText('GET', '/health', { Host: 'relay.example' }))).toEqual({
      status: 200,
      type: 'application/json',
      allow: undefined,
      body: '{"status":"ok"}',
    })
  })
})
