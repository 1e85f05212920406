import { describe, expect, it } from 'vitest'
import { connect, requestText } from '../kit/http.js'
import { place, type Serving } from '../kit/place.js'
import { shared } from './fixture.js'

const here = shared(() => place({ host: 'none' }))

/** A connection on which one request was answered, and the seconds that the answer says it is kept for the next one. */
async function idle({ port }: Serving, request = requestText('GET', '/health')) {
  const connection = await connect(port)
  connection.send(request)
  const { headers } = await connection.answer()
  const [, seconds] = /^timeout=(\d+)$/.exec(headers['keep-alive'] ?? '') ?? []
  return { connection, seconds: Number(seconds) }
}

describe('a connection that is idle after an answer', () => {
  const relay = shared(() => here.serve())

  /** Seconds after which each closes a connection that it has left idle, by its documentation. */
  const PROXIES = {
    HAProxy: 10,
    nginx: 60,
    'AWS load balancers': 60,
    cloudflared: 90,
    Traefik: 90,
    "Go's Transport": 90,
    Caddy: 120,
    'Node fetch, which takes at most that of what a server says': 600,
    'Google load balancers': 600,
  }

  it.each(Object.entries(PROXIES))('is closed by %s first', async (_, seconds) => {
    for (const path of ['/health', '/nowhere', '/']) {
      const { connection, seconds: own } = await idle(relay, requestText('GET', path))
      expect(own).toBeGreaterThan(seconds)
      connection.socket.destroy()
    }
  })

  it('is closed at once when relay stops, however many there are', async () => {
    // Far more than a test may take: only what is closed at once ends before.
    await using own = await place({ host: 'none' })
    const stopping = await own.serveWith({ seams: { limits: { stop: 3_600_000, idle: 3_600_000 } } })
    const all = await Promise.all(Array.from({ length: 50 }, () => idle(stopping)))
    const { code } = await stopping.stop()
    const rest = await Promise.all(all.map(({ connection }) => connection.closed()))
    expect([code, new Set(rest)]).toEqual([0, new Set([''])])
  })
})
