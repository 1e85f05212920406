import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { refuse } from './refuse.js'
import { errorResponse } from './respond.js'

/**
 * Answers a request by itself, without a Request or a Response, and tells its `id` in `X-Request-Id`; false when it leaves it
 * to the {@link FetchHandler}.
 */
export type DirectHandler = (incoming: IncomingMessage, outgoing: ServerResponse, id: string) => boolean

export type FetchHandler = (request: Request, env: HttpBindings) => Response | Promise<Response>

/** The open connections, each with the response last begun on it. */
export type Connections = Map<Duplex, ServerResponse | undefined>

/** In milliseconds: how long a request's headers may take, and the whole of it. */
interface EdgeLimits {
  readonly headers: number
  readonly request: number
}

interface EdgeOptions {
  readonly log: Log
  readonly limits: EdgeLimits
  readonly connections: Connections
  /** Asked before `fetch`. Default: leaves all to it. */
  readonly direct?: DirectHandler | undefined
}

/**
 * An HTTP/1.1 server that does not listen yet, and where all that Node would answer by itself, or not at all, is
 * answered like everything else. It keeps `connections` up to date.
 */
export function createEdge(
  fetch: FetchHandler,
  { log, limits, connections, direct = () => false }: EdgeOptions,
): Server {
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
    const id = randomUUID()
    connections.set(incoming.socket, outgoing)
    if (!server.listening) outgoing.shouldKeepAlive = false
    if (direct(incoming, outgoing, id)) return
    outgoing.setHeader('X-Request-Id', id)
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
