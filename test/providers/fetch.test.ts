import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { outboundFetch } from '../../src/providers/fetch.js'
import { portOf, scriptedServer, type ScriptedServer } from '../helpers/scripted-server.js'

/** A proxy that takes every CONNECT to the one server there is, and remembers where it was meant to go. */
function connectProxy(tunnels: string[], target: () => string): Server {
  return createServer().on('connect', ({ url = '' }, socket) => {
    tunnels.push(url)
    const { hostname, port } = new URL(target())
    const onward = connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(onward).pipe(socket)
    })
    socket.on('error', () => onward.destroy())
    onward.on('error', () => socket.destroy())
  })
}

describe('outboundFetch', () => {
  const tunnels: string[] = []
  let server: ScriptedServer
  let proxy: Server

  beforeAll(async () => {
    server = await scriptedServer(() => ({ body: 'hello' }))
    proxy = connectProxy(tunnels, () => server.url).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const address = `http://127.0.0.1:${portOf(proxy)}`
    vi.stubEnv('http_proxy', address)
    vi.stubEnv('https_proxy', address)
    vi.stubEnv('no_proxy', '')
    // These are read once, by the first call; NO_PROXY by every one.
    await outboundFetch(server.url)
  })

  afterAll(async () => {
    proxy.close()
    proxy.closeAllConnections()
    await server[Symbol.asyncDispose]()
  })

  it('never asks a proxy for this machine, and uses no connection twice', async () => {
    const { port } = new URL(server.url)
    for (const host of ['127.0.0.1', 'localhost']) await outboundFetch(`http://${host}:${port}/`)
    expect(tunnels).toEqual([])
    expect(server.received.map(({ headers }) => headers.connection)).toEqual(['close', 'close', 'close'])
  })

  it('goes through the proxy for any other', async () => {
    const response = await outboundFetch('http://code.invalid/path', { method: 'POST', body: 'x' })
    expect([response.status, await response.text()]).toEqual([200, 'hello'])
    expect(tunnels).toEqual(['code.invalid:80'])
    expect(server.received.at(-1)).toMatchObject({ method: 'POST', path: '/path', body: 'x' })
  })

  it('heeds NO_PROXY', async () => {
    // Not a name of this machine, but it leads here.
    const anywhere = `http://0.0.0.0:${new URL(server.url).port}/`
    await outboundFetch(anywhere)
    vi.stubEnv('no_proxy', '0.0.0.0')
    await outboundFetch(anywhere)
    expect(tunnels.slice(1)).toEqual([new URL(anywhere).host])
  })

  it('takes addresses only', async () => {
    await expect(outboundFetch(new Request(server.url))).rejects.toThrow('takes an address')
  })
})
