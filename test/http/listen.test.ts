import { describe, expect, it, vi } from 'vitest'
import { listen } from '../../src/http/listen.js'
import { refusedByParser, refusedForHost, silent } from '../helpers/broken-http.js'
import { type Answer, connect, exchange, requestText } from '../helpers/http.js'
import { recordingLog, startEdge } from './edge.js'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const OK = { status: 200, type: 'application/json', body: '{"ok":true}', id: true }

/** The parts of an answer that tests compare, and whether its request id is well-formed. */
function essence({ status, headers, body }: Answer) {
  return { status, type: headers['content-type'], body, id: UUID.test(headers['x-request-id'] ?? '') }
}

function failure(status: number, error: string) {
  return { status, type: 'application/json', body: JSON.stringify({ error }), id: true }
}

describe('a request that the HTTP parser refuses', () => {
  it.each(refusedByParser('/body'))('$name', async ({ request, status, error }) => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    connection.send(request)
    const answer = await connection.answer()
    expect(essence(answer)).toEqual(failure(status, error))
    expect(answer.headers['connection']).toBe('close')
    expect(await connection.closed()).toBe('')
    expect(essence(await exchange(edge.port, requestText('GET', '/ok')))).toEqual(OK)
    expect(edge.lines).toEqual([])
  })

  it('is not answered in place of a pending response', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await using edge = await startEdge({ hold: () => held })
    const connection = await connect(edge.port)
    connection.send(`${requestText('GET', '/held')}broken\r\n\r\n`)
    await exchange(edge.port, requestText('GET', '/ok'))
    release()
    const answer = await connection.answer()
    expect(essence(answer)).toEqual({ ...OK, body: '{"held":true}' })
    expect(answer.headers['connection']).toBe('close')
    expect(await connection.closed()).toBe('')
  })

  it('closes the connection when it is the body of a later request, rather than answer the earlier one', async () => {
    await using edge = await startEdge({ hold: () => new Promise(() => {}), limits: { grace: 0 } })
    const connection = await connect(edge.port)
    const later = requestText('POST', '/body', { 'Transfer-Encoding': 'chunked' })
    connection.send(`${requestText('GET', '/held')}${later}zz\r\n`)
    expect(await connection.closed()).toBe('')
  })

  it('is answered when it ends early', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    connection.socket.end('GET /ok HTTP/1.1\r\nHost: loc')
    expect(essence(await connection.answer())).toEqual(failure(400, 'Bad request'))
    expect(await connection.closed()).toBe('')
  })

  it('is answered after an earlier request on the same connection', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    connection.send(requestText('GET', '/ok'))
    expect(essence(await connection.answer())).toEqual(OK)
    connection.send('broken\r\n\r\n')
    expect(essence(await connection.answer())).toEqual(failure(400, 'Bad request'))
    expect(await connection.closed()).toBe('')
  })
})

describe('a request that is not finished in time', () => {
  it.each(silent('/body'))('$name, then silence: $status', async ({ request, status, error }) => {
    await using edge = await startEdge({ limits: { headers: 200, request: 400 } })
    const connection = await connect(edge.port)
    connection.send(request)
    const answer = await connection.answer()
    expect(essence(answer)).toEqual(failure(status, error))
    expect(answer.headers['connection']).toBe('close')
    await connection.closed()
    expect(essence(await exchange(edge.port, requestText('GET', '/ok')))).toEqual(OK)
    expect(edge.lines).toEqual([])
  })

  it('has 10 s for its headers, at most 1.5 s more', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    const start = performance.now()
    connection.send('GET /ok HTTP/1.1\r\nHost: loc')
    expect(essence(await connection.answer())).toEqual(failure(408, 'Request timeout'))
    const seconds = (performance.now() - start) / 1000
    expect(seconds).toBeGreaterThan(9.9)
    expect(seconds).toBeLessThan(11.5)
  })
})

describe('requests the parser lets through', () => {
  it.each(refusedForHost('/body'))('$name', async ({ request, status, error }) => {
    await using edge = await startEdge()
    expect(essence(await exchange(edge.port, request))).toEqual(failure(status, error))
    expect(essence(await exchange(edge.port, requestText('GET', '/ok')))).toEqual(OK)
  })

  const odd: Record<string, [request: string, expected: ReturnType<typeof essence>]> = {
    'a path that is no path': [requestText('GET', 'ok'), failure(400, 'Bad request')],
    'OPTIONS *': [requestText('OPTIONS', '*'), failure(400, 'Bad request')],
    'an offer to upgrade': [requestText('GET', '/ok', { Connection: 'Upgrade', Upgrade: 'websocket' }), OK],
    'an unknown expectation': [requestText('GET', '/ok', { Expect: 'wonders' }), OK],
    'a bug': [requestText('GET', '/bug'), failure(500, 'Internal error')],
    'a thrown string': [requestText('GET', '/odd'), failure(500, 'Internal error')],
    'an unknown path': [requestText('GET', '/nowhere'), failure(404, 'Not found')],
    'a bad percent escape': [requestText('GET', '/%zz'), failure(404, 'Not found')],
  }

  it.each(Object.entries(odd))('%s', async (_name, [request, expected]) => {
    await using edge = await startEdge()
    expect(essence(await exchange(edge.port, request))).toEqual(expected)
    expect(essence(await exchange(edge.port, requestText('GET', '/ok')))).toEqual(OK)
  })

  it('shows the cause of an error only in the log', async () => {
    await using edge = await startEdge()
    await exchange(edge.port, requestText('GET', '/bug'))
    await exchange(edge.port, requestText('GET', '/odd'))
    expect(edge.lines).toEqual([
      'error GET /bug was answered 500: Internal error: Error: a secret detail',
      'error a request was answered 500: Internal error: text',
    ])
  })

  it('gives each response its own id', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    connection.send(requestText('GET', '/ok') + requestText('GET', '/nowhere') + requestText('POST', '/ok'))
    const ids = [await connection.answer(), await connection.answer(), await connection.answer()].map(
      ({ headers }) => headers['x-request-id'],
    )
    expect(new Set(ids).size).toBe(3)
    expect(ids).toEqual([
      expect.stringMatching(UUID),
      expect.stringMatching(UUID),
      expect.stringMatching(UUID),
    ])
    connection.socket.destroy()
  })

  it('does not replace globalThis.Request and globalThis.Response', async () => {
    const { Request, Response } = globalThis
    await using edge = await startEdge()
    await exchange(edge.port, requestText('GET', '/ok'))
    expect([globalThis.Request === Request, globalThis.Response === Response]).toEqual([true, true])
  })
})

describe('a client that disconnects', () => {
  it('while a handler works causes no output', async () => {
    const noise = [vi.spyOn(console, 'error'), vi.spyOn(console, 'info')]
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await using edge = await startEdge({ hold: () => held })
    const connection = await connect(edge.port)
    connection.send(requestText('GET', '/held'))
    await exchange(edge.port, requestText('GET', '/ok'))
    connection.socket.resetAndDestroy()
    await exchange(edge.port, requestText('GET', '/ok'))
    release()
    expect(essence(await exchange(edge.port, requestText('GET', '/ok')))).toEqual(OK)
    expect([edge.lines, ...noise.map((spy) => spy.mock.calls)]).toEqual([[], [], []])
    vi.restoreAllMocks()
  })
})

describe('starting', () => {
  it('names an address that clients can call', async () => {
    const { log } = recordingLog()
    const fetch = () => new Response('hello')
    const urls: string[] = []
    for (const host of ['127.0.0.1', 'localhost', '0.0.0.0', '::1', '::']) {
      const listener = await listen(fetch, { host, port: 0, log })
      expect(await (await globalThis.fetch(listener.url)).text()).toBe('hello')
      urls.push(listener.url.replace(`:${listener.port}`, ':PORT'))
      await listener.close()
    }
    expect(urls).toEqual([
      'http://127.0.0.1:PORT',
      'http://localhost:PORT',
      'http://127.0.0.1:PORT',
      'http://[::1]:PORT',
      'http://[::1]:PORT',
    ])
  })

  it('reports that a port is in use, and how to choose another', async () => {
    await using edge = await startEdge()
    await expect(startEdge({ port: edge.port })).rejects.toMatchObject({
      kind: 'unavailable',
      exitCode: 1,
      message: `Port ${edge.port} is in use. Choose another with --port, or 0 for any free port.`,
    })
  })

  it('reports that an address does not belong to this machine', async () => {
    await expect(startEdge({ host: '192.0.2.1', port: 8787 })).rejects.toMatchObject({
      kind: 'unavailable',
      message: 'Cannot listen on 192.0.2.1, port 8787 (EADDRNOTAVAIL). Choose another address with --host.',
    })
  })
})

describe('closing', () => {
  it('lets a request in flight finish and closes its connection', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    const edge = await startEdge({ hold: () => held })
    const connection = await connect(edge.port)
    connection.send(requestText('GET', '/held'))
    await exchange(edge.port, requestText('GET', '/ok'))
    const closed = edge.close()
    release()
    const answer = await connection.answer()
    expect(essence(answer)).toEqual({ ...OK, body: '{"held":true}' })
    expect(answer.headers['connection']).toBe('close')
    await closed
    await connection.closed()
  })

  it('lets an upload finish', async () => {
    const edge = await startEdge()
    const connection = await connect(edge.port)
    connection.send(requestText('POST', '/body', { 'Content-Length': '2' }, 'a'))
    await exchange(edge.port, requestText('GET', '/ok'))
    const closed = edge.close()
    connection.send('b')
    const answer = await connection.answer()
    expect(essence(answer)).toEqual({ ...OK, body: '{"bytes":2,"first":97,"last":98}' })
    expect(answer.headers['connection']).toBe('close')
    await closed
  })

  it('closes idle connections at once and accepts no new ones', async () => {
    const edge = await startEdge()
    const used = await connect(edge.port)
    used.send(requestText('GET', '/ok'))
    await used.answer()
    const fresh = await connect(edge.port)
    const start = performance.now()
    await Promise.all([edge.close(), edge.close()])
    await Promise.all([used.closed(), fresh.closed()])
    expect(performance.now() - start).toBeLessThan(1_000)
    await expect(connect(edge.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('closes pending requests after the grace period', async () => {
    const edge = await startEdge({ hold: () => new Promise(() => {}), limits: { grace: 100 } })
    const connection = await connect(edge.port)
    connection.send(requestText('GET', '/held'))
    await exchange(edge.port, requestText('GET', '/ok'))
    const start = performance.now()
    await edge.close()
    expect(performance.now() - start).toBeGreaterThan(90)
    expect(await connection.closed()).toBe('')
  })
})
