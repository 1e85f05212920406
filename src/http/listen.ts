import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIPv6 } from 'node:net'
import type { Duplex } from 'node:stream'
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { refuse } from './refuse.js'
import { errorResponse } from './respond.js'

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
  readonly limits?: Partial<typeof LIMITS>
}

/** The open connections, each with the response last begun on it. */
type Connections = Map<Duplex, ServerResponse | undefined>

export type FetchHandler = (request: Request, env: HttpBindings) => Response | Promise<Response>

/**
 * Serves `fetch` over HTTP/1.1. Every response carries `X-Request-Id`, also those to what the HTTP parser refuses,
 * which are `{"error": …}` like all others.
 * @throws RelayError `unavailable` when the address cannot be listened on, the port being in use above all.
 */
export async function listen(fetch: FetchHandler, options: ListenOptions): Promise<Listener> {
  const limits = { ...LIMITS, ...options.limits }
  const connections: Connections = new Map()
  const server = createEdge(fetch, options.log, limits, connections)
  const port = await start(server, options)
  let closed: Promise<void> | undefined
  return {
    url: `http://${callable(options.host)}:${port}`,
    port,
    close: () => (closed ??= stop(server, connections, limits.grace)),
  }
}

function createEdge(fetch: FetchHandler, log: Log, limits: typeof LIMITS, connections: Connections): Server {
  const server = createServer({
    // An HTTP/1.1 request without Host would otherwise be answered by Node, with an empty body.
    requireHostHeader: false,
    headersTimeout: limits.headers,
    requestTimeout: limits.request,
    // Node looks every 30 s otherwise, and the limits above are as late.
    connectionsCheckingInterval: Math.min(1_000, limits.headers),
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the other bindings are HTTP/2's, which this never speaks
  const listener = getRequestListener((request, env) => fetch(request, env as HttpBindings), {
    overrideGlobalObjects: false,
    errorHandler: (error) => errorResponse(explain(error), log),
  })
  const respond = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    outgoing.setHeader('X-Request-Id', randomUUID())
    connections.set(incoming.socket, outgoing)
    if (!server.listening) outgoing.shouldKeepAlive = false
    void listener(incoming, outgoing)
  }
  server.on('connection', (socket) => {
    connections.set(socket, undefined)
    socket.once('close', () => connections.delete(socket))
  })
  server.on('request', respond)
  server.on('checkExpectation', respond)
  server.on('checkContinue', (incoming, outgoing) => {
    // Sent when somebody wants the body: one that is refused unread is then never sent.
    incoming.once('resume', () => void (outgoing.headersSent || outgoing.writeContinue()))
    respond(incoming, outgoing)
  })
  server.on('clientError', (error, socket) => refuse(error, socket, connections.get(socket)))
  server.on('connect', ({ socket }) => refuse(new Error('CONNECT'), socket, connections.get(socket)))
  return server
}

/** @hono/node-server's own refusals: no Host, or an address that is none. */
function explain(error: unknown): unknown {
  return error instanceof RequestError
    ? new RelayError('bad_request', 'Bad request', { cause: error })
    : error
}

/** Resolves to the port. */
async function start(server: Server, { host, port, log }: ListenOptions): Promise<number> {
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (cause) {
    throw new RelayError('unavailable', whyNot(cause, host, port), { cause })
  }
  // Running out of file descriptors, for one: it passes, and must not end the process.
  server.on('error', (error) => log.error('accepting a connection failed', error))
  const address = server.address()
  return typeof address === 'object' && address ? address.port : port
}

function whyNot(cause: unknown, host: string, port: number): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  if (code === 'EADDRINUSE')
    return `port ${port} is in use: choose another with --port, or 0 for any free one`
  if (code === 'EACCES') return `port ${port} may not be used: choose one above 1023 with --port`
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
