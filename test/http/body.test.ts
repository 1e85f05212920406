import { once } from 'node:events'
import { array, assert, asyncProperty, uint8Array } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { readBody } from '../../src/http/body.js'
import { listen } from '../../src/http/listen.js'
import { createRouter } from '../../src/http/router.js'
import { type Connection, connect, exchange, requestText } from '../helpers/http.js'
import { LIMIT, startEdge } from './edge.js'

const chunkedHead = requestText('POST', '/body', { 'Transfer-Encoding': 'chunked' })
const tooLarge = { status: 413, type: 'application/json', body: '{"error":"Request too large"}' }

function accepted(bytes: number, byte: number | null = 0x61) {
  const body = JSON.stringify({ bytes, first: byte, last: byte })
  return { status: 200, type: 'application/json', body }
}

async function answerOf(connection: Connection) {
  const { status, headers, body } = await connection.answer()
  return { status, type: headers['content-type'], body }
}

function chunk(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}

/** `bytes` times "a", in chunks of up to 64 KiB. */
function chunked(bytes: number): Uint8Array {
  const sizes = Array.from({ length: Math.ceil(bytes / 65_536) }, (_, i) =>
    Math.min(65_536, bytes - i * 65_536),
  )
  return Buffer.concat([...sizes.map((size) => chunk(Buffer.alloc(size, 'a'))), Buffer.from('0\r\n\r\n')])
}

describe('the limit', () => {
  it.each([
    [LIMIT, accepted(LIMIT)],
    [LIMIT + 1, tooLarge],
    [4 * LIMIT, tooLarge],
  ])('%i bytes, with Content-Length and chunked, on one kept connection', async (bytes, expected) => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    connection.send(requestText('POST', '/body', { 'Content-Length': String(bytes) }))
    connection.send(Buffer.alloc(bytes, 'a'))
    expect(await answerOf(connection)).toEqual(expected)
    connection.send(chunkedHead)
    connection.send(chunked(bytes))
    expect(await answerOf(connection)).toEqual(expected)
    connection.send(requestText('POST', '/body', {}, 'a'))
    expect(await answerOf(connection)).toEqual(accepted(1))
    connection.socket.destroy()
    expect(edge.lines).toEqual([])
  })

  it('a missing body is empty', async () => {
    await using edge = await startEdge()
    const { status, body } = await exchange(edge.port, requestText('POST', '/body'))
    expect({ status, body }).toEqual({ status: 200, body: '{"bytes":0,"first":null,"last":null}' })
  })

  it('holds in-process too', async () => {
    await using edge = await startEdge()
    const post = async (bytes: number) => {
      const response = await edge.app.request('/body', { method: 'POST', body: Buffer.alloc(bytes, 'a') })
      return {
        status: response.status,
        type: response.headers.get('content-type'),
        body: await response.text(),
      }
    }
    expect(await post(LIMIT)).toEqual(accepted(LIMIT))
    expect(await post(LIMIT + 1)).toEqual(tooLarge)
  })
})

describe('the bytes', () => {
  it('are the bytes sent, in any chunks', async () => {
    const app = createRouter({ hostAllowed: () => true, log: silentLog }).post('/body', async (c) =>
      c.text(Buffer.from(await readBody(c, LIMIT)).toString('base64')),
    )
    const listener = await listen(app.fetch, { host: '127.0.0.1', port: 0, log: silentLog })
    const pieces = array(uint8Array({ minLength: 1, maxLength: 20_000 }), { maxLength: 5 })
    await assert(
      asyncProperty(pieces, async (parts) => {
        const connection = await connect(listener.port)
        connection.send(chunkedHead)
        for (const part of parts) connection.send(chunk(part))
        connection.send('0\r\n\r\n')
        const { body } = await connection.answer()
        connection.socket.destroy()
        expect(body).toBe(Buffer.concat(parts).toString('base64'))
      }),
      { numRuns: 30 },
    )
    await listener.close()
  })
})

describe('a slow or impatient client', () => {
  it('may send byte by byte', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    for (const byte of requestText('POST', '/body', {}, 'aaa')) {
      connection.send(byte)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await answerOf(connection)).toEqual(accepted(3))
    connection.socket.destroy()
  })

  it('that disconnects mid-body leaves nothing behind', async () => {
    await using edge = await startEdge()
    for (const bytes of [10, 2 * LIMIT]) {
      for (const head of [
        requestText('POST', '/body', { 'Content-Length': String(3 * LIMIT) }),
        chunkedHead,
      ]) {
        const connection = await connect(edge.port)
        connection.send(head)
        connection.send(head === chunkedHead ? chunked(bytes).subarray(0, -5) : Buffer.alloc(bytes))
        await exchange(edge.port, requestText('GET', '/ok'))
        connection.socket.resetAndDestroy()
        await once(connection.socket, 'close')
      }
    }
    expect((await exchange(edge.port, requestText('GET', '/ok'))).status).toBe(200)
    expect(edge.lines).toEqual([])
  })
})

describe('Expect: 100-continue', () => {
  const expecting = (bytes: number, path = '/body') =>
    requestText('POST', path, { 'Content-Length': String(bytes), Expect: '100-continue' })

  it('gets 100 Continue when a handler reads the body', async () => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    for (let round = 0; round < 2; round++) {
      connection.send(expecting(LIMIT))
      expect((await connection.answer()).status).toBe(100)
      connection.send(Buffer.alloc(LIMIT, 'a'))
      expect(await answerOf(connection)).toEqual(accepted(LIMIT))
    }
    connection.socket.destroy()
  })

  it.each([
    ['too large', expecting(LIMIT + 1), 413, 'Request too large'],
    ['for an unknown path', expecting(10, '/nowhere'), 404, 'Not found'],
  ])('is refused before the body is sent: %s', async (_name, request, status, error) => {
    await using edge = await startEdge()
    const connection = await connect(edge.port)
    connection.send(request)
    const answer = await connection.answer()
    expect([answer.status, answer.body, answer.headers['connection']]).toEqual([
      status,
      JSON.stringify({ error }),
      'close',
    ])
    expect(await connection.closed()).toBe('')
  })
})
