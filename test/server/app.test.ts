import { hc } from 'hono/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import { DEFAULTS, NO_ROUTES, type Settings } from '../../src/base/settings.js'
import { type Listener, listen } from '../../src/http/listen.js'
import { createRelay, type Relay } from '../../src/relay.js'
import { exchange, requestText } from '../helpers/http.js'

const settings: Settings = {
  profile: 'test',
  folder: '',
  provider: 'github',
  providerUrl: 'https://github.com',
  webhookSecrets: { current: new Secret('It’s a Secret to Everybody') },
  host: '127.0.0.1',
  port: 0,
  allowedHosts: ['relay.example'],
  store: 'memory',
  maxBody: DEFAULTS.maxBody,
  tokenTtl: DEFAULTS.tokenTtl,
  routes: NO_ROUTES,
  concurrency: 1,
  onDuplicate: 'if-failed',
  keep: DEFAULTS.keep,
  keepMax: DEFAULTS.keepMax,
}

let relay: Relay
let listener: Listener

beforeAll(async () => {
  relay = await createRelay(settings)
  listener = await listen(relay.app.fetch, { ...settings, log: silentLog })
})

afterAll(async () => {
  await listener.close()
  await relay[Symbol.asyncDispose]()
})

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
  const { status, headers, body } = await exchange(listener.port, request)
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

describe('in-process', () => {
  it('answers a typed client without a port', async () => {
    const client = hc<Relay['app']>('http://localhost', { fetch: relay.app.request })
    const response = await client.health.$get()
    const { status }: { status: string } = await response.json()
    expect(status).toBe('ok')
  })
})
