import { createHash } from 'node:crypto'
import { html } from 'hono/html'
import { assert, constantFrom, integer, oneof, option, property, stringMatching, tuple } from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import { htmlPage } from '../../src/http/html.js'
import { listen } from '../../src/http/listen.js'
import { hostCheck } from '../../src/http/host-check.js'
import { createRouter, errorResponse } from '../../src/http/router.js'
import { RecordingLog } from './recording-log.js'
import { connect, exchange, requestText } from '../kit/http.js'

const TYPE = 'application/json'
const allowed = ['relay.example', 'Tunnel.Example.:443', '198.51.100.7']
const onLoopback = hostCheck({ host: '127.0.0.1', allowed })
const onAll = hostCheck({ host: '0.0.0.0', allowed })

describe('the Host check', () => {
  it.each(
    `localhost localhost:8787 LOCALHOST:8787 localhost. localhost.:8787 a.b.localhost:1 127.0.0.1:8787
    127.255.255.254 [::1] [::1]:8787 RELAY.example.:80 tunnel.example 198.51.100.7:8787`.split(/\s+/),
  )('answers %s on loopback', (host) => expect(onLoopback(host)).toBe(true))

  it.each([
    ...`. :8787 evil.example localhost.evil.example evil-localhost .localhost a..localhost localhost.. 127.1 0x7f.0.0.1
    2130706433 127.0.0.1.1 0.0.0.0 192.168.1.5 [::] [2001:db8::1] [::1 ::1 [::1]. [::1]evil.com [localhost] [127.0.0.1]
    [fe80::1%25lo] user@localhost localhost:80@evil.com localhost:8787:8787 localhost:123456 localhost/evil localhost#
    localhost\\evil.com sub.relay.example`.split(/\s+/),
    undefined,
    '',
    'localhost, evil.com',
    'localhost\0',
    'évil.localhost',
  ])('refuses %j on loopback', (host) => expect(onLoopback(host)).toBe(false))

  it('answers to any IP literal where it listens on the network, and to no other name', () => {
    for (const host of ['192.168.1.5:8787', '0.0.0.0', '[2001:db8::1]:80', 'localhost', 'relay.example'])
      expect([host, onAll(host)]).toEqual([host, true])
    for (const host of ['evil.example', '192.168.1.5.evil.com', '999.1.1.1', '[1.2.3.4]', '[dead]'])
      expect([host, onAll(host)]).toEqual([host, false])
    expect(hostCheck({ host: 'Box.Lan', allowed: [] })('box.lan:8787')).toBe(true)
  })

  const port = option(integer({ min: 0, max: 65_535 }), { nil: undefined }).map((n) =>
    n === undefined ? '' : `:${n}`,
  )
  const label = stringMatching(/^[A-Za-z0-9]([A-Za-z0-9-]{0,10}[A-Za-z0-9])?$/)

  it('refuses a name under a foreign domain, whatever its prefix', () => {
    const prefix = oneof(constantFrom('localhost', '127.0.0.1', '[::1]', 'relay.example'), label)
    const domain = tuple(label, constantFrom('com', 'example', 'lan')).map((labels) => labels.join('.'))
    const glue = constantFrom('.', '@', ':80@', '/', '\\', ':', '#', '%2e', ',')
    const foreign = tuple(prefix, glue, domain, port).map((parts) => parts.join(''))
    assert(property(foreign, (host) => !onLoopback(host) && !onAll(host)))
  })
})

it('a path answers the methods of all routes that match it, and allows no other origin', async () => {
  const app = createRouter({ hostAllowed: onLoopback, log: silentLog })
    .delete('/things/:id', (c) => c.text(c.req.param('id')))
    .get('/things/newest', (c) => c.text('newest'))
  const refused = await app.request('/things/newest', { method: 'POST' })
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'DELETE, GET, HEAD'])
  expect((await app.request('http://evil.example/things/newest')).status).toBe(403)
  const { headers } = await app.request('/things/newest', { headers: { origin: 'http://evil.example' } })
  expect([...headers.keys()].join()).not.toContain('access-control')
})

describe('an error', () => {
  const storage = new RelayError('storage', 'No room')
  const unstored = new RelayError('storage', 'Not stored', { cause: storage, forClients: true })
  const failed = new RelayError('provider_failed', 'Failed', { cause: new Error('a secret') })
  const defect = new TypeError('a secret')
  const cancelled = new RelayError('cancelled', 'The client went away')
  const BEARER = { 'www-authenticate': 'Bearer realm="relay", error="invalid_token"' }

  it.each<[thrown: unknown, status: number, headers: object, body: string, level?: string, cause?: unknown]>([
    [new RelayError('invalid_signature', 'Invalid'), 401, {}, 'Invalid', 'debug'],
    [new RelayError('invalid_token', 'Invalid'), 401, BEARER, 'Invalid', 'info'],
    [
      new RelayError('rate_limited', 'Slow', { retryAfter: 60 }),
      429,
      { 'retry-after': '60' },
      'Slow',
      'info',
    ],
    [failed, 502, {}, 'Failed', 'warn'],
    [unstored, 503, {}, 'Not stored', 'error', storage],
    [cancelled, 503, {}, 'The client went away'],
    [defect, 500, {}, 'Internal error', 'error', defect],
    ['text', 500, {}, 'Internal error', 'error', 'text'],
  ])('%s', async (thrown, status, headers, error, level, cause) => {
    const log = new RecordingLog()
    const response = errorResponse(thrown, log, {}, 'GET /')
    const answer = [response.status, Object.fromEntries(response.headers), await response.json()]
    expect(answer).toEqual([status, { 'content-type': TYPE, ...headers }, { error }])
    const why = cause === storage ? ' (No room)' : ''
    const lines = level === undefined ? [] : [`${level} GET / was answered ${status}: ${error}${why}`]
    expect([log.lines, log.causes]).toEqual([lines, cause === undefined ? [] : [cause]])
  })
})

it('a listener closes the connection of a request that cannot be answered, and serves the others', async () => {
  const log = new RecordingLog()
  const secret = new Error('a secret detail')
  vi.spyOn(log, 'error').mockImplementationOnce(() => {
    throw secret
  })
  const answer = ({ url }: Request): Response => {
    if (url.endsWith('/defect')) throw new Error('whose line cannot be logged')
    return Response.json({ ok: true })
  }
  const listener = await listen(answer, { host: '127.0.0.1', port: 0, log })
  using connection = await connect(listener.port)
  connection.send(requestText('GET', '/defect'))
  expect(await connection.closed()).toBe('')
  expect((await exchange(listener.port, requestText('GET', '/ok'))).status).toBe(200)
  await listener.close()
  const lines = ['error a request could not be answered: its connection was closed']
  expect([log.lines, log.causes]).toEqual([lines, [secret]])
})

it('a listener keeps an idle connection for as long as it says, and then closes it', async () => {
  const options = { host: '127.0.0.1', port: 0, log: silentLog, limits: { keepAlive: 1000, idle: 100 } }
  const listener = await listen(() => Response.json({ ok: true }), options)
  using connection = await connect(listener.port)
  connection.send(requestText('GET', '/'))
  expect((await connection.answer()).headers['keep-alive']).toBe('timeout=1')
  const before = performance.now()
  expect(await connection.closed()).toBe('')
  // A timer may end a millisecond early.
  expect(performance.now() - before).toBeGreaterThan(990)
  await listener.close()
})

it('a page may run and load nothing but its own style, allowed by hash', async () => {
  const response = await htmlPage({ title: 'A <title>', body: html`<p>${'<script>'}</p>` }, 400)
  const text = await response.text()
  const [, style = ''] = /<style>([^]*)<\/style>/.exec(text) ?? []
  const hash = createHash('sha256').update(style).digest('base64')
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`
  expect([response.status, Object.fromEntries(response.headers)]).toEqual([
    400,
    {
      'cache-control': 'no-store',
      'content-security-policy': policy,
      'content-type': 'text/html; charset=utf-8',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
  ])
  expect(text).toMatch(/<title>A &lt;title&gt;<\/title>[^]*<p>&lt;script&gt;<\/p>/)
})
