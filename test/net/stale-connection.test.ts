import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { DeliverySender } from '../../src/net/delivery-sender.js'
import { startProxy } from '../helpers/proxy.js'
import { portOf } from '../helpers/scripted-server.js'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const LIMIT = { limit: 5000 }
const { signal: never } = new AbortController()

/** Called with a request that came whole: its `X-N`, and how many its connection has had. */
type Answer = (socket: Socket, n: string, nth: number) => void

let server: Server
let connections: Socket[]
/** The `X-N` of each request that was read whole. */
let received: string[]

async function start(answer: Answer): Promise<string> {
  connections = []
  received = []
  server = createServer((socket) => {
    connections.push(socket)
    let text = ''
    let nth = 0
    socket
      .on('error', () => {})
      .on('data', (data) => {
        text += String(data)
        for (let end = text.indexOf('{}'); end !== -1; end = text.indexOf('{}')) {
          const [, n = ''] = /X-N: (\d+)/.exec(text) ?? []
          text = text.slice(end + 2)
          received.push(n)
          answer(socket, n, ++nth)
        }
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${portOf(server)}/`
}

afterEach(() => {
  vi.unstubAllEnvs()
  for (const socket of connections) socket.destroy()
  server.close()
})

async function post(sender: DeliverySender, n: number): Promise<string> {
  return sender.post([['X-N', `${n}`]], Buffer.from('{}'), never).then(
    ({ status }) => `${status}`,
    ({ code }: NodeJS.ErrnoException) => `${code}`,
  )
}

const numbers = (count: number): string[] => Array.from({ length: count }, (_, n) => `${n}`)

describe('a target that closes idle connections', () => {
  it.each(['end', 'destroy', 'resetAndDestroy'] as const)(
    'with %s 1 to 10 ms after each answer gets 200 deliveries without a failure',
    async (close) => {
      const url = await start((socket) => {
        socket.write(OK)
        setTimeout(() => socket[close](), 1 + Math.random() * 9)
      })
      await using sender = new DeliverySender(url, LIMIT)
      const statuses: string[] = []
      for (let n = 0; n < 200; n++) {
        statuses.push(await post(sender, n))
        // As long as its connection may live, so that many are sent just when it is closed.
        await sleep(Math.random() * 10)
      }
      expect(statuses).toEqual(Array.from({ length: 200 }, () => '200'))
      expect([...new Set(received)]).toEqual(numbers(200))
      // It answers all that it reads, so that what has come twice had lost its answer.
      const times = numbers(200).map((n) => received.filter((each) => each === n).length)
      expect(Math.max(...times)).toBeLessThanOrEqual(2)
      expect(connections.length).toBeGreaterThan(2)
    },
    20_000,
  )

  it('gets the request that it has closed the connection on at once again, on a new one', async () => {
    const url = await start((socket, _, nth) => (nth === 2 ? socket.end() : socket.write(OK)))
    await using sender = new DeliverySender(url, LIMIT)
    expect(await post(sender, 0)).toBe('200')
    await sleep(5)
    expect([await post(sender, 1), received, connections.length]).toEqual(['200', ['0', '1', '1'], 2])
  })

  it('gets it again through a proxy as well', async () => {
    const url = await start((socket, _, nth) => (nth === 2 ? socket.end() : socket.write(OK)))
    await using proxy = await startProxy(() => url)
    vi.stubEnv('http_proxy', proxy.url)
    vi.stubEnv('no_proxy', '')
    await using sender = new DeliverySender('http://app.invalid/', LIMIT)
    expect(await post(sender, 0)).toBe('200')
    await sleep(5)
    expect([await post(sender, 1), received]).toEqual(['200', ['0', '1', '1']])
  })

  it('gets it once again, and no more: a new connection that breaks is a target that is down', async () => {
    const url = await start((socket, n) => (n === '1' ? socket.resetAndDestroy() : socket.write(OK)))
    await using sender = new DeliverySender(url, LIMIT)
    expect(await post(sender, 0)).toBe('200')
    await sleep(5)
    expect([await post(sender, 1), received]).toEqual(['ECONNRESET', ['0', '1', '1']])
    expect([await post(sender, 2), received]).toEqual(['200', ['0', '1', '1', '2']])
  })

  it('does not get a request again that it has begun to answer', async () => {
    const url = await start((socket, _, nth) => (nth === 2 ? socket.end('HTTP/1.1 2') : socket.write(OK)))
    await using sender = new DeliverySender(url, LIMIT)
    expect(await post(sender, 0)).toBe('200')
    await sleep(5)
    expect([await post(sender, 1), received]).toEqual(['UND_ERR_SOCKET', ['0', '1']])
  })

  it('does not get again what was sent on a new connection', async () => {
    const url = await start((socket) => socket.resetAndDestroy())
    await using sender = new DeliverySender(url, LIMIT)
    expect([await post(sender, 0), received]).toEqual(['ECONNRESET', ['0']])
  })
})
