import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, Server as HttpServer } from 'node:http'
import { createServer, type Server } from 'node:net'

/** Below the ports that Linux and macOS give out by themselves, which another program could be given meanwhile. */
const PORTS = { from: 12_000, perWorker: 2000, workers: 10 }
let taken = randomInt(PORTS.perWorker)

/** A port of 127.0.0.1 on which nothing listens, and nothing will unless it is told this number. */
export async function closedPort(): Promise<number> {
  const worker = Number(process.env['VITEST_POOL_ID'] ?? 0) % PORTS.workers
  for (;;) {
    const port = PORTS.from + worker * PORTS.perWorker + (taken++ % PORTS.perWorker)
    if (await isClosed(port)) return port
  }
}

/** The port of a server that listens. */
export function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it does not listen on a port')
  return address.port
}

/** Where a server of node:http listens, which can go down and come up again. */
export interface Listening {
  readonly port: number
  /** Nothing listens on its port until `up`; open connections are cut. */
  readonly down: () => Promise<void>
  readonly up: () => Promise<void>
}

/** Has a server listen on 127.0.0.1, by default on a port that nobody else gets while it is down. */
export async function listening(server: HttpServer, port?: number): Promise<Listening> {
  const chosen = port ?? (await closedPort())
  const up = async (): Promise<void> => {
    server.listen(chosen, '127.0.0.1')
    await once(server, 'listening')
  }
  const down = async (): Promise<void> => {
    if (!server.listening) return
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  await up()
  return { port: chosen, up, down }
}

/** The body of a request; of one that is cut off, what has come. */
export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk)
  } catch {
    // Cut off.
  }
  return Buffer.concat(chunks)
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
