import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { DeliveryResponse } from '../../src/net/exchange.js'
import { DeliverySender } from '../../src/net/delivery-sender.js'
import { portOf } from '../helpers/scripted-server.js'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const { signal: never } = new AbortController()

/** Called with all that a connection has received, whenever that is more. */
type Serve = (socket: Socket, received: string, connection: number) => void

let server: Server
let connections: Socket[]
let serve: Serve
let sender: DeliverySender

beforeEach(async () => {
  connections = []
  serve = (socket) => void socket.write(OK)
  server = createServer({ allowHalfOpen: true }, (socket) => {
    const number = connections.push(socket)
    let received = ''
    socket.on('error', () => {}).on('data', (data) => serve(socket, (received += String(data)), number))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  sender = open(5000)
})

afterEach(async () => {
  vi.unstubAllEnvs()
  await sender[Symbol.asyncDispose]()
  for (const socket of connections) socket.destroy()
  server.close()
})

const open = (limit: number): DeliverySender =>
  new DeliverySender(`http://127.0.0.1:${portOf(server)}/hook?a=b`, { limit })

const post = (body: string | Uint8Array = '{}'): Promise<DeliveryResponse> =>
  sender.post([['X-A', '1']], Buffer.from(body), never)

/** When this end has nothing more to say on one of the connections. */
async function ended(connection: number): Promise<void> {
  const socket = connections[connection]
  if (socket && !socket.readableEnded) await once(socket, 'end')
}

const textOf = ({ start }: DeliveryResponse): string => Buffer.from(start).toString()

describe('a sender', () => {
  it('writes the request to the byte', async () => {
    let all = ''
    serve = (socket, received) => {
      all = received
      if (received.endsWith('{}')) socket.write(OK)
    }
    await post()
    expect(all).toBe(
      [
        'POST /hook?a=b HTTP/1.1',
        `host: 127.0.0.1:${portOf(server)}`,
        'connection: keep-alive',
        'X-A: 1',
        'content-length: 2',
        '',
        '{}',
      ].join('\r\n'),
    )
  })

  it('sends nothing that would end a line, and opens no connection for it', async () => {
    for (const header of [
      ['X-A', '1\r\nX-B: 2'],
      ['X-A\r\nX-B', '2'],
      ['X-A', '\u20ac'],
    ] as const)
      await expect(sender.post([header], Buffer.from(''), never)).rejects.toThrow(/^invalid .*header/)
    await setImmediate()
    expect(connections.length).toBe(0)
  })

  it('uses connections again, at most one more than requests at once', async () => {
    for (let i = 0; i < 5; i++) await post()
    // The first one may not yet be known to be free when the second is needed.
    expect(connections.length).toBeLessThanOrEqual(2)
    for (let i = 0; i < 5; i++) await Promise.all([post(), post(), post()])
    expect(connections.length).toBeLessThanOrEqual(6)
  })

  it.each(['HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok', `${OK}more`])(
    'uses none again after %j',
    async (answer) => {
      serve = (socket) => void socket.write(answer)
      expect([textOf(await post()), textOf(await post())]).toEqual(['ok', 'ok'])
      expect(connections.length).toBe(2)
    },
  )

  it('does not reuse a connection that sent data by itself or has ended', async () => {
    await post()
    connections[0]?.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n')
    await ended(0)
    expect((await post()).status).toBe(200)
    connections[1]?.end()
    await ended(1)
    expect((await post()).status).toBe(200)
    expect(connections.length).toBe(3)
  })

  it.each([0, 1200])(
    'lets a connection go that is not needed for a second, after %d ms of use',
    async (delay) => {
      serve = (socket) => void setTimeout(() => socket.write(OK), delay)
      const begun = performance.now()
      await post()
      await ended(0)
      expect(performance.now() - begun).toBeGreaterThan(delay + 900)
    },
  )

  it('reads until the connection ends, even if the server only ends its side', async () => {
    serve = (socket) => void socket.end('HTTP/1.1 200 OK\r\n\r\nall of it')
    expect(textOf(await post())).toBe('all of it')
  })

  it('accepts a response before the request is complete, and then uses another connection', async () => {
    serve = (socket, _, connection) => {
      if (connection > 1) socket.write(OK)
      else socket.pause().write('HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    }
    expect((await post(Buffer.alloc(30_000_000))).status).toBe(413)
    expect((await post()).status).toBe(200)
    expect(connections.length).toBe(2)
  })

  it('sends an unanswered request only once', async () => {
    serve = (socket) => void socket.end()
    await expect(post()).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
    expect(connections.length).toBe(1)
  })

  it('waits for pending responses when disposed of, and accepts no further requests', async () => {
    let answer = (): void => {}
    const asked = new Promise<void>((resolve) => {
      serve = (socket) => {
        answer = () => void socket.write(OK)
        resolve()
      }
    })
    const posting = post()
    await asked
    const disposed = sender[Symbol.asyncDispose]()
    await expect(post()).rejects.toThrow('closed')
    answer()
    expect((await posting).status).toBe(200)
    await disposed
    await ended(0)
    expect(connections.length).toBe(1)
  })

  it('gives each request its own time limit', async () => {
    await using hurried = open(1000)
    serve = (socket, received) => {
      if (received.split('POST').length < 5) setTimeout(() => socket.write(OK), 400)
    }
    for (let i = 0; i < 3; i++) expect((await hurried.post([], Buffer.from(''), never)).status).toBe(200)
    serve = () => {}
    await expect(hurried.post([], Buffer.from(''), never)).rejects.toThrow('Timed out')
    await Promise.all(connections.map((_, i) => ended(i)))
  })

  it('fails for invalid proxy settings, and can still be disposed of', async () => {
    vi.stubEnv('http_proxy', 'no address')
    await using elsewhere = new DeliverySender('http://app.invalid/', { limit: 200 })
    await expect(elsewhere.post([], Buffer.from(''), never)).rejects.toThrow('Invalid URL')
  })

  it('gives up at once a request whose connection is still being made', async () => {
    vi.stubEnv('http_proxy', `http://127.0.0.1:${portOf(server)}`)
    vi.stubEnv('no_proxy', '')
    const stop = new AbortController()
    let asked = ''
    serve = (_, received) => {
      asked = received
      stop.abort(new Error('stopped'))
    }
    await using elsewhere = new DeliverySender('http://app.invalid/', { limit: 60_000 })
    await expect(elsewhere.post([], Buffer.from(''), stop.signal)).rejects.toThrow('stopped')
    expect(asked).toMatch(/^CONNECT app\.invalid:80 /)
  })
})
