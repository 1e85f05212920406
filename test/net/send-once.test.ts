import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { readText, sendOnce } from '../../src/net/send-once.js'
import { startProxy } from '../helpers/proxy.js'
import { portOf, scriptedServer } from '../helpers/scripted-server.js'

const GET = { method: 'GET', headers: { accept: 'text/plain' } } as const

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

describe('sendOnce', () => {
  it('sends a request as given, on a connection of its own, and asks for a body without encoding', async () => {
    await using server = await scriptedServer(({ method }) => ({
      status: method === 'GET' ? 307 : 201,
      headers: { location: '/next', 'x-said': 'a' },
      body: `to ${method}`,
    }))
    for (const request of [GET, { ...GET, method: 'POST', body: '{"a":"é"}' } as const]) {
      const { status, header, body } = await sendOnce(`${server.url}/a?b`, request)
      expect([status, header('X-Said'), header('x-other'), await readText({ body })]).toEqual([
        request.method === 'GET' ? 307 : 201,
        'a',
        undefined,
        `to ${request.method}`,
      ])
    }
    const sent = { accept: 'text/plain', 'accept-encoding': 'identity', connection: 'close' }
    expect(server.received).toMatchObject([
      { method: 'GET', path: '/a?b', headers: sent, body: '' },
      { method: 'POST', path: '/a?b', headers: sent, body: '{"a":"é"}' },
    ])
    expect(server.connections).toBe(2)
  })

  it('joins the lines of a header', async () => {
    await using server = await answering('HTTP/1.1 200 OK\r\nx-a: 1\r\nX-A: 2\r\ncontent-length: 0\r\n\r\n')
    expect((await sendOnce(server.url, GET)).header('x-a')).toBe('1, 2')
  })

  it('sends the length of a body, whatever the method', async () => {
    await using server = await scriptedServer(() => ({}))
    await sendOnce(server.url, { ...GET, method: 'DELETE', body: 'é' })
    expect(server.received).toMatchObject([{ headers: { 'content-length': '2' }, body: 'é' }])
  })

  it('fails with the reason of a signal that aborts', async () => {
    const controller = new AbortController()
    const reason = new Error('enough')
    await using server = await scriptedServer(() => {
      controller.abort(reason)
      return 'silence'
    })
    await expect(sendOnce(server.url, { ...GET, signal: controller.signal })).rejects.toBe(reason)
  })

  it('fails before it sends anything when the signal has aborted', async () => {
    await using server = await scriptedServer(() => 'silence')
    const reason = new Error('enough')
    const signal = AbortSignal.abort(reason)
    await expect(sendOnce(server.url, { ...GET, signal })).rejects.toBe(reason)
    expect(server.received).toEqual([])
  })

  it('sends nothing again after the connection was reset', async () => {
    await using server = await scriptedServer(() => 'reset')
    const writing = sendOnce(server.url, { ...GET, method: 'POST', body: '{}' })
    await expect(writing).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect([server.received.length, server.connections]).toEqual([1, 1])
  })

  it('fails while reading a body that breaks off', async () => {
    await using server = await scriptedServer(() => ({ headers: { 'content-length': '99' }, body: '{' }))
    const code = 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'
    await expect(readText(await sendOnce(server.url, GET))).rejects.toMatchObject({ code })
  })

  it('fails when another protocol is answered', async () => {
    const answer = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'
    await using server = await answering(answer)
    await expect(sendOnce(server.url, GET)).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
  })

  it('closes the connection of a body that is discarded', async () => {
    await using server = await scriptedServer(() => ({ body: 'and more', stalls: true }))
    const response = await sendOnce(server.url, GET)
    response.discard()
    await expect(readText(response)).rejects.toMatchObject({ code: 'UND_ERR_ABORTED' })
  })
})

describe('the proxy', () => {
  afterEach(() => vi.unstubAllEnvs())

  it('is used for other machines, and neither for this one nor for what NO_PROXY names', async () => {
    await using server = await scriptedServer(() => ({ body: 'hello' }))
    await using proxy = await startProxy(() => server.url)
    // It is read by the first request.
    vi.resetModules()
    vi.stubEnv('http_proxy', proxy.url)
    vi.stubEnv('no_proxy', '0.0.0.0')
    const { sendOnce: send } = await import('../../src/net/send-once.js')
    const { port } = new URL(server.url)
    // 0.0.0.0 is no name of this machine, but leads here.
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `0.0.0.0:${port}`, 'code.invalid']) {
      expect(await readText(await send(`http://${host}/`, GET))).toBe('hello')
    }
    expect(proxy.asked).toEqual(['code.invalid:80'])
  })

  it('does not keep a request that is aborted while its connection is being made', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    vi.resetModules()
    vi.stubEnv('http_proxy', `http://127.0.0.1:${portOf(silent)}`)
    vi.stubEnv('no_proxy', '')
    const { sendOnce: send } = await import('../../src/net/send-once.js')
    const signal = AbortSignal.timeout(50)
    const sending = send('http://code.invalid/', { ...GET, signal })
    await expect(sending).rejects.toMatchObject({ name: 'TimeoutError' })
    silent.close()
  })
})
