import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createLoopbackClient, type SendRequest } from '../../src/net/loopback-client.js'
import { type Answer, portOf, scriptedServer } from '../helpers/scripted-server.js'

const GET = { method: 'GET', headers: {} } as const

/** What one request to a server that answers so comes to. */
async function answerTo(answer: Answer) {
  await using server = await scriptedServer(() => answer)
  using client = createLoopbackClient()
  const { header, ...rest } = await client.send(new URL(server.url), GET)
  return { ...rest, location: header('Location') }
}

describe('the loopback client', () => {
  it('sends the request as given, with what HTTP needs', async () => {
    await using server = await scriptedServer(() => ({ status: 201, body: 'ja, gären' }))
    using client = createLoopbackClient()
    const request = { method: 'POST', headers: { 'X-One': '1' }, body: 'grün' } as const
    const { status, text } = await client.send(new URL('/a?b=c', server.url), request)
    expect({ status, text }).toEqual({ status: 201, text: 'ja, gären' })
    expect(server.received).toEqual([
      {
        method: 'POST',
        path: '/a?b=c',
        headers: {
          'x-one': '1',
          host: new URL(server.url).host,
          connection: 'keep-alive',
          'content-length': '5',
        },
        body: 'grün',
      },
    ])
  })

  it('follows no redirect', async () => {
    const answer = { status: 307, headers: { location: 'http://127.0.0.1:1/' } }
    expect(await answerTo(answer)).toEqual({ status: 307, text: '', location: 'http://127.0.0.1:1/' })
  })

  it('accepts a response of 1 MiB, and no larger one', async () => {
    const body = 'x'.repeat(1_048_576)
    expect((await answerTo({ body })).text).toBe(body)
    await expect(answerTo({ body: `${body}x` })).rejects.toThrow('more than 1048576 bytes')
  })

  it('fails with the code of what broke the connection', async () => {
    await expect(answerTo('reset')).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  it('refuses a header that would end its line', async () => {
    using client = createLoopbackClient()
    const request = { method: 'GET', headers: { 'X-One': 'a\r\nX-Two: b' } } as const
    await expect(client.send(new URL('http://127.0.0.1:1/'), request)).rejects.toMatchObject({
      code: 'ERR_INVALID_CHAR',
    })
  })

  it('stops waiting for an answer, or for the rest of one, when the signal aborts', async () => {
    const stalls = { headers: { 'content-length': '9' }, body: 'half', stalls: true }
    for (const answer of ['silence', stalls] as const) {
      const abort = new AbortController()
      const reason = new Error('enough')
      await using server = await scriptedServer(() => {
        setImmediate(() => abort.abort(reason))
        return answer
      })
      using client = createLoopbackClient()
      const sending = client.send(new URL(server.url), GET, { signal: abort.signal })
      await expect(sending).rejects.toMatchObject({ name: 'AbortError', cause: reason })
    }
  })
})

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n'

/** Answers each request with the same bytes, and records which of its connections each came on. */
async function rawServer(answer: (socket: Socket) => void) {
  const connections: Socket[] = []
  const requests: number[] = []
  const server = createServer((socket) => {
    const number = connections.push(socket)
    socket
      .on('error', () => {})
      .on('data', () => {
        requests.push(number)
        answer(socket)
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: new URL(`http://127.0.0.1:${portOf(server)}`),
    connections,
    requests,
    async [Symbol.asyncDispose]() {
      for (const socket of connections) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** The texts of so many answers, one after the other. */
async function sendInTurn(
  send: SendRequest,
  url: URL,
  count: number,
  before = async () => {},
): Promise<string[]> {
  const texts: string[] = []
  for (let n = 0; n < count; n++) {
    if (n > 0) await before()
    texts.push((await send(url, GET)).text)
  }
  return texts
}

describe('connections of the loopback client', () => {
  it('are one for all requests while the server keeps it open, and end with the client', async () => {
    await using server = await rawServer((socket) => socket.write(`${OK}\r\nok`))
    {
      using client = createLoopbackClient()
      expect(await sendInTurn(client.send, server.url, 3)).toEqual(['ok', 'ok', 'ok'])
    }
    expect(server.requests).toEqual([1, 1, 1])
    const [socket] = server.connections
    if (socket && !socket.destroyed) await once(socket, 'close')
  })

  it.each<[string, (socket: Socket) => void]>([
    ['closed', (socket) => socket.end(`${OK}\r\nok`)],
    ['announced the end of', (socket) => socket.write(`${OK}Connection: close\r\n\r\nok`)],
  ])('are new after the server %s one', async (_, answer) => {
    await using server = await rawServer(answer)
    using client = createLoopbackClient()
    const closed = async (): Promise<void> => {
      const socket = server.connections.at(-1)
      if (socket && !socket.destroyed) await once(socket, 'close')
    }
    expect(await sendInTurn(client.send, server.url, 2, closed)).toEqual(['ok', 'ok'])
    expect(server.requests).toEqual([1, 2])
  })

  it('fail a request that is answered with another protocol', async () => {
    const answer = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'
    await using server = await rawServer((socket) => socket.write(answer))
    using client = createLoopbackClient()
    await expect(client.send(server.url, GET)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  it('are new after a request that failed', async () => {
    let isFirst = true
    await using server = await rawServer((socket) => {
      if (isFirst) socket.resetAndDestroy()
      else socket.write(`${OK}\r\nok`)
      isFirst = false
    })
    using client = createLoopbackClient()
    await expect(client.send(server.url, GET)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(await sendInTurn(client.send, server.url, 1)).toEqual(['ok'])
  })
})
