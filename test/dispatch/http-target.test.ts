import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Disposal } from '../../src/base/disposal.js'
import { openHttpTarget } from '../../src/dispatch/http-target.js'
import type { OpenTarget, DeliveryResult } from '../../src/dispatch/target.js'
import type { Entry } from '../../src/journal/types.js'
import { verify } from '../helpers/sign.js'
import { githubDelivery, SECRETS } from '../helpers/delivery.js'
import { startProxy } from '../helpers/proxy.js'
import { portOf } from '../helpers/scripted-server.js'
import { startTarget, valuesOf } from '../helpers/target.js'

const NOW = Date.parse('2026-11-20T10:00:00Z')
const { signal: never } = new AbortController()

function entryOf({ headers, body }: Pick<Entry, 'headers' | 'body'> = githubDelivery()): Entry {
  return {
    n: 1,
    receivedAt: NOW,
    provider: 'github',
    event: 'push',
    deliveryId: 'id',
    hookId: '42',
    verifiedBy: 'current',
    action: null,
    repo: null,
    number: null,
    duplicates: 0,
    headers,
    body,
  }
}

const open = (url: string, limit = 5000): OpenTarget => openHttpTarget(url, { clock: () => NOW, limit })

async function deliver(url: string, limit?: number, signal = never): Promise<DeliveryResult> {
  await using target = open(url, limit)
  return await target.deliver(entryOf(), 1, { signal })
}

/** What matters of a result, the answer as text. */
function shown({ outcome, status, answer, error, retryAfter }: DeliveryResult) {
  return { outcome, status, answer: Buffer.from(answer).toString(), error, retryAfter }
}

describe('an HTTP target', () => {
  it('receives the same bytes and headers, and its own signature check passes', async () => {
    await using server = await startTarget()
    const body = Buffer.concat([Buffer.from('{"zen":"caf\u00e9"}\r\n'), randomBytes(100_000)])
    const request = githubDelivery({
      body,
      set: { 'X-Twice': ['one', 'two'], 'X-Latin': 'caf\u00e9', 'User-Agent': 'GitHub-Hookshot/1' },
    })
    const headers = [
      ...request.headers,
      ['Cookie', 'c'],
      ['Expect', '100-continue'],
      ['Connection', 'x-hop'],
      ['X-Hop', '1'],
    ] as const
    await using target = open(`${server.url}/hook?a=1`)
    const result = await target.deliver(entryOf({ headers, body: request.body }), 2, { signal: never })
    expect(shown(result)).toEqual({
      outcome: 'succeeded',
      status: 200,
      answer: '',
      error: null,
      retryAfter: undefined,
    })
    const [handed] = server.received
    expect(handed?.path).toBe('/hook?a=1')
    expect(handed?.headers).toEqual([
      ['host', new URL(server.url).host],
      ['connection', 'keep-alive'],
      ...request.headers,
      ['X-Relay-Attempt', '2'],
      ['content-length', String(body.byteLength)],
    ])
    expect(handed?.body.equals(body)).toBe(true)
    expect(handed && verify(valuesOf(handed, 'x-hub-signature-256')[0], handed.body, SECRETS)).toBe('current')
  })

  it('receives an empty body as one', async () => {
    await using server = await startTarget()
    await using target = open(server.url)
    await target.deliver(entryOf({ headers: [], body: new Uint8Array() }), 1, { signal: never })
    expect(server.received[0]?.headers.slice(2)).toEqual([
      ['X-Relay-Attempt', '1'],
      ['content-length', '0'],
    ])
  })

  it("receives its address's own user name and password", async () => {
    await using server = await startTarget()
    await deliver(server.url.replace('//', '//me:pa%20ss%C3%A9@'))
    const [handed] = server.received
    expect(handed && valuesOf(handed, 'authorization')).toEqual([
      `Basic ${Buffer.from('me:pa ss\u00e9').toString('base64')}`,
    ])
  })

  it('keeps connections for the next deliveries', async () => {
    await using server = await startTarget()
    await using target = open(server.url)
    for (let attempt = 1; attempt <= 5; attempt++) await target.deliver(entryOf(), attempt, { signal: never })
    expect(server.received.length).toBe(5)
    // The first one may not yet be known to be free when the second is needed.
    expect(server.connections).toBeLessThanOrEqual(2)
  })

  it.each([
    [204, 'succeeded'],
    [302, 'refused'],
    [400, 'refused'],
    [408, 'retry'],
    [410, 'refused'],
    [425, 'retry'],
    [500, 'retry'],
    [503, 'retry'],
  ])('that answers %i', async (status, outcome) => {
    await using server = await startTarget()
    await using elsewhere = await startTarget()
    const location = { location: elsewhere.url }
    server.answers(status === 204 ? 204 : { status, headers: location, body: 'why' })
    expect(shown(await deliver(server.url))).toEqual({
      outcome,
      status,
      answer: status === 204 ? '' : 'why',
      error: null,
      retryAfter: undefined,
    })
    expect([server.received.length, elsewhere.received.length]).toEqual([1, 0])
  })

  it.each([
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after': 'Fri, 20 Nov 2026 10:00:09 GMT', date: 'Fri, 20 Nov 2026 10:00:04 GMT' }, 5000],
    [{ 'retry-after': 'Fri, 20 Nov 2026 10:00:09 GMT', date: 'now' }, 9000],
    [{ 'retry-after': 'later' }, undefined],
  ])('that asks to wait with %j', async (headers, retryAfter) => {
    await using server = await startTarget(() => ({ status: 429, headers }))
    expect(await deliver(server.url)).toMatchObject({ outcome: 'retry', status: 429, retryAfter })
  })

  it('that answers a lot: the start is stored, and a reasonable rest is read', async () => {
    const long = 'abcdefgh'.repeat(2048)
    await using server = await startTarget(() => ({ status: 200, body: long }))
    await using target = open(server.url)
    for (const attempt of [1, 2, 3, 4]) {
      const { answer } = await target.deliver(entryOf(), attempt, { signal: never })
      expect(Buffer.from(answer).toString()).toBe(long.slice(0, 4096))
    }
    expect(server.connections).toBeLessThanOrEqual(2)
  })

  it('that never stops answering is cut off', async () => {
    let socket: Socket | undefined
    await using stack = new Disposal()
    const server = createHttpServer((request, response) => {
      socket = request.socket
      response.writeHead(200)
      const more = (): void => {
        while (response.write(Buffer.alloc(65_536, 'x')));
      }
      response.on('drain', more)
      more()
    }).listen(0, '127.0.0.1')
    stack.defer(async () => void server.close())
    await once(server, 'listening')
    const result = await deliver(`http://127.0.0.1:${portOf(server)}`)
    expect({ ...result, answer: result.answer.byteLength }).toMatchObject({
      outcome: 'succeeded',
      answer: 4096,
    })
    await new Promise((resolve) => (socket?.closed ? resolve(true) : socket?.once('close', resolve)))
  })

  it('that hangs is given up at the limit', async () => {
    await using server = await startTarget(() => 'hang')
    expect(shown(await deliver(server.url, 100))).toEqual({
      outcome: 'timed out',
      status: null,
      answer: '',
      error: 'no answer within 0.1 s',
      retryAfter: undefined,
    })
  })

  it('that hangs after its status, which is what matters', async () => {
    await using server = await startTarget(() => ({ status: 202, body: 'begun', stalls: true }))
    expect(shown(await deliver(server.url, 200))).toMatchObject({
      outcome: 'succeeded',
      status: 202,
      answer: 'begun',
    })
  })

  it('that does not take the body is given up at the limit', async () => {
    await using stack = new Disposal()
    const sockets: Socket[] = []
    const server = createServer({ pauseOnConnect: true }, (socket) => sockets.push(socket)).listen(
      0,
      '127.0.0.1',
    )
    stack.defer(async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    await once(server, 'listening')
    await using target = open(`http://127.0.0.1:${portOf(server)}`, 200)
    const result = await target.deliver(entryOf({ headers: [], body: Buffer.alloc(20_000_000) }), 1, {
      signal: never,
    })
    expect(result.outcome).toBe('timed out')
  })

  it('that resets the connection is sent the request once', async () => {
    await using server = await startTarget()
    await using target = open(server.url)
    server.answers('reset')
    expect(shown(await target.deliver(entryOf(), 1, { signal: never }))).toEqual({
      outcome: 'unreachable',
      status: null,
      answer: '',
      error: 'connection closed before an answer',
      retryAfter: undefined,
    })
    expect(server.received.length).toBe(1)
    expect((await target.deliver(entryOf(), 2, { signal: never })).outcome).toBe('succeeded')
  })

  it('that is not there', async () => {
    await using server = await startTarget()
    await server.down()
    for (const host of ['127.0.0.1', 'localhost']) {
      expect(shown(await deliver(server.url.replace('127.0.0.1', host)))).toMatchObject({
        outcome: 'unreachable',
        error: 'connection refused',
      })
    }
  })

  it('is left at once when relay stops', async () => {
    await using server = await startTarget(() => 'hang')
    const stop = new AbortController()
    const delivering = deliver(server.url, 60_000, stop.signal)
    await server.has(1)
    stop.abort()
    expect(shown(await delivering)).toMatchObject({
      outcome: 'killed',
      status: null,
      error: 'relay was stopped',
    })
    expect((await deliver(server.url, 60_000, stop.signal)).outcome).toBe('killed')
    expect(server.received.length).toBe(1)
  })
})

describe('an HTTP target elsewhere', () => {
  afterEach(() => vi.unstubAllEnvs())

  it('is reached through the proxy that the environment names, this machine is not', async () => {
    await using server = await startTarget()
    await using proxy = await startProxy(() => server.url)
    vi.stubEnv('http_proxy', proxy.url)
    vi.stubEnv('no_proxy', '')
    const request = githubDelivery({ set: { 'X-Twice': ['one', 'two'] } })
    for (const url of ['http://app.invalid/hook', server.url]) {
      await using target = open(url)
      expect((await target.deliver(entryOf(request), 1, { signal: never })).outcome).toBe('succeeded')
    }
    expect(proxy.asked).toEqual(['app.invalid:80'])
    expect(server.received.map(({ path }) => path)).toEqual(['/hook', '/'])
    for (const handed of server.received) {
      expect(handed.headers.filter(([name]) => /^[A-Z]/.test(name))).toEqual([
        ...request.headers,
        ['X-Relay-Attempt', '1'],
      ])
    }
  })
})
