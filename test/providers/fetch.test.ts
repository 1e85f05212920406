import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { outboundFetch } from '../../src/providers/fetch.js'
import { type Proxy, startProxy } from '../helpers/proxy.js'
import { scriptedServer, type ScriptedServer } from '../helpers/scripted-server.js'

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
