import { createServer, type RequestListener } from 'node:http'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { DeliveryResponse } from '../../src/net/exchange.js'
import { DeliverySender } from '../../src/net/delivery-sender.js'
import { portOf } from '../helpers/scripted-server.js'

const NEVER = new AbortController().signal

describe('an exchange', () => {
  /** Posts `{}` with `X-A: 1` and `X-A: 2` to a server that answers so. */
  async function posted(answer: RequestListener, signal = NEVER, limit = 5000): Promise<DeliveryResponse> {
    const server = createServer(answer).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      await using sender = new DeliverySender(`http://127.0.0.1:${portOf(server)}/hook?a=b`, { limit })
      const headers = [
        ['X-A', '1'],
        ['X-A', '2'],
      ] as const
      return await sender.post(headers, Buffer.from('{}'), signal)
    } finally {
      server.close()
      server.closeAllConnections()
    }
  }

  it('sends the lines and bytes to the address, and gives status, headers and how the answer begins', async () => {
    const { status, header, start } = await posted((request, response) => {
      request.once('data', (body) => {
        const { method, url, rawHeaders } = request
        const lines = rawHeaders.filter((_, i) => rawHeaders[i - (i % 2)] === 'X-A')
        response.writeHead(201, { 'X-B': '3' }).end(JSON.stringify([method, url, lines, String(body)]))
      })
    })
    expect([status, header('x-b'), JSON.parse(Buffer.from(start).toString())]).toEqual([
      201,
      '3',
      ['POST', '/hook?a=b', ['X-A', '1', 'X-A', '2'], '{}'],
    ])
  })

  it('waits for the answer that comes after an early one', async () => {
    const { status } = await posted((_, response) => {
      response.writeEarlyHints({ link: '</a>; rel=preload' })
      response.writeHead(204).end()
    })
    expect(status).toBe(204)
  })

  it('returns the status of a response that never ends or is interrupted', async () => {
    const endless = await posted((_, response) => {
      const more = (error?: unknown): void =>
        void (error || response.destroyed || response.write('x'.repeat(65_536), more))
      more()
    })
    const broken = await posted((_, response) => {
      response.writeHead(500, { 'Content-Length': 10 })
      response.write('five!', () => response.destroy())
    })
    expect([endless.status, broken.status, Buffer.from(broken.start).toString()]).toEqual([200, 500, 'five!'])
  })

  it('is given up when the signal aborts, also before it begins', async () => {
    const stop = new AbortController()
    const waiting = posted(() => stop.abort(new Error('stopped')), stop.signal)
    await expect(waiting).rejects.toThrow('stopped')
    await expect(posted(() => {}, stop.signal)).rejects.toThrow('stopped')
  })

  it('is given up at the limit', async () => {
    await expect(posted(() => {}, NEVER, 50)).rejects.toThrow('Timed out')
  })

  it('gives what several lines of a header say with commas between', async () => {
    const { header } = await posted((_, response) => {
      response.writeHead(200, { 'X-B': ['1', '2'] }).end()
    })
    expect([header('x-b'), header('x-c')]).toEqual(['1, 2', undefined])
  })
})
