import { once } from 'node:events'
import type { Server } from 'node:http'
import { isIPv6 } from 'node:net'
import { errorCode } from '../base/errno.js'
import { RelayError } from '../base/errors.js'
import { LIMITS, type Limits } from '../base/seams.js'
import { type Connections, createEdge, type EdgeOptions, type FetchHandler } from './edge.js'

export interface Listener {
  /** Address for clients, e.g. `http://127.0.0.1:8787`. */
  readonly url: string
  readonly port: number
  /** Stops accepting, closes idle connections and lets requests in flight finish; closes the rest after the grace period. */
  close(): Promise<void>
}

/** Time limits in milliseconds; `grace`: how long close() waits for requests in flight. */
const DEFAULTS: Pick<Limits, 'headers' | 'request' | 'idle' | 'grace'> = { ...LIMITS, grace: 10_000 }

export interface ListenOptions extends Omit<EdgeOptions, 'limits' | 'connections'> {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** The option that sets the port, for the error message. Default: `--port`. */
  readonly portFlag?: string
  readonly limits?: Partial<typeof DEFAULTS>
}

/**
 * Serves `fetch` over HTTP/1.1. Every response has an `X-Request-Id`, and every error is `{"error": …}`, including those for
 * requests that the HTTP parser refuses.
 * @throws RelayError `unavailable` when the server cannot listen, usually because the port is in use.
 */
export async function listen(fetch: FetchHandler, options: ListenOptions): Promise<Listener> {
  const limits = { ...DEFAULTS, ...options.limits }
  const connections: Connections = new Map()
  const server = createEdge(fetch, { ...options, limits, connections })
  const port = await start(server, options)
  let closed: Promise<void> | undefined
  return {
    url: `http://${reachableHost(options.host)}:${port}`,
    port,
    close: () => (closed ??= stop(server, connections, limits.grace)),
  }
}

/** Resolves to the port in use. */
async function start(server: Server, options: ListenOptions): Promise<number> {
  const { host, port, log } = options
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (cause) {
    throw new RelayError('unavailable', listenFailure(cause, options), { cause })
  }
  // For example no free file descriptor: it passes, and must not end the process.
  server.on('error', (error) => log.error('accepting a connection failed', error))
  const address = server.address()
  return typeof address === 'object' && address ? address.port : port
}

function listenFailure(cause: unknown, { host, port, portFlag = '--port' }: ListenOptions): string {
  const code = errorCode(cause)
  if (code === 'EADDRINUSE')
    return `Port ${port} is in use. Choose another with ${portFlag}, or 0 for any free port.`
  if (code === 'EACCES') return `Port ${port} needs privileges. Choose one above 1023 with ${portFlag}.`
  return `Cannot listen on ${host}, port ${port} (${code}). Choose another address with --host.`
}

async function stop(server: Server, connections: Connections, grace: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  for (const [socket, outgoing] of connections) {
    // To Node a connection that never sent a request is not idle.
    if (outgoing) outgoing.shouldKeepAlive = false
    else socket.destroy()
  }
  const cut = setTimeout(() => server.closeAllConnections(), grace)
  await closed
  clearTimeout(cut)
}

/** A client cannot call a wildcard address, which includes the loopback address. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return isIPv6(host) ? `[${host}]` : host
}
