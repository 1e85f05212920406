import { describe, expect, it, vi } from 'vitest'
import { githubDelivery } from '../kit/delivery.js'
import { holding } from '../kit/holding.js'
import { connect, exchange, halfClosed, type RawAnswer, requestText } from '../kit/http.js'
import { linesOf } from '../kit/journal.js'
import { place, type Serving } from '../kit/place.js'

const HEALTH = requestText('GET', '/health')
const OK = { status: 200, type: 'application/json', body: '{"status":"ok"}' }
const CONNECT = 'CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** The parts of an answer that tests compare. */
function essence({ status, headers, body }: RawAnswer) {
  return { status, type: headers['content-type'], body }
}

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
    expect([held.relay.err.match(/.*(?:warning|error):.*/g), ...noise.map((spy) => spy.mock.calls)]).toEqual([
      null,
      [],
      [],
    ])
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

  it('reports that a port is in use, and how to choose another', async () => {
    await using others = await place({ host: 'none' })
    const other = await others.serve()
    await using own = await place({ host: 'none' })
    expect(await own.run('serve', '--port', String(other.port))).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        `error: Port ${other.port} is in use. Choose another with --port, or 0 for any free port.\n`,
      ),
    })
  })

  it('reports that an address does not belong to this machine', async () => {
    await using own = await place({ host: 'none' })
    const { code, err } = await own.run('serve', '--host', '192.0.2.1', '--port', '8787')
    expect(code).toBe(1)
    expect(err).toContain(
      'error: Cannot listen on 192.0.2.1, port 8787 (EADDRNOTAVAIL). Choose another address with --host.\n',
    )
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
    const length = { 'Content-Length': String(body.byteLength) }
    connection.send(
      requestText(
        'POST',
        '/webhook',
        { ...Object.fromEntries(headers), ...length },
        body.toString().slice(0, -1),
      ),
    )
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
async function refuses(relay: Serving): Promise<void> {
  const isRefused = async (): Promise<boolean> => {
    try {
      using _ = await connect(relay.port)
      return false
    } catch {
      return true
    }
  }
  await expect.poll(isRefused).toBe(true)
}
