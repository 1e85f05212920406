import { randomInt } from 'node:crypto'
import { once } from 'node:events'
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
