import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { array, assert, asyncProperty, constantFrom, record, uint8Array } from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { readResponseText, sendOnce } from '../../src/net/client.js'
import { DeliverySender, type NoResponse } from '../../src/net/delivery-sender.js'
import {
  describeConnectionError,
  describeWithoutQuote,
  isUnreached,
  parseRetryAfter,
} from '../../src/net/errors.js'
import { connectProxy } from '../kit/network.js'
import { portOf } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const GET = { method: 'GET', headers: {} } as const
const LIMIT = 5000
const { signal: never } = new AbortController()

/** Called with each request that came whole: its `X-N`, and how many its connection has had. */
type Serve = (socket: Socket, n: string, nth: number) => unknown

let server: Server | undefined
let connections: Socket[] = []
/** The `X-N` of each request that was read whole. */
let received: string[] = []

async function start(serve: Serve): Promise<string> {
  connections = []
  received = []
  server = createServer((socket) => {
    connections.push(socket)
    let text = ''
    let nth = 0
    socket
      .on('error', () => {})
      .on('data', (data) => {
        text += String(data)
        for (let end = text.indexOf('{}'); end !== -1; end = text.indexOf('{}')) {
          const [, n = ''] = /X-N: (\d+)/.exec(text) ?? []
          text = text.slice(end + 2)
          received.push(n)
          serve(socket, n, ++nth)
        }
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${portOf(server)}/`
}

afterEach(() => {
  vi.unstubAllEnvs()
  for (const socket of connections) socket.destroy()
  server?.close()
})

/** The status, or why there is none. */
async function post(sender: DeliverySender, n: number): Promise<string> {
  return sender.post({ lines: [['X-N', `${n}`]], body: Buffer.from('{}') }, never).then(
    ({ status }) => `${status}`,
    ({ how }: NoResponse) => how,
  )
}

/** As a lane does: once more if the connection was stale. */
async function postAgain(sender: DeliverySender, n: number): Promise<string> {
  const result = await post(sender, n)
  return result === 'stale' ? post(sender, n) : result
}

const numbers = (count: number): string[] => Array.from({ length: count }, (_, n) => `${n}`)

describe('a target that closes idle connections', () => {
  it('gets every delivery, at most twice, however and whenever it closes', async () => {
    const how = constantFrom('end', 'destroy', 'resetAndDestroy' as const)
    // Not at once: a reset could overtake the answer. About as long as each pause, so that many are sent just when it closes.
    const after = constantFrom(1, 2, 3, 5, 8)
    const pause = constantFrom(0, 1, 2, 3, 5, 8)
    const law = asyncProperty(array(record({ how, after, pause }), { minLength: 20 }), async (steps) => {
      const url = await start((socket, n) => {
        const step = steps[Number(n)]
        socket.write(OK)
        if (step) setTimeout(() => socket[step.how](), step.after)
      })
      await using sender = new DeliverySender(url, LIMIT)
      for (const [n, step] of steps.entries()) {
        expect(await postAgain(sender, n)).toBe('200')
        await sleep(step.pause)
      }
      expect([...new Set(received)]).toEqual(numbers(steps.length))
      const times = numbers(steps.length).map((n) => received.filter((each) => each === n).length)
      expect(Math.max(...times)).toBeLessThanOrEqual(2)
      server?.close()
    })
    await assert(law, { numRuns: 10 })
  })

  it('gets it again on a new connection, also through a proxy', async () => {
    // It reads requests for other servers, too.
    const proxy = await start((socket, _, nth) => (nth === 2 ? socket.end() : socket.write(OK)))
    vi.stubEnv('http_proxy', proxy)
    vi.stubEnv('no_proxy', '')
    vi.resetModules()
    const { DeliverySender: Fresh } = await import('../../src/net/delivery-sender.js')
    await using sender = new Fresh('http://app.invalid/', LIMIT)
    expect(await post(sender, 0)).toBe('200')
    await sleep(5)
    expect([await postAgain(sender, 1), received, connections.length]).toEqual(['200', ['0', '1', '1'], 2])
  })

  it.each<[string, string, readonly string[], (socket: Socket) => unknown]>([
    ['gets it once again, and no more', 'broken', ['0', '1', '1'], (socket) => socket.resetAndDestroy()],
    ['does not get again what it answers', 'broken', ['0', '1'], (socket) => socket.end('HTTP/1.1 2')],
  ])('%s', async (_, how, all, end) => {
    const url = await start((socket, n) => (n === '1' ? end(socket) : socket.write(OK)))
    await using sender = new DeliverySender(url, LIMIT)
    expect(await post(sender, 0)).toBe('200')
    await sleep(5)
    expect([await postAgain(sender, 1), received]).toEqual([how, all])
  })
})

it.each([700, 2000])('an answer that came while relay stood still for %i ms counts', async (ms) => {
  const url = await start((socket) => {
    socket.write(OK)
    // Timers come first when it goes on.
    for (const until = performance.now() + ms; performance.now() < until;);
  })
  await using sender = new DeliverySender(url, 500)
  expect(await post(sender, 0)).toBe('200')
})

it.each([
  ['that does not answer', 'unanswered', 'net'],
  ['to which there is no connection', 'unreached', 'none'],
])('a target %s in time', async (_, how, kind) => {
  // Addresses for documentation are nowhere (RFC 5737), and may be refused.
  const url = kind === 'net' ? await start(() => {}) : 'http://192.0.2.1/'
  await using sender = new DeliverySender(url, 100)
  expect(await post(sender, 0)).toBe(how)
})

it('a connection to a target is forgotten once it is closed', async () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const url = await start((socket) => socket.end(OK))
  const opened: WeakRef<object>[] = []
  const note = (message: unknown): void => {
    const { socket }: { readonly socket?: object } = Object(message)
    if (socket) opened.push(new WeakRef(socket))
  }
  subscribe('net.client.socket', note)
  await using sender = new DeliverySender(url, LIMIT)
  for (let n = 0; n < 20; n++) expect(await postAgain(sender, n)).toBe('200')
  unsubscribe('net.client.socket', note)
  expect(opened.length).toBeGreaterThan(15)
  // The newest may still be in use.
  const open = (): number => opened.slice(0, 10).filter((each) => each.deref()).length
  await expect.poll(() => (collect(), open())).toBe(0)
})

describe('a call to a host', () => {
  it('goes through the proxy to other machines, and to this one directly', async () => {
    await using host = await receiver({ body: 'hello' })
    await using proxy = await connectProxy(() => host.url)
    // It is read by the first request.
    vi.resetModules()
    vi.stubEnv('http_proxy', proxy.url)
    vi.stubEnv('no_proxy', '')
    const { sendOnce: send } = await import('../../src/net/client.js')
    const { port } = new URL(host.url)
    for (const name of [`localhost:${port}`, `127.0.0.1:${port}`, 'code.invalid'])
      expect(await readResponseText(await send(`http://${name}/`, GET))).toBe('hello')
    expect(proxy.asked).toEqual(['http://code.invalid/'])
  })

  it('fails once, in plain words, at a proxy that closes each connection', async () => {
    let asked = 0
    const proxy = createServer((socket) => {
      asked++
      socket.on('error', () => {}).end()
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    vi.resetModules()
    vi.stubEnv('https_proxy', `http://127.0.0.1:${portOf(proxy)}`)
    vi.stubEnv('no_proxy', '')
    const { sendOnce: send } = await import('../../src/net/client.js')
    const error: unknown = await send('https://code.invalid/', GET).catch((reason: unknown) => reason)
    expect(describeWithoutQuote(error)).toBe('connection closed before an answer')
    expect(asked).toBe(1)
    proxy.close()
  })

  it.each([
    ['http', 'a name and a password with a percent sign', 'ada:100%', 'Basic YWRhOjEwMCU='],
    ['http', 'escaped ones', 'ada:p%40ss', 'Basic YWRhOnBAc3M='],
    ['https', 'a name and a password with a percent sign', 'ada:100%', 'Basic YWRhOjEwMCU='],
    ['https', 'escaped ones', 'ada:p%40ss', 'Basic YWRhOnBAc3M='],
  ])('signs in to its proxy for %s with %s', async (scheme, _, credentials, expected) => {
    let sent: unknown
    const proxy = createHttpServer(({ headers }, response) => {
      sent = headers['proxy-authorization']
      response.writeHead(407).end()
    }).on('connect', ({ headers }, socket) => {
      sent = headers['proxy-authorization']
      socket.end('HTTP/1.1 407 Sign in\r\n\r\n')
    })
    await once(proxy.listen(0, '127.0.0.1'), 'listening')
    vi.stubEnv(`${scheme}_proxy`, `http://${credentials}@127.0.0.1:${portOf(proxy)}`)
    vi.stubEnv('no_proxy', '')
    const error: unknown = await sendOnce(`${scheme}://code.invalid/`, GET).catch((reason: unknown) => reason)
    expect([sent, describeWithoutQuote(error)]).toEqual([expected, 'the proxy answers 407'])
    proxy.close()
  })

  it('sends its credentials for a proxy to no other server', async () => {
    await using host = await receiver()
    vi.stubEnv('http_proxy', 'http://ada:secret@proxy.invalid')
    vi.stubEnv('no_proxy', '')
    await sendOnce(host.url, GET)
    expect(JSON.stringify(host.received)).not.toMatch(/proxy-authorization/i)
  })

  it('says that TLS with its proxy failed, and not with the host', async () => {
    const proxy = createServer((socket) => socket.on('error', () => {}).once('data', () => socket.end('no')))
    await once(proxy.listen(0, '127.0.0.1'), 'listening')
    vi.stubEnv('http_proxy', `https://127.0.0.1:${portOf(proxy)}`)
    vi.stubEnv('no_proxy', '')
    const error: unknown = await sendOnce('http://code.invalid/', GET).catch((reason: unknown) => reason)
    expect(describeWithoutQuote(error)).toMatch(/^TLS with the proxy failed: \w/)
    expect(isUnreached(error)).toBe(true)
    proxy.close()
  })

  it('says that an answer is not HTTP', async () => {
    const url = await start((socket) => socket.end('220 mail.example ESMTP\r\n'))
    const error: unknown = await sendOnce(url, { ...GET, method: 'POST', body: '{}' }).catch(
      (reason: unknown) => reason,
    )
    expect(describeWithoutQuote(error)).toMatch(/^the answer is not HTTP/)
  })
})

/** What OpenSSL calls these things, and the ids of threads. */
const OPENSSL = /error:|routines|ssl[23]|sslv3|tlsv1|\.c:|[\dA-F]{8}|EPROTO|ERR_/

describe('the words for a TLS handshake that fails', () => {
  /** Answers the start of a handshake with these bytes; gives the words. */
  const wordsFor = async (bytes: Uint8Array): Promise<string> => {
    const tls = createServer((socket) => socket.on('error', () => {}).once('data', () => socket.end(bytes)))
    await once(tls.listen(0, '127.0.0.1'), 'listening')
    const error: unknown = await sendOnce(`https://127.0.0.1:${portOf(tls)}/`, GET).catch(
      (reason: unknown) => reason,
    )
    tls.close()
    expect([describeWithoutQuote(error), isUnreached(error)]).toEqual([describeConnectionError(error), true])
    return describeConnectionError(error)
  }

  it('are none of OpenSSL, whatever alert the server sends', async () => {
    for (const [level, number] of Array.from({ length: 256 }, (_, n) => [(n % 2) + 1, n] as const)) {
      const words = await wordsFor(new Uint8Array([0x15, 3, 3, 0, 2, level, number]))
      expect([number, words, OPENSSL.exec(words)]).toEqual([
        number,
        expect.stringMatching(/\w{2,} \w+/),
        null,
      ])
    }
  })

  it('are none of OpenSSL, whatever bytes the server sends', async () => {
    const law = asyncProperty(uint8Array({ minLength: 1, maxLength: 300 }), async (bytes) => {
      expect(OPENSSL.exec(await wordsFor(bytes))).toBe(null)
      expect(OPENSSL.exec(await wordsFor(new Uint8Array([0x16, 3, 3, 0, bytes.length, ...bytes])))).toBe(null)
    })
    await assert(law, { numRuns: 100 })
  })
})

describe('the words for a failure', () => {
  it.each([
    ['ECONNREFUSED', 'connection refused'],
    ['CERT_HAS_EXPIRED', 'its certificate has expired'],
    ['SELF_SIGNED_CERT_IN_CHAIN', /NODE_EXTRA_CA_CERTS/],
    ['HPE_INVALID_CONSTANT', /^the answer is not HTTP/],
    ['HPE_HEADER_OVERFLOW', /^the answer has more headers/],
    ['ODD', 'fetch of a secret'],
  ])('%s', (code, words) => {
    const cause = Object.assign(new Error('in the words of OpenSSL'), { code })
    const error = new TypeError('fetch of a secret', { cause })
    expect(describeConnectionError(error)).toMatch(words)
    expect(describeWithoutQuote(error)).not.toMatch(/secret|OpenSSL/)
  })
})

describe('Retry-After', () => {
  const now = Date.parse('2026-11-20T10:00:00Z')
  it.each([
    ['120', undefined, 120_000],
    ['Fri, 20 Nov 2026 10:00:30 GMT', undefined, 30_000],
    ['Fri, 20 Nov 2026 10:00:30 GMT', 'Fri, 20 Nov 2026 10:00:10 GMT', 20_000],
    ['Fri, 20 Nov 2026 09:00:00 GMT', undefined, 0],
    // A timer of more than 24 days ends at once.
    ['9999999999', undefined, 86_400_000],
    ['9'.repeat(400), undefined, 86_400_000],
    ['Fri, 20 Nov 2099 10:00:00 GMT', undefined, 86_400_000],
    ['soon', undefined, undefined],
    ['-5', 'nonsense', undefined],
    ['1.5', undefined, undefined],
    [undefined, 'Fri, 20 Nov 2026 10:00:10 GMT', undefined],
  ])('%j of an answer dated %j', (text, date, ms) => {
    const headers: Record<string, string | undefined> = { 'retry-after': text, date }
    expect(parseRetryAfter((name) => headers[name], now)).toBe(ms)
  })
})
