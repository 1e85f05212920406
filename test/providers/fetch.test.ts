import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { readText } from '../../src/providers/answer.js'
import { outboundCall, outboundFetch } from '../../src/providers/fetch.js'
import { type Proxy, startProxy } from '../helpers/proxy.js'
import { portOf, scriptedServer, type ScriptedServer } from '../helpers/scripted-server.js'

describe('outboundFetch', () => {
  let server: ScriptedServer
  let proxy: Proxy

  beforeAll(async () => {
    server = await scriptedServer(() => ({ body: 'hello' }))
    proxy = await startProxy(() => server.url)
    vi.stubEnv('http_proxy', proxy.url)
    vi.stubEnv('https_proxy', proxy.url)
    vi.stubEnv('no_proxy', '')
    // These are read once, by the first call; NO_PROXY by every one.
    await outboundFetch(server.url)
  })

  afterAll(async () => {
    await proxy[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  it('never asks a proxy for this machine, and uses no connection twice', async () => {
    const { port } = new URL(server.url)
    for (const host of ['127.0.0.1', 'localhost']) await outboundFetch(`http://${host}:${port}/`)
    expect(proxy.asked).toEqual([])
    expect(server.received.map(({ headers }) => headers.connection)).toEqual(['close', 'close', 'close'])
  })

  it('goes through the proxy for any other', async () => {
    const response = await outboundFetch('http://code.invalid/path', { method: 'POST', body: 'x' })
    expect([response.status, await response.text()]).toEqual([200, 'hello'])
    expect(proxy.asked).toEqual(['code.invalid:80'])
    expect(server.received.at(-1)).toMatchObject({ method: 'POST', path: '/path', body: 'x' })
  })

  it('heeds NO_PROXY', async () => {
    // Not a name of this machine, but it leads here.
    const anywhere = `http://0.0.0.0:${new URL(server.url).port}/`
    await outboundFetch(anywhere)
    vi.stubEnv('no_proxy', '0.0.0.0')
    await outboundFetch(anywhere)
    expect(proxy.asked.slice(1)).toEqual([new URL(anywhere).host])
  })

  it('takes addresses only', async () => {
    await expect(outboundFetch(new Request(server.url))).rejects.toThrow('takes an address')
  })
})

/** A server that answers every request with these bytes, and ends the connection. */
async function answering(bytes: string): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((socket) => void socket.once('data', () => socket.end(bytes)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

// One way for this machine, and one for all others; 0.0.0.0 is none of its names, but leads here.
describe.each(['127.0.0.1', '0.0.0.0'])('outboundCall to %s', (host) => {
  const get = { method: 'GET', headers: { accept: 'text/plain' }, redirect: 'manual' } as const
  const signal = new AbortController().signal
  beforeEach(() => void vi.stubEnv('no_proxy', '0.0.0.0'))

  const urlOf = (server: { url: string }): string => `http://${host}:${new URL(server.url).port}`

  it('sends what it is given, uses no connection twice, and asks for text as it is', async () => {
    await using server = await scriptedServer(({ method }) => ({
      status: method === 'GET' ? 307 : 201,
      headers: { location: '/next', 'x-said': 'a' },
      body: `to ${method}`,
    }))
    for (const request of [get, { ...get, method: 'POST', body: '{"a":"é"}' } as const]) {
      const { status, headers, body } = await outboundCall(`${urlOf(server)}/a?b`, { ...request, signal })
      const said = [headers.get('X-Said'), headers.has('x-other')]
      expect([status, said, await readText({ body })]).toEqual([
        request.method === 'GET' ? 307 : 201,
        ['a', false],
        `to ${request.method}`,
      ])
    }
    const sent = { accept: 'text/plain', 'accept-encoding': 'identity', connection: 'close' }
    expect(server.received).toMatchObject([
      { method: 'GET', path: '/a?b', headers: sent, body: '' },
      { method: 'POST', path: '/a?b', headers: sent, body: '{"a":"é"}' },
    ])
  })

  it('gives a header that came twice as one', async () => {
    await using server = await answering('HTTP/1.1 200 OK\r\nx-a: 1\r\nX-A: 2\r\ncontent-length: 0\r\n\r\n')
    const { headers } = await outboundCall(urlOf(server), { ...get, signal })
    expect(headers.get('x-a')).toBe('1, 2')
  })

  it('ends at the signal, with its reason', async () => {
    const controller = new AbortController()
    const reason = new Error('enough')
    await using server = await scriptedServer(() => {
      controller.abort(reason)
      return 'silence'
    })
    await expect(outboundCall(urlOf(server), { ...get, signal: controller.signal })).rejects.toBe(reason)
  })

  it('ends at a signal that has aborted before it sends anything', async () => {
    await using server = await scriptedServer(() => 'silence')
    const reason = new Error('enough')
    await expect(outboundCall(urlOf(server), { ...get, signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    )
    expect(server.received).toEqual([])
  })

  it('gives a body that breaks off as what went wrong', async () => {
    await using server = await scriptedServer(() => ({ headers: { 'content-length': '99' }, body: '{' }))
    const answer = await outboundCall(urlOf(server), { ...get, signal })
    const code = expect.stringMatching(/^(?:ECONNRESET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/)
    await expect(readText(answer)).rejects.toMatchObject({ code })
  })

  it('fails when another protocol is answered', async () => {
    const answer = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'
    await using server = await answering(answer)
    const code = expect.stringMatching(/^(?:ECONNRESET|UND_ERR_SOCKET)$/)
    await expect(outboundCall(urlOf(server), { ...get, signal })).rejects.toMatchObject({ code })
  })

  it('says how long a body is, whatever the method', async () => {
    await using server = await scriptedServer(() => ({}))
    await outboundCall(urlOf(server), { ...get, method: 'DELETE', body: 'é', signal })
    expect(server.received).toMatchObject([{ headers: { 'content-length': '2' }, body: 'é' }])
  })
})

describe('outboundCall', () => {
  const get = { method: 'GET', headers: {}, redirect: 'manual' } as const
  const signal = new AbortController().signal

  it('goes through the proxy, but for this machine and what NO_PROXY names', async () => {
    await using server = await scriptedServer(() => ({ body: 'hello' }))
    await using proxy = await startProxy(() => server.url)
    vi.resetModules()
    vi.stubEnv('http_proxy', proxy.url)
    vi.stubEnv('no_proxy', '0.0.0.0')
    const { outboundCall: call } = await import('../../src/providers/fetch.js')
    const { port } = new URL(server.url)
    for (const host of [`localhost:${port}`, `0.0.0.0:${port}`, 'code.invalid']) {
      expect(await readText(await call(`http://${host}/`, { ...get, signal }))).toBe('hello')
    }
    expect(proxy.asked).toEqual(['code.invalid:80'])
  })
})
