import { describe, expect, it, vi } from 'vitest'
import type { Log } from '../../src/base/log.js'
import { listen } from '../../src/http/listen.js'
import { maxConnections } from '../../src/http/max-connections.js'
import { connect, exchange, halfClosed, requestText } from '../helpers/http.js'
import { LIMIT, recordingLog, startEdge } from './edge.js'

const OK = { status: 200, body: '{"ok":true}' }
const CONNECT = 'CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n'

describe('CONNECT', () => {
  it('is refused and closed at once, whatever bytes follow', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    connection.send(CONNECT)
    connection.send(Buffer.alloc(4 * LIMIT))
    const { status, body } = await connection.answer()
    connection.socket.end()
    expect({ status, body, more: await connection.closed() }).toEqual({
      status: 400,
      body: '{"error":"Bad request"}',
      more: '',
    })
  })

  it('after a pending request is not answered in its place', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await using edge = await startEdge({ hold: () => held })
    const connection = await connect(edge.port)
    connection.send(requestText('GET', '/held') + CONNECT)
    await exchange(edge.port, requestText('GET', '/ok'))
    release()
    expect(await connection.answer()).toMatchObject({ status: 200, body: '{"held":true}' })
    expect(await connection.closed()).toBe('')
  })
})

describe('an offer to upgrade', () => {
  it('is ignored, also with a body', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    const offer = { Connection: 'Upgrade', Upgrade: 'websocket' }
    connection.send(requestText('POST', '/body', offer, 'abc'))
    expect(await connection.answer()).toMatchObject({ status: 200, body: '{"bytes":3,"first":97,"last":99}' })
    connection.send(requestText('GET', '/ok'))
    expect(await connection.answer()).toMatchObject(OK)
    connection.socket.destroy()
  })
})

describe('an error that cannot be answered', () => {
  it('closes its connection, is logged, and ends nothing else', async () => {
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
    expect(await exchange(listener.port, requestText('GET', '/ok'))).toMatchObject(OK)
    expect(lines).toEqual([
      'error a request could not be answered: its connection was closed: Error: a secret detail',
    ])
    await listener.close()
  })
})

describe('a client that ends its side after the request', () => {
  it.each([
    ['GET /held, answered later', requestText('GET', '/held'), '{"held":true}'],
    ['a body', requestText('POST', '/body', {}, 'abc'), '{"bytes":3,"first":97,"last":99}'],
    ['a body that breaks off', requestText('POST', '/body', { 'Content-Length': '9' }, 'abc'), 'Bad request'],
  ])('reads its answer: %s', async (_name, request, body) => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await using edge = await startEdge({ hold: () => held })
    const answer = halfClosed(edge.port, request)
    // The end of the client's side has arrived by then.
    for (let i = 0; i < 3; i++) await exchange(edge.port, requestText('GET', '/ok'))
    release()
    expect(await answer).toContain(body)
  })

  it('reads the answers to all its requests', async () => {
    await using edge = await startEdge()
    const answers = await halfClosed(edge.port, requestText('GET', '/ok').repeat(3))
    expect(answers.match(/\{"ok":true\}/g)).toHaveLength(3)
  })
})

describe('the limit for connections', () => {
  it('closes more connections at once, and logs that once a second', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] })
    await using edge = await startEdge({ maxConnections: 2 })
    const [first, second] = [await connect(edge.port), await connect(edge.port)]
    for (let i = 0; i < 5; i++) expect(await (await connect(edge.port)).closed()).toBe('')
    first.send(requestText('GET', '/ok'))
    expect(await first.answer()).toMatchObject(OK)
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

describe('a client that sends requests and reads no responses', () => {
  it('is cut off when 17 are unanswered', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    let begun = 0
    await using edge = await startEdge({ hold: () => (begun++, held) })
    const connection = await connect(edge.port)
    connection.send(requestText('GET', '/held').repeat(1000))
    expect(await connection.closed()).toBe('')
    expect(begun).toBeLessThanOrEqual(16)
    release()
    expect(await exchange(edge.port, requestText('GET', '/ok'))).toMatchObject(OK)
  })

  it('gets the answers to 16 in a row', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    connection.send(requestText('GET', '/ok').repeat(16))
    for (let n = 0; n < 16; n++) expect(await connection.answer()).toMatchObject(OK)
    connection.socket.destroy()
  })

  it('is cut off when no byte has passed for the idle limit', async () => {
    await using edge = await startEdge({ hold: () => new Promise(() => {}), limits: { idle: 200, grace: 0 } })
    const connection = await connect(edge.port)
    connection.send(requestText('GET', '/held'))
    expect(await connection.closed()).toBe('')
  })
})
