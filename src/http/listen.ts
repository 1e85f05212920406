import { once } from 'node:events'
import type { Server } from 'node:http'
import { isIPv6 } from 'node:net'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { type Connections, createEdge, type DirectHandler, type FetchHandler } from './edge.js'

export interface Listener {
  /** Where the service can be called, e.g. `http://127.0.0.1:8787`. */
  readonly url: string
  readonly port: number
  /** Stops accepting, lets requests in flight finish and idle connections go; after the grace period cuts the rest. */
  close(): Promise<void>
}

/** In milliseconds. */
const LIMITS = {
  /** A request's headers must be complete; slower is an attack or a broken link. */
  headers: 10_000,
  /** The whole request: 25 MiB at 7 Mbit/s. */
  request: 30_000,
  /** How long close() waits for requests in flight. */
  grace: 10_000,
}

export interface ListenOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  readonly log: Log
  /** The flag that sets the port, for the message that it is in use. Default: `--port`. */
  readonly portFlag?: string
  readonly limits?: Partial<typeof LIMITS>
  /** Asked before `fetch`. Default: leaves all to it. */
  readonly direct?: DirectHandler
}

/**
 * Serves `fetch` over HTTP/1.1. Every response carries `X-Request-Id`, also those to what the HTTP parser refuses,
 * which are `{"error": …}` like all others.
 * @throws RelayError `unavailable` when the address cannot be listened on, the port being in use above all.
 */
export async function listen(fetch: FetchHandler, options: ListenOptions): Promise<Listener> {
  const { log, direct } = options
  const limits = { ...LIMITS, ...options.limits }
  const connections: Connections = new Map()
  const server = createEdge(fetch, { log, limits, connections, direct })
  const port = await start(server, options)
  let closed: Promise<void> | undefined
  return {
    url: `http://${callable(options.host)}:${port}`,
    port,
    close: () => (closed ??= stop(server, connections, limits.grace)),
  }
}

/** Resolves to the port. */
async function start(server: Server, options: ListenOptions): Promise<number> {
  const { host, port, log } = options
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (cause) {
    throw new RelayError('unavailable', whyNot(cause, options), { cause })
  }
  // Running out of file descriptors, for one: it passes, and must not end the process.
  server.on('error', (error) => log.error('accepting a connection failed', error))
  const address = server.address()
  return typeof address === 'object' && address ? address.port : port
}

function whyNot(cause: unknown, { host, port, portFlag = '--port' }: ListenOptions): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  if (code === 'EADDRINUSE')
    return `port ${port} is in use: choose another with ${portFlag}, or 0 for any free one`
  if (code === 'EACCES') return `port ${port} may not be used: choose one above 1023 with ${portFlag}`
  return `cannot listen on ${host}, port ${port}: choose another address with --host (${String(code)})`
}

async function stop(server: Server, connections: Connections, grace: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  for (const [socket, outgoing] of connections) {
    // One that never sent a request is not idle to Node.
    if (outgoing) outgoing.shouldKeepAlive = false
    else socket.destroy()
  }
  const cut = setTimeout(() => server.closeAllConnections(), grace)
  await closed
  clearTimeout(cut)
}

/** All addresses at once cannot be called; the loopback one is among them. */
function callable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return isIPv6(host) ? `[${host}]` : host
}
