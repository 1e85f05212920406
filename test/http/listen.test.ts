import { describe, expect, it, vi } from 'vitest'
import type { Log } from '../../src/base/log.js'
import { BodyBudget, bodyBudgetFor } from '../../src/http/body-budget.js'
import { listen } from '../../src/http/listen.js'
import { maxConnections } from '../../src/http/max-connections.js'
import { type RawAnswer, connect, exchange, requestText } from '../kit/http.js'
import { LIMIT, recordingLog, startEdge } from './edge.js'

// What a running relay cannot be made to show: bugs of handlers, limits that are no option, bytes that are counted.

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const OK = { status: 200, type: 'application/json', body: '{"ok":true}', id: true }

/** The parts of an answer that tests compare, and whether its request id is well-formed. */
function essence({ status, headers, body }: RawAnswer) {
  return { status, type: headers['content-type'], body, id: UUID.test(headers['x-request-id'] ?? '') }
}

function failure(status: number, error: string) {
  return { status, type: 'application/json', body: JSON.stringify({ error }), id: true }
}

describe('an error of a handler', () => {
  it.each([
    ['a bug', requestText('GET', '/bug')],
    ['a thrown string', requestText('GET', '/odd')],
  ])('%s is answered 500', async (_name, request) => {
    await using edge = await startEdge()
    expect(essence(await exchange(edge.port, request))).toEqual(failure(500, 'Internal error'))
    expect(essence(await exchange(edge.port, requestText('GET', '/ok')))).toEqual(OK)
  })

  it('shows its cause only in the log', async () => {
    await using edge = await startEdge()
    await exchange(edge.port, requestText('GET', '/bug'))
    await exchange(edge.port, requestText('GET', '/odd'))
    expect(edge.lines).toEqual([
      'error GET /bug was answered 500: Internal error: Error: a secret detail',
      'error a request was answered 500: Internal error: text',
    ])
  })

  it('that cannot be answered closes its connection, is logged, and ends nothing else', async () => {
    const { log, lines } = recordingLog()
    const error = vi
      .fn<Log['error']>((...line) => log.error(...line))
      .mockImplementationOnce(() => {
        throw new Error('a secret detail')
      })
    const fetch = ({ url }: Request) => {
      if (url.endsWith('/defect')) throw new Error('whose line cannot be logged')
      return Response.json({ ok: true })
    }
    const listener = await listen(fetch, { host: '127.0.0.1', port: 0, log: { ...log, error } })
    const connection = await connect(listener.port)
    connection.send(requestText('GET', '/defect'))
    expect(await connection.closed()).toBe('')
    expect(await exchange(listener.port, requestText('GET', '/ok'))).toMatchObject({ body: OK.body })
    expect(lines).toEqual([
      'error a request could not be answered: its connection was closed: Error: a secret detail',
    ])
    await listener.close()
  })
})

describe('the limit for connections', () => {
  it('closes more connections at once, and logs that once a second', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] })
    await using edge = await startEdge({ maxConnections: 2 })
    const [first, second] = [await connect(edge.port), await connect(edge.port)]
    for (let i = 0; i < 5; i++) expect(await (await connect(edge.port)).closed()).toBe('')
    first.send(requestText('GET', '/ok'))
    expect(essence(await first.answer())).toEqual(OK)
    vi.advanceTimersByTime(1_000)
    vi.useRealTimers()
    const line =
      'warn a new connection was closed at once: 2 are open, the limit (a higher ulimit -n may raise it)'
    expect(edge.lines).toEqual([line, `${line} … and 4 more like it in the last second`])
    first.socket.destroy()
    second.socket.destroy()
  })

  it.each([
    ['Max open files            128                  128                  files', 32],
    ['Max open files            1024                 524288               files', 256],
    ['Max open files            1048576              1048576              files', 4_096],
    ['Max open files            2                    2                    files', 1],
    ['Max open files            unlimited            unlimited            files', 4_096],
    ['', 4_096],
  ])('follows from the file descriptors: %j', (limits, expected) => {
    expect(maxConnections(`Max cpu time   unlimited   unlimited   seconds\n${limits}\n`)).toBe(expected)
  })
})

describe('closing', () => {
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

describe('a body', () => {
  it('has its limit in-process too', async () => {
    await using edge = await startEdge()
    const post = async (bytes: number) => {
      const response = await edge.app.request('/body', { method: 'POST', body: Buffer.alloc(bytes, 'a') })
      return { status: response.status, body: await response.text() }
    }
    const accepted = { status: 200, body: JSON.stringify({ bytes: LIMIT, first: 0x61, last: 0x61 }) }
    expect(await post(LIMIT)).toEqual(accepted)
    expect(await post(LIMIT + 1)).toEqual({ status: 413, body: '{"error":"Request too large"}' })
  })

  it('that is refused is read for 5 s: then the answer comes, and the connection is closed', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    const start = performance.now()
    connection.send(requestText('POST', '/body', { 'Content-Length': String(2 * LIMIT) }))
    const trickle = setInterval(() => connection.send('a'), 100)
    const { status, headers, body } = await connection.answer()
    clearInterval(trickle)
    expect([status, headers['connection'], body]).toEqual([413, 'close', '{"error":"Request too large"}'])
    const seconds = (performance.now() - start) / 1000
    expect(seconds).toBeGreaterThan(4.9)
    expect(seconds).toBeLessThan(7)
    await connection.closed()
  })
})

describe('the budget of all bodies', () => {
  it('is 64 MiB, or four of the largest bodies', () => {
    expect([bodyBudgetFor(1), bodyBudgetFor(1_048_576), bodyBudgetFor(26_214_400)]).toEqual([
      67_108_864, 67_108_864, 104_857_600,
    ])
  })

  it('gets the bytes of a body back once', () => {
    const budget = new BodyBudget(100_000)
    const [one, other] = [budget.open(() => {}), budget.open(() => {})]
    one.add(1_000)
    other.add(2_000)
    one.release()
    one.release()
    expect(budget.used).toBe(2_512)
  })
})
