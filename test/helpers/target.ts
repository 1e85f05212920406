import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Header } from '../../src/http/headers.js'
import { closedPort } from './scripted-server.js'

/** A delivery as it reached the target. */
export interface Handed {
  readonly path: string
  /** As they were written: order, spelling, repetitions. */
  readonly headers: readonly Header[]
  readonly body: Buffer
  /** When it was read whole, by `performance.now()`. */
  readonly at: number
}

export interface Reply {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array
  /** Nothing more comes after the body, which has no end. */
  readonly stalls?: boolean
}

/** A status, more than that, or: never answer; cut the connection. */
export type Answer = number | Reply | 'hang' | 'reset'

/** An HTTP server on 127.0.0.1 that keeps exactly what it was sent. */
export interface TargetServer extends AsyncDisposable {
  readonly url: string
  readonly received: readonly Handed[]
  /** How many connections were made to it. */
  readonly connections: number
  /** What it answers next, in turn; when nothing is left, 200. */
  answers(...next: Answer[]): void
  /** Once it has received this many in all. */
  has(count: number): Promise<void>
  /** Nothing listens on its port until `up`. */
  down(): Promise<void>
  up(): Promise<void>
}

export async function startTarget(answer: (handed: Handed) => Answer = () => 200): Promise<TargetServer> {
  const received: Handed[] = []
  const script: Answer[] = []
  const waiting = new Set<() => void>()
  let connections = 0
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const handed = await take(incoming)
    received.push(handed)
    for (const look of waiting) look()
    reply(incoming, outgoing, script.shift() ?? answer(handed))
  }
  const server = createServer((incoming, outgoing) => {
    void serve(incoming, outgoing)
  }).on('connection', () => connections++)
  const down = async (): Promise<void> => {
    if (!server.listening) return
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  // One that nobody else gets while it is down.
  const port = await closedPort()
  const up = async (): Promise<void> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await up()
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    get connections() {
      return connections
    },
    answers: (...next) => void script.push(...next),
    async has(count) {
      await new Promise<void>((resolve) => {
        const look = (): void => {
          if (received.length < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      })
    },
    down,
    up,
    [Symbol.asyncDispose]: down,
  }
}

async function take(incoming: IncomingMessage): Promise<Handed> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of incoming) chunks.push(chunk)
  } catch {
    // Cut off: what has come is what there is.
  }
  const { url = '', rawHeaders } = incoming
  const headers = rawHeaders.flatMap((name, i): Header[] =>
    i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? '']] : [],
  )
  return { path: url, headers, body: Buffer.concat(chunks), at: performance.now() }
}

function reply(incoming: IncomingMessage, outgoing: ServerResponse, answer: Answer): void {
  if (answer === 'hang') return
  if (answer === 'reset') return void incoming.socket.resetAndDestroy()
  const {
    status,
    headers = {},
    body = '',
    stalls,
  }: Reply = typeof answer === 'number' ? { status: answer } : answer
  outgoing.on('error', () => {}).writeHead(status, headers)
  if (stalls) outgoing.write(body)
  else outgoing.end(body)
}
