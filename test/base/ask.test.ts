import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ask, Asker } from '../../src/base/ask.js'
import { portOf, scriptedServer, type Answer } from '../helpers/scripted-server.js'

const GET = { method: 'GET', headers: {} } as const

async function askOne(answer: Answer) {
  await using server = await scriptedServer(() => answer)
  const { header, ...rest } = await ask(new URL(server.url), GET)
  return { ...rest, location: header('Location') }
}

describe('ask', () => {
  it('sends what it is given, and nothing of its own but what HTTP needs', async () => {
    await using server = await scriptedServer(() => ({ status: 201, body: 'ja, gären' }))
    const question = { method: 'POST', headers: { 'X-One': '1' }, body: 'grün' } as const
    const { status, text } = await ask(new URL('/a?b=c', server.url), question)
    expect({ status, text }).toEqual({ status: 201, text: 'ja, gären' })
    expect(server.received).toEqual([
      {
        method: 'POST',
        path: '/a?b=c',
        headers: {
          'x-one': '1',
          host: new URL(server.url).host,
          'content-length': '5',
        },
        body: 'grün',
      },
    ])
  })

  it('follows no redirect', async () => {
    const answer = { status: 307, headers: { location: 'http://127.0.0.1:1/' } }
    expect(await askOne(answer)).toEqual({ status: 307, text: '', location: 'http://127.0.0.1:1/' })
  })

  it('takes an answer of 1 MiB, and no larger one', async () => {
    const body = 'x'.repeat(1_048_576)
    expect((await askOne({ body })).text).toBe(body)
    await expect(askOne({ body: `${body}x` })).rejects.toThrow('larger than 1 MiB')
  })

  it('fails with the code of what happened', async () => {
    await expect(askOne('reset')).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  it('stops waiting for an answer, also for the rest of one, when it is told to', async () => {
    const stalls = { headers: { 'content-length': '9' }, body: 'half', stalls: true }
    for (const answer of ['silence', stalls] as const) {
      const abort = new AbortController()
      const reason = new Error('enough')
      await using server = await scriptedServer(() => {
        setImmediate(() => abort.abort(reason))
        return answer
      })
      const asking = ask(new URL(server.url), GET, { signal: abort.signal })
      await expect(asking).rejects.toMatchObject({ name: 'AbortError', cause: reason })
    }
  })
})

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n'

/** Gives each request this, whole as it is, and tells on which of its connections each came. */
async function rawServer(answer: (socket: Socket) => void) {
  const connections: Socket[] = []
  const requests: number[] = []
  const server = createServer((socket) => {
    const number = connections.push(socket)
    socket.on('data', () => {
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

describe('an asker', () => {
  afterEach(() => vi.restoreAllMocks())

  it('asks on one connection while it stays open, and ends it', async () => {
    await using server = await rawServer((socket) => socket.write(`${OK}\r\nok`))
    {
      using asker = new Asker()
      for (const _ of [1, 2, 3]) expect(await asker.ask(server.url, GET)).toMatchObject({ text: 'ok' })
    }
    expect(server.requests).toEqual([1, 1, 1])
    const [socket] = server.connections
    if (socket && !socket.destroyed) await once(socket, 'close')
  })

  it.each<[string, (socket: Socket) => void]>([
    ['closed', (socket) => socket.end(`${OK}\r\nok`)],
    ['said to close', (socket) => socket.write(`${OK}Connection: close\r\n\r\nok`)],
    ['said more than was asked for', (socket) => socket.write(`${OK}\r\nok${OK}\r\nno`)],
  ])('asks anew where the other side has %s', async (_, answer) => {
    await using server = await rawServer(answer)
    using asker = new Asker()
    for (const _ of [1, 2]) {
      expect(await asker.ask(server.url, GET)).toMatchObject({ text: 'ok' })
      const socket = server.connections.at(-1)
      if (socket && !socket.destroyed) await once(socket, 'close')
    }
    expect(server.requests).toEqual([1, 2])
  })

  it('takes no second question before the first is answered', async () => {
    await using server = await rawServer((socket) => socket.write(`${OK}\r\nok`))
    using asker = new Asker()
    const first = asker.ask(server.url, GET)
    await expect(asker.ask(server.url, GET)).rejects.toThrow('one question after the other')
    expect(await first).toMatchObject({ text: 'ok' })
  })

  it('leaves a connection to the other side, and does not keep the process for it', async () => {
    await using server = await rawServer((socket) => socket.write(`${OK}\r\nok`))
    const source = `import { Asker } from './src/base/ask.ts'
const asker = new Asker()
console.log((await asker.ask(new URL('${server.url.href}'), { method: 'GET', headers: {} })).text)
asker.leave()`
    const args = ['--import', 'tsx', '--input-type=module', '-e', source]
    expect((await promisify(execFile)(process.execPath, args)).stdout).toBe('ok\n')
    const asker = new Asker()
    await asker.ask(server.url, GET)
    asker.leave()
    const socket = server.connections.at(-1)
    socket?.end()
    // Ours has heard of it.
    if (socket && !socket.destroyed) await once(socket, 'close')
  })

  it('asks anew when half a second has gone by, since the other side may be closing', async () => {
    await using server = await rawServer((socket) => socket.write(`${OK}\r\nok`))
    using asker = new Asker()
    await asker.ask(server.url, GET)
    const now = performance.now()
    vi.spyOn(performance, 'now').mockReturnValue(now + 500)
    await asker.ask(server.url, GET)
    expect(server.requests).toEqual([1, 2])
  })

  it('asks another server on another connection', async () => {
    await using one = await rawServer((socket) => socket.write(`${OK}\r\n1.`))
    await using two = await rawServer((socket) => socket.write(`${OK}\r\n2.`))
    using asker = new Asker()
    const texts: string[] = []
    for (const { url } of [one, two, one]) texts.push((await asker.ask(url, GET)).text)
    expect(texts).toEqual(['1.', '2.', '1.'])
  })

  it('asks anew after a question that failed', async () => {
    let first = true
    await using server = await rawServer((socket) => {
      if (first) socket.resetAndDestroy()
      else socket.write(`${OK}\r\nok`)
      first = false
    })
    using asker = new Asker()
    await expect(asker.ask(server.url, GET)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(await asker.ask(server.url, GET)).toMatchObject({ text: 'ok' })
  })
})
