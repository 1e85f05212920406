import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { createLogThrottle } from '../base/log-throttle.js'
import { BodyBudget, MIN_BODY_BUDGET, setBodyBudget } from './body-budget.js'
import { maxConnections as defaultMaxConnections } from './max-connections.js'
import { refuse } from './refuse.js'
import { errorResponse } from './respond.js'

export type FetchHandler = (request: Request, env: HttpBindings) => Response | Promise<Response>

/** The open connections, each with the response last started on it. */
export type Connections = Map<Duplex, ServerResponse | undefined>

/** In milliseconds: time limits for a request's headers, for the whole request, and for a connection without a byte. */
interface EdgeLimits {
  readonly headers: number
  readonly request: number
  readonly idle: number
}

/** 16: no client of relay sends more requests ahead of their responses. */
const MAX_UNANSWERED = 16

export interface EdgeOptions {
  readonly log: Log
  readonly limits: EdgeLimits
  readonly connections: Connections
  /** Limit in bytes for all bodies being read at the same time. Default: 64 MiB. */
  readonly bodyBudget?: number | undefined
  /** Limit for open connections; more are closed at once. Default: by the limit of file descriptors. */
  readonly maxConnections?: number | undefined
}

/**
 * An HTTP/1.1 server that does not listen yet. Requests that Node would answer in its own form, or not at all, get the same
 * form of error as all others. The server keeps `connections` up to date.
 */
export function createEdge(fetch: FetchHandler, options: EdgeOptions): Server {
  const { log, limits, connections } = options
  const server = createServer({
    // Otherwise Node answers an HTTP/1.1 request without Host itself, with an empty body.
    requireHostHeader: false,
    headersTimeout: limits.headers,
    requestTimeout: limits.request,
    // Otherwise Node checks the limits above only every 30 s.
    connectionsCheckingInterval: Math.min(1_000, limits.headers),
  })
  // A client may end its side after the request (`nc -N`): Node would close the connection and lose the answer. The property
  // is not documented, only read in Node's `lib/_http_server.js`.
  Object.assign(server, { httpAllowHalfOpen: true })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the other bindings are those of HTTP/2, which this server does not speak
  const listener = getRequestListener((request, env) => fetch(request, env as HttpBindings), {
    overrideGlobalObjects: false,
    errorHandler: (error) => errorResponse(asRelayError(error), log),
  })
  server.timeout = limits.idle
  const unanswered = new WeakMap<Duplex, number>()
  const respond = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { socket } = incoming
    const ahead = (unanswered.get(socket) ?? 0) + 1
    // A client that sends on without reading would fill the memory with requests and responses.
    if (socket.destroyed || ahead > MAX_UNANSWERED) return void socket.destroy()
    unanswered.set(socket, ahead)
    outgoing.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1))
    connections.set(socket, outgoing)
    if (!server.listening) outgoing.shouldKeepAlive = false
    outgoing.setHeader('X-Request-Id', randomUUID())
    listener(incoming, outgoing).catch((error: unknown) => {
      log.error('a request could not be answered: its connection was closed', error)
      incoming.socket.destroy()
    })
  }
  const bodies = new BodyBudget(options.bodyBudget ?? MIN_BODY_BUDGET)
  server.on('connection', (socket) => {
    connections.set(socket, undefined)
    socket.once('close', () => connections.delete(socket))
    // Node removes its own listener at CONNECT and upgrade, and an error without a listener ends the process. The failed
    // socket closes by itself.
    socket.on('error', () => {})
    setBodyBudget(socket, bodies)
  })
  server.on('request', respond)
  server.on('checkExpectation', respond)
  server.on('checkContinue', (incoming, outgoing) => {
    // Sent only when a handler reads the body: of a request refused earlier, the client never sends it.
    incoming.once('resume', () => void (outgoing.headersSent || outgoing.writeContinue()))
    respond(incoming, outgoing)
  })
  server.on('clientError', (error, socket) => refuse(error, socket, connections.get(socket)))
  // The bytes that a client sends after CONNECT are discarded: left unread, they would reset the connection.
  server.on('connect', ({ socket }) => refuse(new Error('CONNECT'), socket.resume(), connections.get(socket)))
  boundConnections(server, options.maxConnections ?? defaultMaxConnections(), log)
  return server
}

/** Logs the refused connections, so that a user whose own programs need more knows the limit. */
function boundConnections(server: Server, limit: number, log: Log): void {
  const throttled = createLogThrottle(log)
  const line = `a new connection was closed at once: ${limit} are open, the limit (a higher ulimit -n may raise it)`
  server.maxConnections = limit
  server.on('drop', () => throttled(line, () => log.warn(line)))
}

/** Turns @hono/node-server's own refusals (no Host, an invalid address) into `bad_request`. */
function asRelayError(error: unknown): unknown {
  return error instanceof RequestError
    ? new RelayError('bad_request', 'Bad request', { cause: error })
    : error
}
