import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DirectPoster } from '../../src/dispatch/direct-poster.js'
import type { Posted } from '../../src/dispatch/poster.js'
import { portOf } from '../helpers/scripted-server.js'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const { signal: never } = new AbortController()

/** Called with all that a connection has received, whenever that is more. */
type Serve = (socket: Socket, received: string, connection: number) => void

let server: Server
let connections: Socket[]
let serve: Serve
let poster: DirectPoster

beforeEach(async () => {
  connections = []
  serve = (socket) => void socket.write(OK)
  server = createServer({ allowHalfOpen: true }, (socket) => {
    const number = connections.push(socket)
    let received = ''
    socket.on('error', () => {}).on('data', (data) => serve(socket, (received += String(data)), number))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  poster = open(5000)
})

afterEach(async () => {
  await poster[Symbol.asyncDispose]()
  for (const socket of connections) socket.destroy()
  server.close()
})

const open = (limit: number): DirectPoster =>
  new DirectPoster(new URL(`http://127.0.0.1:${portOf(server)}/hook?a=b`), { limit })

const post = (body: string | Uint8Array = '{}'): Promise<Posted> =>
  poster.post([['X-A', '1']], Buffer.from(body), never)
/** When this end has nothing more to say on one of the connections. */
async function ended(connection: number): Promise<void> {
  const socket = connections[connection]
  if (socket && !socket.readableEnded) await once(socket, 'end')
}

const textOf = ({ start }: Posted): string => Buffer.from(start).toString()

describe('a poster without a library', () => {
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
      await expect(poster.post([header], Buffer.from(''), never)).rejects.toThrow(/cannot be sent/)
    // Disposing waits for every connection, so that none can still be on its way here.
    const disposed = poster[Symbol.asyncDispose]()
    expect(await Promise.race([disposed, setImmediate('waits')])).toBeUndefined()
    expect(connections.length).toBe(0)
  })

  it('has as few connections as requests at once, and uses them again', async () => {
    for (let i = 0; i < 3; i++) await post()
    expect(connections.length).toBe(1)
    await Promise.all([post(), post(), post()])
    await Promise.all([post(), post(), post()])
    expect(connections.length).toBe(3)
  })

  it.each(['HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok', `${OK}more`])(
    'uses none again after %j',
    async (answer) => {
      serve = (socket) => void socket.write(answer)
      expect([textOf(await post()), textOf(await post())]).toEqual(['ok', 'ok'])
      expect(connections.length).toBe(2)
    },
  )

  it('uses none again that has said something by itself, or has ended', async () => {
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

  it('takes what comes until the connection ends, also when that is all the server ends', async () => {
    serve = (socket) => void socket.end('HTTP/1.1 200 OK\r\n\r\nall of it')
    expect(textOf(await post())).toBe('all of it')
  })

  it('takes an answer that comes before the request is out, and then uses another connection', async () => {
    serve = (socket, _, connection) => {
      if (connection > 1) socket.write(OK)
      else socket.pause().write('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n')
    }
    expect((await post(Buffer.alloc(30_000_000))).status).toBe(413)
    expect((await post()).status).toBe(200)
    expect(connections.length).toBe(2)
  })

  it('sends once what is not answered', async () => {
    serve = (socket) => void socket.end()
    await expect(post()).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(connections.length).toBe(1)
  })

  it('waits for the answers that are to come when it is disposed of, and takes no more', async () => {
    let answer = (): void => {}
    const asked = new Promise<void>((resolve) => {
      serve = (socket) => {
        answer = () => void socket.write(OK)
        resolve()
      }
    })
    const posting = post()
    await asked
    const disposed = poster[Symbol.asyncDispose]()
    await expect(post()).rejects.toThrow('nothing more')
    answer()
    expect((await posting).status).toBe(200)
    await disposed
    expect(connections.length).toBe(1)
  })

  it('gives each request its time, and cuts off what takes longer', async () => {
    await using hurried = open(1000)
    serve = (socket, received) => {
      if (received.split('POST').length < 5) setTimeout(() => socket.write(OK), 400)
    }
    for (let i = 0; i < 3; i++) expect((await hurried.post([], Buffer.from(''), never)).status).toBe(200)
    await expect(hurried.post([], Buffer.from(''), never)).rejects.toThrow('Timed out')
    await ended(0)
    expect(connections.length).toBe(1)
  })
})
