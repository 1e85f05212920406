import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Server } from 'node:net'

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface Reply {
  readonly status?: number
  readonly headers?: Record<string, string>
  /** An object is sent as JSON. */
  readonly body?: string | object
  /** After the body, which then should be less than announced, nothing more comes. */
  readonly stalls?: boolean
}

/** `reset` ends the connection after the request was read; `silence` never answers. */
export type Answer = Reply | 'reset' | 'silence'

export interface ScriptedServer extends AsyncDisposable {
  readonly url: string
  /** Every request that reached the server, in order. */
  readonly received: readonly Received[]
  /** How many connections were made to it. */
  readonly connections: number
}

/** An HTTP server on 127.0.0.1 that answers each request, once read whole, as `answer` says. */
export async function scriptedServer(
  answer: (request: Received) => Answer,
  port = 0,
): Promise<ScriptedServer> {
  const received: Received[] = []
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const request = await read(incoming)
    received.push(request)
    reply(incoming, outgoing, answer(request))
  }
  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing))
  let connections = 0
  server.on('connection', () => connections++)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    received,
    get connections() {
      return connections
    },
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** The port of a server that listens. */
export function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it does not listen on a port')
  return address.port
}

/** Below the ports that Linux and macOS give out by themselves, which another program could be given meanwhile. */
const PORTS = { from: 12_000, perWorker: 2000, workers: 10 }
let portsTaken = randomInt(PORTS.perWorker)

/** A port of 127.0.0.1 on which nothing listens, and nothing will unless it is told this number. */
export async function closedPort(): Promise<number> {
  const worker = Number(process.env['VITEST_POOL_ID'] ?? 0) % PORTS.workers
  for (;;) {
    const port = PORTS.from + worker * PORTS.perWorker + (portsTaken++ % PORTS.perWorker)
    if (await isClosed(port)) return port
  }
}

async function isClosed(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}

async function read(incoming: IncomingMessage): Promise<Received> {
  let body = ''
  incoming.setEncoding('utf8')
  for await (const chunk of incoming) body += String(chunk)
  const { method = '', url = '', headers } = incoming
  return { method, path: url, headers, body }
}

function reply(incoming: IncomingMessage, outgoing: ServerResponse, answer: Answer): void {
  if (answer === 'silence') return
  if (answer === 'reset') return void incoming.socket.resetAndDestroy()
  const { status = 200, headers = {}, body = '', stalls = false } = answer
  const json = typeof body === 'object'
  outgoing.writeHead(status, { ...(json && { 'content-type': 'application/json' }), ...headers })
  outgoing.write(json ? JSON.stringify(body) : body)
  if (!stalls) outgoing.end()
}
