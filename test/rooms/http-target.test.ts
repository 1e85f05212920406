import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { openHttpTarget } from '../../src/dispatch/http-target.js'
import type { DeliveryResult, OpenTarget } from '../../src/dispatch/target.js'
import type { Entry } from '../../src/journal/types.js'
import { githubDelivery } from '../kit/delivery.js'
import { portOf } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'

const { signal: never } = new AbortController()

function entryOf({ headers, body }: Pick<Entry, 'headers' | 'body'> = githubDelivery()): Entry {
  const summary = { event: 'push', action: null, repo: null, number: null, deliveryId: 'id', hookId: '' }
  const rest = { n: 1, receivedAt: 0, provider: 'github', verifiedBy: 'current', duplicates: 0 } as const
  return { ...summary, ...rest, headers, body }
}

const open = (url: string, limit = 5000): OpenTarget => openHttpTarget(url, { clock: Date.now, limit })

async function deliver(url: string, limit?: number, signal = never): Promise<DeliveryResult> {
  await using target = open(url, limit)
  return await target.deliver(entryOf(), 1, { signal })
}

/** What matters of a result, the answer as text. */
function shown({ outcome, status, answer, error }: DeliveryResult) {
  return { outcome, status, answer: Buffer.from(answer).toString(), error }
}

describe('the headers that a target gets', () => {
  const LAST = ['X-Relay-Attempt', '3']
  const dropped =
    `Host Content-Length Connection Keep-Alive TE Trailer Transfer-Encoding Upgrade Proxy-Authorization
    Proxy-Connection Authorization Cookie Expect X-Relay-Attempt`.split(/\s+/)
  const ordinary = [
    ['Accept', '*/*'],
    ['x-GitHub-EVENT', 'push'],
    ['Content-Type', 'application/json'],
    ['X-Twice', 'one'],
    ['X-Twice', 'two'],
    ['X-Empty', ''],
    ['X-Latin', 'caf\u00e9'],
    ['X-Tab', 'a\tb'],
  ] as const

  it.each<[string, Entry['headers']]>([
    [
      'of one connection, with credentials, of relay itself',
      dropped.flatMap((name) =>
        [name, name.toLowerCase(), name.toUpperCase()].map((each) => [each, 'x'] as const),
      ),
    ],
    [
      'named by Connection',
      [
        ['Connection', 'keep-alive, X-Hop'],
        ['connection', 'x-other'],
        ['X-HOP', '1'],
        ['X-Other', '2'],
      ],
    ],
    [
      'that cannot be written',
      [
        ['X-Line', 'a\r\nX-Evil: b'],
        ['X-Wide', '\u2603'],
        ['X Space', 'a'],
        ['', 'a'],
      ],
    ],
  ])('are those recorded, in order and spelling, but those %s', async (_, lines) => {
    await using server = await receiver()
    await using target = open(server.url)
    const headers = [...lines, ...ordinary]
    await target.deliver(entryOf({ headers, body: new Uint8Array() }), 3, { signal: never })
    // After Host and Connection, and before Content-Length.
    expect(server.received[0]?.headers.slice(2, -1)).toEqual([...ordinary, LAST])
  })
})

describe('an HTTP target', () => {
  it('that never stops answering is cut off', async () => {
    let closed: Promise<unknown> | undefined
    const server = createHttpServer((request, response) => {
      closed = new Promise((resolve) => request.socket.once('close', resolve))
      const more = (): void => {
        while (response.write(Buffer.alloc(65_536, 'x')));
      }
      response.on('drain', more)
      more()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { outcome, answer } = await deliver(`http://127.0.0.1:${portOf(server)}`)
    expect([outcome, answer.length]).toEqual(['succeeded', 4096])
    await closed
    server.close()
  })

  it('is left at once when relay stops', async () => {
    await using server = await receiver('hang')
    const stop = new AbortController()
    const delivering = deliver(server.url, 60_000, stop.signal)
    await server.has(1)
    stop.abort()
    const killed = { outcome: 'killed', status: null, answer: '', error: 'relay was stopped' }
    expect(shown(await delivering)).toEqual(killed)
    expect(shown(await deliver(server.url, 60_000, stop.signal))).toEqual(killed)
    expect(server.received.length).toBe(1)
  })

  it('that does not take the body is given up at the limit', async () => {
    const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const connected = once(server, 'connection')
    await using target = open(`http://127.0.0.1:${portOf(server)}`, 200)
    const large = entryOf({ headers: [], body: Buffer.alloc(20_000_000) })
    const error = 'no answer within 0.2 s'
    const result = await target.deliver(large, 1, { signal: never })
    expect(shown(result)).toEqual({ outcome: 'timed out', status: null, answer: '', error })
    const [socket]: Socket[] = await connected
    socket?.destroy()
    server.close()
  })
})

describe('a target that does not answer in HTTP', () => {
  const SSH = 'SSH-2.0-OpenSSH_9.2\r\n'
  const MAIL = '220 mail.example ESMTP\r\n'
  const TLS_ALERT = '\x15\x03\x01\0\x02\x02\x46'
  const PROTOCOL = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'
  const LONG = `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}`
  let server: Server
  let sockets: Socket[]

  afterEach(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })

  it.each<[string, (socket: Socket) => unknown, string]>([
    ['an SSH server, which speaks first', (socket) => socket.end(SSH), SSH],
    ['a mail server, which waits for more', (socket) => socket.write(MAIL), MAIL],
    ['a server that wants TLS', (socket) => socket.once('data', () => socket.end(TLS_ALERT)), TLS_ALERT],
    ['a server that changes the protocol', (socket) => socket.once('data', () => socket.write(PROTOCOL)), ''],
    ['a server whose headers are too long', (socket) => socket.once('data', () => socket.write(LONG)), ''],
  ])('has answered, and is not asked again: %s', async (_, speak, answer) => {
    sockets = []
    server = createServer((socket) => {
      sockets.push(socket.on('error', () => {}))
      speak(socket)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const result = shown(await deliver(`http://127.0.0.1:${portOf(server)}`))
    const error = 'its answer is not HTTP/1.1: check the address and the port'
    expect(result).toEqual({ outcome: 'refused', status: null, error, answer })
    expect(sockets.length).toBe(1)
  })
})
