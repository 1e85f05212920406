import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'

/** One answer as it came over the wire: header names lower-case, repeated ones joined by a comma. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A raw connection, for what an HTTP client would never send. */
export interface Connection {
  readonly socket: Socket
  /** Sends text as latin1, bytes as they are. */
  send(bytes: string | Uint8Array): void
  /**
   * The next whole answer, interim ones (100 Continue) included. Rejects when the server closes before its end.
   * `head`: the answer to a HEAD request, which has no body whatever its headers say.
   */
  answer(options?: { head?: boolean }): Promise<Answer>
  /** Resolves when the connection is closed by the server, with what it sent since the last answer. */
  closed(): Promise<string>
}

export async function connect(port: number, host = '127.0.0.1'): Promise<Connection> {
  const socket = connectTcp(port, host)
  // A server that closes while the client writes resets the connection: `close` follows, and tells all that is asked.
  socket.on('error', () => {})
  let received = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => (received = Buffer.concat([received, chunk])))
  await once(socket, 'connect')
  return {
    socket,
    send: (bytes) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    async answer({ head = false } = {}) {
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
    async closed() {
      if (!socket.closed) await once(socket, 'close')
      return received.toString('latin1')
    },
  }
}

/** Sends `bytes` on a connection of its own and gives the first answer. */
export async function exchange(port: number, bytes: string | Uint8Array): Promise<Answer> {
  const connection = await connect(port)
  connection.send(bytes)
  const answer = await connection.answer({ head: bytes.toString().startsWith('HEAD ') })
  connection.socket.destroy()
  return answer
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

function parse(bytes: Buffer, head: boolean): { answer: Answer; length: number } | undefined {
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
