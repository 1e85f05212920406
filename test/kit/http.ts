import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'

/** One answer as it came over the wire: header names lower-case, repeated ones joined by a comma. */
export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A raw connection, for what an HTTP client would never send. */
export type Connection = Awaited<ReturnType<typeof connect>>

export async function connect(port: number, host = '127.0.0.1') {
  const socket = connectTcp(port, host)
  // A server that closes while the client writes resets the connection: `close` follows, and tells all that is asked.
  socket.on('error', () => {})
  let received = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => (received = Buffer.concat([received, chunk])))
  await once(socket, 'connect')
  return {
    socket,
    /** Sends text as latin1, bytes as they are. */
    send: (bytes: string | Uint8Array) =>
      void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    /**
     * The next whole answer, interim ones (100 Continue) included. Rejects when the server closes before its end.
     * `head`: the answer to a HEAD request, which has no body whatever its headers say.
     */
    async answer({ head = false } = {}): Promise<RawAnswer> {
      for (;;) {
        const found = parse(received, head)
        if (found) {
          received = received.subarray(found.length)
          return found.answer
        }
        if (socket.closed)
          throw new Error(`connection closed after ${JSON.stringify(received.toString('latin1'))}`)
        await new Promise((resolve) => socket.once('data', resolve).once('close', resolve))
      }
    },
    /** Resolves when the connection is closed by the server, with what it sent since the last answer. */
    async closed(): Promise<string> {
      // Not once(), which rejects at an error before.
      if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve))
      return received.toString('latin1')
    },
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

/** Sends `bytes` on a connection of its own and gives the first answer. */
export async function exchange(port: number, bytes: string | Uint8Array): Promise<RawAnswer> {
  using connection = await connect(port)
  connection.send(bytes)
  return await connection.answer({ head: bytes.toString().startsWith('HEAD ') })
}

/** Sends text and ends the client's side at once, as `nc -N` does; all that the server sends until it closes too. */
export async function halfClosed(port: number, text: string): Promise<string> {
  const socket = connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true })
  let received = ''
  socket.setEncoding('latin1').on('data', (more: string) => (received += more))
  socket.end(Buffer.from(text, 'latin1'))
  await once(socket, 'close')
  return received
}

/** A request as text, with `Host: localhost` and the body's length unless `headers` say otherwise (`null`: left out). */
export function requestText(
  method: string,
  path: string,
  headers: Readonly<Record<string, string | null>> = {},
  body = '',
): string {
  const length = body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body, 'latin1')) }
  const all = Object.entries<string | null>({ Host: 'localhost', ...length, ...headers })
  const lines = all.flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]))
  return [`${method} ${path} HTTP/1.1`, ...lines, '', body].join('\r\n')
}

/** A request that is not HTTP, or not enough of it, and the error it is answered with. */
export interface BrokenRequest {
  readonly name: string
  readonly request: string
  readonly status: number
  readonly error: string
}

/** What the HTTP parser refuses, sent to a path that takes a POST. */
export function refusedByParser(path: string): BrokenRequest[] {
  const get = `GET ${path} HTTP/1.1\r\nHost: localhost\r\n`
  const post = (headers: Record<string, string>, body = ''): string =>
    requestText('POST', path, headers, body)
  const bad = {
    'a header line without a colon': `${get}broken line\r\n\r\n`,
    'a header name with a space': `${get}a b: c\r\n\r\n`,
    'no HTTP at all': 'hello there\r\n\r\n',
    'an unknown version': `GET ${path} HTTP/9.9\r\nHost: localhost\r\n\r\n`,
    'a length that is no number': post({ 'Content-Length': 'x' }),
    'two different lengths': `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    'a length and a transfer encoding': post(
      { 'Transfer-Encoding': 'chunked', 'Content-Length': '3' },
      '0\r\n\r\n',
    ),
    'a chunk size that is no number': `${post({ 'Transfer-Encoding': 'chunked' })}zz\r\nab\r\n0\r\n\r\n`,
    CONNECT: 'CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n',
  }
  const long = {
    'a header block over 16 KiB': post({ 'X-Long': 'a'.repeat(16_384) }),
    'a header block of 4 MiB': post({ 'X-Long': 'a'.repeat(4_194_304) }),
  }
  return [...all(bad, 400, 'Bad request'), ...all(long, 431, 'Request header fields too large')]
}

/** What the parser lets through, and the Host check does not. */
export function refusedForHost(path: string): BrokenRequest[] {
  const of = (host: string | null): string => requestText('POST', path, { Host: host })
  const bad = {
    'no Host': of(null),
    'no Host, HTTP/1.0': `POST ${path} HTTP/1.0\r\n\r\n`,
    'an empty Host': of(''),
    'Host twice': `POST ${path} HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n`,
    'Host twice, one foreign': `POST ${path} HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n`,
    'a Host that is none': of('user@localhost'),
  }
  const foreign = {
    'a foreign Host': of('evil.example'),
    'an absolute address, foreign Host': requestText('POST', `http://localhost${path}`, {
      Host: 'evil.example',
    }),
  }
  return [...all(bad, 400, 'Bad request'), ...all(foreign, 403, 'Forbidden host')]
}

/** What ends in the middle, and is then silent for too long. */
export function silent(path: string): BrokenRequest[] {
  const halves = {
    'half a header block': `POST ${path} HTTP/1.1\r\nHost: loc`,
    'half a body': requestText('POST', path, { 'Content-Length': '10' }, 'half'),
    'half a chunk': `${requestText('POST', path, { 'Transfer-Encoding': 'chunked' })}a\r\nhalf`,
  }
  return all(halves, 408, 'Request timeout')
}

function parse(bytes: Buffer, head: boolean): { answer: RawAnswer; length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  const length = end + 4 + (head ? 0 : Number(headers['content-length'] ?? 0))
  if (bytes.length < length) return undefined
  return {
    answer: { status: Number(first.split(' ')[1]), headers, body: bytes.toString('utf8', end + 4, length) },
    length,
  }
}

function all(requests: Record<string, string>, status: number, error: string): BrokenRequest[] {
  return Object.entries(requests).map(([name, request]) => ({ name, request, status, error }))
}
