import { describe, expect, it, vi } from 'vitest'
import { githubDelivery } from '../kit/delivery.js'
import { holding } from '../kit/holding.js'
import {
  type BrokenRequest,
  connect,
  exchange,
  halfClosed,
  type RawAnswer,
  refusedByParser,
  refusedForHost,
  requestText,
  silent,
} from '../kit/http.js'
import { linesOf } from '../kit/journal.js'
import { place, type Serving } from '../kit/place.js'
import { shared } from './fixture.js'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const HEALTH = requestText('GET', '/health')
const OK = { status: 200, type: 'application/json', body: '{"status":"ok"}', id: true }
const CONNECT = 'CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n'
const MIB = 1_048_576

/** The parts of an answer that tests compare, and whether its request id is well-formed. */
function essence({ status, headers, body }: RawAnswer) {
  return { status, type: headers['content-type'], body, id: UUID.test(headers['x-request-id'] ?? '') }
}

function failure(status: number, error: string) {
  return { status, type: 'application/json', body: JSON.stringify({ error }), id: true }
}

/** The warnings and errors on standard error. */
function warnings({ err }: Serving): readonly string[] {
  return err.match(/.*(?:warning|error):.*/g) ?? []
}

/** What a relay answers to a valid delivery, and of what it has warned. */
async function served(relay: Serving) {
  const { status } = await relay.deliver()
  return { status, warnings: warnings(relay) }
}

const SERVED = { status: 200, warnings: [] }

const here = shared(() => place({ host: 'none', env: { RELAY_ALLOWED_HOSTS: 'relay.example' } }))
const relay = shared(() => here.serve())

describe('a request that the HTTP parser refuses', () => {
  it.each(refusedByParser('/webhook'))('$name', async ({ request, status, error }) => {
    using connection = await connect(relay.port)
    connection.send(request)
    const answer = await connection.answer()
    expect(essence(answer)).toEqual(failure(status, error))
    expect(answer.headers['connection']).toBe('close')
    expect(await connection.closed()).toBe('')
    expect(await served(relay)).toEqual(SERVED)
  })

  it('is answered when it ends early', async () => {
    using connection = await connect(relay.port)
    connection.socket.end('GET /health HTTP/1.1\r\nHost: loc')
    expect(essence(await connection.answer())).toEqual(failure(400, 'Bad request'))
    expect(await connection.closed()).toBe('')
  })

  it('is answered after an earlier request on the same connection', async () => {
    using connection = await connect(relay.port)
    connection.send(HEALTH)
    expect(essence(await connection.answer())).toEqual(OK)
    connection.send('broken\r\n\r\n')
    expect(essence(await connection.answer())).toEqual(failure(400, 'Bad request'))
    expect(await connection.closed()).toBe('')
  })

  it('closes the connection when it comes together with an earlier one', async () => {
    using connection = await connect(relay.port)
    connection.send(`${HEALTH}broken\r\n\r\n`)
    expect(essence(await connection.answer())).toEqual(OK)
    await connection.closed()
    expect(await served(relay)).toEqual(SERVED)
  })
})

describe('a request that is not finished in time', () => {
  it.each(silent('/webhook'))('$name, then silence: $status', async ({ request, status, error }) => {
    await using own = await place({ host: 'none' })
    const serving = await own.serveWith({ seams: { limits: { headers: 200, request: 400 } } })
    using connection = await connect(serving.port)
    connection.send(request)
    const answer = await connection.answer()
    expect(essence(answer)).toEqual(failure(status, error))
    expect(answer.headers['connection']).toBe('close')
    await connection.closed()
    expect(await served(serving)).toEqual(SERVED)
  })

  it('is forgotten when its client disconnects', async () => {
    for (const { request } of silent('/webhook')) {
      using connection = await connect(relay.port)
      connection.send(request)
      connection.socket.resetAndDestroy()
      expect(await served(relay)).toEqual(SERVED)
    }
  })
})

describe('requests the parser lets through', () => {
  it.each(refusedForHost('/webhook'))('$name', async ({ request, status, error }: BrokenRequest) => {
    expect(essence(await exchange(relay.port, request))).toEqual(failure(status, error))
    expect(await served(relay)).toEqual(SERVED)
  })

  const odd: Record<string, [request: string, expected: ReturnType<typeof essence>]> = {
    'a path that is no path': [requestText('GET', 'health'), failure(400, 'Bad request')],
    'OPTIONS *': [requestText('OPTIONS', '*'), failure(400, 'Bad request')],
    'an unknown expectation': [requestText('GET', '/health', { Expect: 'wonders' }), OK],
    'a bad percent escape': [requestText('GET', '/%zz'), failure(404, 'Not found')],
  }

  it.each(Object.entries(odd))('%s', async (_name, [request, expected]) => {
    expect(essence(await exchange(relay.port, request))).toEqual(expected)
    expect(await served(relay)).toEqual(SERVED)
  })

  it('get an id each', async () => {
    using connection = await connect(relay.port)
    connection.send(HEALTH + requestText('GET', '/nowhere') + requestText('POST', '/health'))
    const ids: (string | undefined)[] = []
    for (let n = 0; n < 3; n++) ids.push((await connection.answer()).headers['x-request-id'])
    expect(new Set(ids).size).toBe(3)
    expect(ids).toEqual(ids.map(() => expect.stringMatching(UUID)))
  })

  it('CONNECT is refused and closed at once, whatever bytes follow', async () => {
    using connection = await connect(relay.port)
    connection.send(CONNECT)
    connection.send(Buffer.alloc(4 * MIB))
    const { status, body } = await connection.answer()
    connection.socket.end()
    expect([status, body, await connection.closed()]).toEqual([400, '{"error":"Bad request"}', ''])
  })

  it('an offer to upgrade is ignored, also with a body', async () => {
    using connection = await connect(relay.port)
    const { headers, body } = githubDelivery()
    const offer = { ...Object.fromEntries(headers), Connection: 'Upgrade', Upgrade: 'websocket' }
    connection.send(requestText('POST', '/webhook', offer, body.toString()))
    expect(await connection.answer()).toMatchObject({ status: 200, body: '{"ok":true}' })
    connection.send(HEALTH)
    expect(essence(await connection.answer())).toEqual(OK)
  })
})

describe('a client that ends its side after the request', () => {
  it('reads its answer, also to a body that breaks off', async () => {
    const half = requestText('POST', '/webhook', { 'Content-Length': '9' }, 'abc')
    expect(await halfClosed(relay.port, half)).toContain('Bad request')
  })

  it('gets the answers to 16 in a row', async () => {
    using connection = await connect(relay.port)
    connection.send(HEALTH.repeat(16))
    for (let n = 0; n < 16; n++) expect(essence(await connection.answer())).toEqual(OK)
  })
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
  const answer = await exchange(relay.port, request)
  return { ...essence(answer), allow: answer.headers['allow'] }
}

describe('a wrong method', () => {
  const wrong = Object.entries(PATHS).flatMap(([path, allow]) =>
    METHODS.filter((method) => !allow.includes(method)).map((method) => ({ method, path, allow })),
  )

  it.each(wrong)('$method $path', async ({ method, path, allow }) => {
    expect(await call(requestText(method, path))).toEqual({ ...failure(405, 'Method not allowed'), allow })
  })

  it('is refused without a body to HEAD, too', async () => {
    const empty = { ...failure(405, ''), allow: 'POST', body: '' }
    expect(await call(requestText('HEAD', '/webhook'))).toEqual(empty)
  })
})

describe('an unknown path', () => {
  const UNKNOWN =
    '/nowhere /health/ /Health /webhook/x /auth /auth/gitea /auth/gitea/callback /api /api/delete /auth/token/a/b //health /health%2f /constructor /__proto__'

  it.each(UNKNOWN.split(' '))('%s', async (path) => {
    for (const method of ['GET', 'POST', 'OPTIONS'])
      expect(await call(requestText(method, path))).toEqual(failure(404, 'Not found'))
  })
})

describe('the Host check', () => {
  it.each(Object.entries(PATHS))('comes before everything: %s', async (path, allow) => {
    for (const method of [allow.split(',')[0] ?? '', 'PUT'])
      expect(await call(requestText(method, path, { Host: 'evil.example' }))).toEqual(
        failure(403, 'Forbidden host'),
      )
  })
})

describe('a request that waits for its answer', () => {
  it.each([
    ['what the parser refuses', 'broken\r\n\r\n'],
    ['CONNECT', CONNECT],
  ])('gets it, and not that of what follows: %s', async (_name, next) => {
    await using held = await holding()
    using connection = await connect(held.relay.port)
    connection.send(held.request + next)
    await held.has(1)
    await exchange(held.relay.port, HEALTH)
    held.release()
    const answer = await connection.answer()
    expect(essence(answer)).toEqual({ ...OK, body: held.answer })
    expect(answer.headers['connection']).toBe('close')
    expect(await connection.closed()).toBe('')
  })

  it('gets none when the body of a later request is broken: its connection is closed', async () => {
    await using held = await holding()
    using connection = await connect(held.relay.port)
    const later = requestText('POST', '/webhook', { 'Transfer-Encoding': 'chunked' })
    connection.send(`${held.request}${later}zz\r\n`)
    expect(await connection.closed()).toBe('')
  })

  it('causes no output when its client disconnects', async () => {
    const noise = [vi.spyOn(console, 'error'), vi.spyOn(console, 'info')]
    await using held = await holding()
    using connection = await connect(held.relay.port)
    connection.send(held.request)
    await held.has(1)
    connection.socket.resetAndDestroy()
    await exchange(held.relay.port, HEALTH)
    held.release()
    expect(essence(await exchange(held.relay.port, HEALTH))).toEqual(OK)
    expect([warnings(held.relay), ...noise.map((spy) => spy.mock.calls)]).toEqual([[], [], []])
    vi.restoreAllMocks()
  })

  it('is answered although its client has ended its side', async () => {
    await using held = await holding()
    const answer = halfClosed(held.relay.port, held.request)
    await held.has(1)
    // The end of the client's side has arrived by then.
    for (let i = 0; i < 3; i++) await exchange(held.relay.port, HEALTH)
    held.release()
    expect(await answer).toContain(held.answer)
  })

  it('is one of 16 on its connection: with one more, it is closed', async () => {
    await using held = await holding()
    using connection = await connect(held.relay.port)
    connection.send(held.request.repeat(1000))
    expect(await connection.closed()).toBe('')
    expect(essence(await exchange(held.relay.port, HEALTH))).toEqual(OK)
    expect(held.begun).toBeLessThanOrEqual(16)
  })

  it('is closed when no byte has passed for the idle limit', async () => {
    await using held = await holding({ seams: { limits: { idle: 200 } } })
    using connection = await connect(held.relay.port)
    connection.send(held.request)
    expect(await connection.closed()).toBe('')
  })
})

describe('starting', () => {
  it.each([
    ['127.0.0.1', 'http://127.0.0.1:PORT'],
    ['localhost', 'http://localhost:PORT'],
    ['0.0.0.0', 'http://127.0.0.1:PORT'],
    ['::1', 'http://[::1]:PORT'],
    ['::', 'http://[::1]:PORT'],
  ])('on %s names an address that clients can call', async (host, address) => {
    await using own = await place({ host: 'none' })
    const serving = await own.serve('--host', host)
    expect(await (await fetch(`${serving.address}/health`)).text()).toBe('{"status":"ok"}')
    expect(serving.address.replace(/:\d+$/, ':PORT')).toBe(address)
  })

  it('reports that an address does not belong to this machine', async () => {
    await using own = await place({ host: 'none' })
    const { code, err } = await own.run('serve', '--host', '192.0.2.1', '--port', '8787')
    const foreign =
      'Cannot listen on 192.0.2.1, port 8787 (EADDRNOTAVAIL). Choose another address with --host.'
    expect([code, err]).toEqual([1, expect.stringContaining(`error: ${foreign}\n`)])
  })
})

describe('closing', () => {
  it('lets a request in flight finish and closes its connection', async () => {
    await using held = await holding()
    using connection = await connect(held.relay.port)
    connection.send(held.request)
    await held.has(1)
    const ended = held.relay.stop()
    await refuses(held.relay)
    held.release()
    const answer = await connection.answer()
    expect(essence(answer)).toEqual({ ...OK, body: held.answer })
    expect(answer.headers['connection']).toBe('close')
    expect((await ended).code).toBe(0)
    await connection.closed()
  })

  it('lets an upload finish, and stores it', async () => {
    await using own = await place({ host: 'none' })
    const serving = await own.serve()
    using connection = await connect(serving.port)
    const { headers, body } = githubDelivery({ id: 'uploaded' })
    const all = { ...Object.fromEntries(headers), 'Content-Length': String(body.byteLength) }
    connection.send(requestText('POST', '/webhook', all, body.toString().slice(0, -1)))
    await exchange(serving.port, HEALTH)
    const ended = serving.stop()
    await refuses(serving)
    connection.send(body.subarray(-1))
    const answer = await connection.answer()
    expect(essence(answer)).toEqual({ ...OK, body: '{"ok":true}' })
    expect(answer.headers['connection']).toBe('close')
    expect((await ended).code).toBe(0)
    expect((await linesOf(own)).map(({ delivery }) => delivery)).toEqual(['uploaded'])
  })

  it('lets a request of which a part has come finish, too', async () => {
    await using own = await place({ host: 'none' })
    const serving = await own.serve()
    using connection = await connect(serving.port)
    connection.send(HEALTH)
    await connection.answer()
    connection.send(HEALTH.slice(0, 9))
    await exchange(serving.port, HEALTH)
    const ended = serving.stop()
    await refuses(serving)
    connection.send(HEALTH.slice(9))
    const answer = await connection.answer()
    expect([essence(answer), answer.headers['connection']]).toEqual([OK, 'close'])
    expect((await ended).code).toBe(0)
  })

  it('closes idle connections at once and accepts no new ones', async () => {
    await using own = await place({ host: 'none' })
    const serving = await own.serve()
    using used = await connect(serving.port)
    used.send(HEALTH)
    await used.answer()
    using fresh = await connect(serving.port)
    const start = performance.now()
    await serving.stop()
    await Promise.all([used.closed(), fresh.closed()])
    expect(performance.now() - start).toBeLessThan(1_000)
    await expect(connect(serving.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})

/** Waits until a relay takes no more connections. */
async function refuses({ port }: Serving): Promise<void> {
  const isRefused = () =>
    connect(port).then(
      (connection) => connection[Symbol.dispose](),
      () => true,
    )
  await expect.poll(isRefused).toBe(true)
}
