import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { exchange, requestText } from '../kit/http.js'
import { REPEAT } from '../kit/repeat.js'
import { start } from '../kit/run.js'

const CONNECTIONS = 1000 * REPEAT
/** How many of them at a time. */
const AT_ONCE = 50
/**
 * After so many a client waits for the answer to a proper request. Otherwise connections that are reset before
 * they are accepted would fill the listener's queue, which holds 511.
 */
const IN_A_ROW = 8
const HEALTHY = requestText('GET', '/')
/** The same connections in every run. */
const SEED = 0x5eed_0014

/** RFC 9110 section 9.3, and three that are not there. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'get', 'FÖÖ']
const TARGETS = ['', ...'/ /health /webhook /api/comment /auth/github * example.org:443 /%zz'.split(' ')]
const HEADERS = [
  'Host: localhost',
  'Host: evil.example',
  'Content-Length: 20',
  'Content-Length: 2000000',
  'Transfer-Encoding: chunked',
  'Expect: 100-continue',
  'Connection: Upgrade\r\nUpgrade: websocket',
  'Connection: close',
  'Content-Type: application/json',
  'broken',
]
const BODIES = ['', '{"a":1}', '{"a":1}'.repeat(3), '5\r\nhello\r\n0\r\n\r\n', 'zz\r\n', 'x'.repeat(20_000)]

/** What a client does to its connection after its last byte, or when the first byte of an answer comes. */
const ENDS: readonly ((socket: Socket) => unknown)[] = [
  // Node cannot reset a socket that is still writing: it would stay open.
  (socket) => (socket.writableLength === 0 ? socket.resetAndDestroy() : socket.destroy()),
  (socket) => socket.destroy(),
  (socket) => socket.end(),
]

/** Numbers from 0 to 1 that depend on the seed only (mulberry32). */
function randomFrom(seed: number) {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b_79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000
  }
  return {
    below: (count: number): number => Math.floor(next() * count),
    one<T>(of: readonly T[]): T {
      const [found] = of.slice(Math.floor(next() * of.length))
      if (found === undefined) throw new Error('unreachable: next() is below 1')
      return found
    },
    chance: (part: number): boolean => next() < part,
  }
}
type Random = ReturnType<typeof randomFrom>

function request(random: Random): Buffer {
  if (random.chance(0.05)) return Buffer.from(Array.from({ length: 60 }, () => random.below(256)))
  const headers = HEADERS.filter((_, i) => random.chance(i === 0 ? 0.8 : 0.15))
  const head = [`${random.one(METHODS)} ${random.one(TARGETS)} HTTP/1.1`, ...headers, '', ''].join('\r\n')
  return Buffer.from(head + random.one(BODIES), 'latin1')
}

/** Sends one or two requests, or a part of them, in pieces. Resolves when the connection is closed. */
function attack(port: number, random: Random): Promise<void> {
  const all = Buffer.concat(Array.from({ length: 1 + random.below(2) }, () => request(random)))
  const bytes = random.chance(0.5) ? all : all.subarray(0, random.below(all.length))
  const cut = random.below(bytes.length + 1)
  const end = random.one(ENDS)
  const readsFirst = random.chance(0.3)
  const delay = random.below(6)
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {}).on('close', () => resolve())
    socket.on('connect', () => {
      socket.write(bytes.subarray(0, cut))
      setImmediate(() => socket.writable && socket.write(bytes.subarray(cut)))
      setTimeout(() => end(socket), delay)
      // A client that has ended its side goes away too. (Node never closes a socket reset after its end.)
      setTimeout(() => socket.destroy(), 4 * delay + 10)
    })
    if (readsFirst) socket.once('data', () => end(socket))
    else socket.resume()
  })
}

describe('relay serve --sandbox', () => {
  it(
    `answers after ${CONNECTIONS} broken connections to both listeners`,
    { timeout: 60_000 * REPEAT },
    async () => {
      const flags = ['--sandbox', '--quiet', '--port', '0', '--sandbox-port', '0', '--json']
      await using program = start(['serve', ...flags], { built: true })
      const { url, sandbox } = await program.listening()
      const ports = [url, sandbox].map((each) => Number(new URL(each).port))
      const random = randomFrom(SEED)
      let left = CONNECTIONS
      const client = async (): Promise<void> => {
        while (left > 0) {
          const port = random.one(ports)
          for (let i = 0; i < IN_A_ROW && left > 0; i++, left--) await attack(port, random)
          const { status } = await exchange(port, HEALTHY)
          if (status !== 200) throw new Error(`${HEALTHY} was answered ${status}`)
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, client))
      expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')
      expect((await fetch(sandbox)).status).toBe(200)
      const { code, err } = await program.stop()
      expect([code, err.match(/^error.*/gm)]).toEqual([0, null])
    },
  )
})
