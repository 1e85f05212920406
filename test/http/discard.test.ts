import { describe, expect, it } from 'vitest'
import { connect, exchange, requestText } from '../helpers/http.js'
import { startEdge } from './edge.js'

const MIB = 1_048_576

describe('a refused request’s body is read before the answer', () => {
  it.each([
    ['an unknown path', '/nowhere', {}, 404],
    ['a wrong method', '/ok', {}, 405],
    ['a foreign Host', '/body', { Host: 'evil.example' }, 403],
    ['a body over the limit', '/body', {}, 413],
  ])('%s', async (_name, path, headers, status) => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    for (let round = 0; round < 3; round++) {
      connection.send(requestText('POST', path, { 'Content-Length': String(8 * MIB), ...headers }))
      connection.send(Buffer.alloc(8 * MIB))
      expect((await connection.answer()).status).toBe(status)
    }
    connection.send(requestText('GET', '/ok'))
    expect((await connection.answer()).body).toBe('{"ok":true}')
    connection.socket.destroy()
  })
})

describe('reading a refused body ends', () => {
  it('after 32 MiB: the answer comes while the client still writes, and the connection is closed', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    connection.send(requestText('POST', '/body', { 'Content-Length': String(100 * MIB) }))
    connection.send(Buffer.alloc(33 * MIB))
    const { status, headers, body } = await connection.answer()
    expect([status, headers['connection'], body]).toEqual([413, 'close', '{"error":"Request too large"}'])
    await connection.closed()
    expect((await exchange(edge.port, requestText('GET', '/ok'))).status).toBe(200)
  })

  it('after 5 s: the same', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    const start = performance.now()
    connection.send(requestText('POST', '/body', { 'Content-Length': String(2 * MIB) }))
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
