import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import { hostInUrl } from '../base/address.js'
import { errorCode, RelayError } from '../base/errors.js'
import { type Log, createLogThrottle } from '../base/log.js'
import { PortInUseError } from './port-in-use.js'
import { TIME_LIMITS, type Limits } from '../base/seams.js'
import { BodyMemory, closeGently, type HttpEnv } from './body.js'
import { errorBody, errorResponse } from './router.js'

/** Answers a request; the `fetch` of an application. */
export type FetchHandler = (request: Request, env: HttpEnv['Bindings']) => Response | Promise<Response>

export interface Listener {
  /** Address for clients, e.g. `http://127.0.0.1:8787`. */
  readonly url: string
  readonly port: number
  /** Uses other certificates for new connections. Only with TLS. @throws RelayError `settings`, with no change */
  useCertificate(certificate: Certificate): void
  /**
   * Stops accepting, closes idle connections and lets requests in flight finish. Closes the rest after the grace
   * period.
   */
  close(): Promise<void>
}

/** A certificate with its chain, and its key, in PEM. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

export interface ListenOptions {
  readonly host: string
  /** 0 chooses any free port. */
  readonly port: number
  readonly log: Log
  /**
   * Largest body that a handler reads, in bytes. All bodies together may have four times as much, and at least 64 MiB.
   */
  readonly maxBody?: number
  /** Serves HTTPS with this certificate. Default: HTTP. */
  readonly certificate?: Certificate | undefined
  /** True: neither it nor its connections keep the process alive. Default: false. */
  readonly background?: boolean | undefined
  /** Option that sets the port, for the error message. Default: `--port`. */
  readonly portFlag?: string
  /**
   * Limits in milliseconds. `grace` is how long close() waits for requests in flight, by default 10 s. `keepAlive` is
   * how long an idle connection stays open, by default {@link KEEP_ALIVE_MS}.
   */
  readonly limits?: Partial<Pick<Limits, 'headers' | 'request' | 'idle' | 'grace'> & { keepAlive: number }>
}

/**
 * Longer than any reverse proxy keeps an idle connection. The proxy must close first, since a POST that is sent while
 * the server closes is reset and lost. nginx and AWS have 60 s, Go, Traefik and cloudflared 90 s, Caddy 120 s, Node's
 * fetch and Google's load balancers 600 s; Google asks a server for 620 s (cloud.google.com/load-balancing/docs/https,
 * "Timeouts and retries"). When connections become scarce, those that have been idle longest are closed first.
 */
const KEEP_ALIVE_MS = 620_000

type Connections = Map<Duplex, Connection>
/** An open connection. */
interface Connection {
  /** Time of the last progress, by `performance.now()`: its client did something. Half a header block does not count. */
  progress: number
  latest?: ServerResponse
  /** Responses that are not sent yet, in the order of their requests. relay works on the first. */
  readonly unanswered: Set<ServerResponse>
}

/** 16: no client of relay sends more requests ahead of their responses. */
const MAX_UNANSWERED = 16

/**
 * Serves `fetch` over HTTP/1.1. Every response has an `X-Request-Id`, and every error is `{"error": …}`, including
 * those for requests that the HTTP parser refuses.
 * @throws RelayError `unavailable` when the server cannot listen, usually because the port is in use
 */
export async function listen(fetch: FetchHandler, options: ListenOptions): Promise<Listener> {
  const { host, log } = options
  const limits = { ...TIME_LIMITS, grace: 10_000, keepAlive: KEEP_ALIVE_MS, ...options.limits }
  const connections: Connections = new Map()
  const serverOptions = {
    // Otherwise Node itself answers an HTTP/1.1 request without Host, with an empty body.
    requireHostHeader: false,
    headersTimeout: limits.headers,
    requestTimeout: limits.request,
    keepAliveTimeout: limits.keepAlive,
    // Otherwise Node checks the limits above only every 30 s.
    connectionsCheckingInterval: Math.min(1_000, limits.headers),
  }
  const { certificate } = options
  const tls = certificate && createTlsServer(certificate, serverOptions, limits.headers)
  const server = tls ?? createServer(serverOptions)
  // A client may end its side after the request (`nc -N`). Node would then close the connection and lose the response.
  // The property is undocumented (lib/_http_server.js).
  Object.assign(server, { httpAllowHalfOpen: true })
  server.timeout = limits.idle
  if (options.background === true) server.unref().on('connection', (socket: Socket) => socket.unref())
  server.on(tls ? 'secureConnection' : 'connection', limitConnections(connections, log))
  server.on('clientError', (error, socket) => refuse(error, socket, connections.get(socket)?.latest))
  // Bytes that a client sends after CONNECT are discarded: unread, they would reset the connection.
  server.on('connect', ({ socket }) =>
    refuse(new Error('CONNECT'), socket.resume(), connections.get(socket)?.latest),
  )

  answerRequests(server, fetch, connections, options)
  try {
    server.listen(options.port, host)
    await once(server, 'listening')
  } catch (cause) {
    const code = errorCode(cause)
    if (code === 'EADDRINUSE') throw new PortInUseError(options, 'in use', { cause })
    throw new RelayError('unavailable', whyNot(code, options), { cause })
  }
  // A failed accept, for example without a free file descriptor, passes and must not end the process.
  server.on('error', (error) => log.error('accepting a connection failed', error))
  let closed: Promise<void> | undefined
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : options.port
  return {
    url: `${tls ? 'https' : 'http'}://${reachableHost(host)}:${port}`,
    port,
    useCertificate: (next) => checkCertificate(() => tls?.setSecureContext({ ...next })),
    close: () => (closed ??= stop(server, connections, limits.grace)),
  }
}

/** Makes the listener of new connections, which closes one beyond the limit. */
function limitConnections(connections: Connections, log: Log): (socket: Duplex) => void {
  const most = maxConnections()
  const throttled = createLogThrottle(log)
  return (socket) => {
    connections.set(socket, { progress: performance.now(), unanswered: new Set() })
    // Each body adds a listener, and Node adds some.
    socket.setMaxListeners(2 * MAX_UNANSWERED)
    socket.once('close', () => connections.delete(socket))
    // Node removes its own listener at CONNECT and upgrade, and an error without a listener ends the process. The
    // failed socket closes by itself.
    socket.on('error', () => {})
    if (connections.size <= most) return
    const which =
      closeOne(connections, socket) === socket ? 'a new connection' : 'the connection that waited longest'
    // Tells a user whose own programs need more connections about the limit.
    const closed = `${which} was closed at once: ${most} are open, the limit (a higher ulimit -n may raise it)`
    throttled(closed, () => log.warn(closed))
  }
}

/** Loaded only for TLS. @throws RelayError `settings` for a certificate that cannot be used */
function createTlsServer(certificate: Certificate, options: object, handshake: number): TlsServer {
  const { createServer: create } = process.getBuiltinModule('node:https')
  return checkCertificate(() => create({ ...options, ...certificate, handshakeTimeout: handshake }))
}

/** @throws RelayError `settings` for a certificate that OpenSSL refuses */
function checkCertificate<Result>(use: () => Result): Result {
  try {
    return use()
  } catch (cause) {
    const why = errorCode(cause) ?? 'they are no PEM files'
    throw new RelayError('settings', `The certificate or its key cannot be used: ${why}`, { cause })
  }
}

async function stop(server: Server, connections: Connections, grace: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  for (const [socket, { latest }] of connections) {
    // Node does not count a connection that never sent a request as idle.
    if (latest) latest.shouldKeepAlive = false
    else socket.destroy()
  }
  const cut = setTimeout(() => server.closeAllConnections(), grace)
  await closed
  clearTimeout(cut)
}

/**
 * Closes one connection to make room, and returns it. First choice is the one that has waited for its client longest.
 * If relay works on all, it is the oldest that carries no delivery: anybody can make a sign-in slow, and closing one
 * loses nothing. Otherwise it is `newest`.
 */
function closeOne(connections: Connections, newest: Duplex): Duplex {
  const others = [...connections]
    .filter(([socket]) => socket !== newest)
    .toSorted(([, one], [, other]) => one.progress - other.progress)
  const [closed] = others.find(isWaiting) ?? others.find((one) => !delivers(one)) ?? [newest]
  connections.delete(closed)
  return closed.destroy()
}

/** True if relay is working on a request that may be a delivery, whatever is pipelined behind it. */
function delivers([, { unanswered }]: readonly [Duplex, Connection]): boolean {
  const [first] = unanswered
  return first?.req.method === 'POST'
}

/** True if the connection is idle, its request is incomplete, or its client does not read the response. */
function isWaiting([socket, { latest, unanswered }]: readonly [Duplex, Connection]): boolean {
  return unanswered.size === 0 || latest?.req.complete !== true || socket.writableLength > 0
}

/** Explains why the server cannot listen, and what to do. */
function whyNot(code: string | undefined, { host, port, portFlag = '--port' }: ListenOptions): string {
  if (code === 'EACCES') return `Port ${port} needs privileges. Choose one above 1023 with ${portFlag}.`
  return `Cannot listen on ${host}, port ${port} (${code}). Choose another address with --host.`
}

function answerRequests(
  server: Server,
  fetch: FetchHandler,
  connections: Connections,
  { log, maxBody = 0 }: ListenOptions,
): void {
  const bodies = new BodyMemory(maxBody)
  const answer = (request: Request, env: object): Response | Promise<Response> => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the other bindings are those of HTTP/2, which this server does not speak
    const bindings = env as HttpBindings
    const connection = connections.get(bindings.incoming.socket)
    const onProgress = (): void => {
      if (connection) connection.progress = performance.now()
    }
    const waiting: (() => void)[] = []
    const onAnswer = (run: () => void): void => void waiting.push(run)
    const response = fetch(request, { ...bindings, bodies, onProgress, onAnswer })
    void runAfter(response, waiting)
    return response
  }
  const listener = getRequestListener(answer, {
    // The adapter would otherwise replace Request and Response of the whole process.
    overrideGlobalObjects: false,
    errorHandler(error) {
      const isRefused = error instanceof RequestError
      return errorResponse(isRefused ? new RelayError('bad_request', 'Bad request') : error, log)
    },
  })
  const respond = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { socket } = incoming
    const connection = connections.get(socket)
    // A client that sends requests without reading responses would fill the memory.
    if (!connection || connection.unanswered.size >= MAX_UNANSWERED) return void socket.destroy()
    connection.latest = outgoing
    connection.unanswered.add(outgoing)
    connection.progress = performance.now()
    outgoing.once('close', () => {
      connection.unanswered.delete(outgoing)
      connection.progress = performance.now()
    })
    if (!server.listening) outgoing.shouldKeepAlive = false
    outgoing.setHeader('X-Request-Id', randomUUID())
    listener(incoming, outgoing).catch((error: unknown) => {
      log.error('a request could not be answered: its connection was closed', error)
      socket.destroy()
    })
  }
  server.on('request', respond)
  // Otherwise Node itself answers an unknown expectation, with an empty 417.
  server.on('checkExpectation', respond)
  server.on('checkContinue', (incoming, outgoing) => {
    // `100 Continue` is sent only when a handler reads the body. The client then never sends the body of a request that
    // is refused earlier.
    incoming.once('resume', () => void (outgoing.headersSent || outgoing.writeContinue()))
    respond(incoming, outgoing)
  })
}

/** Runs callbacks once a response is made, or has failed. */
async function runAfter(
  response: Response | Promise<Response>,
  waiting: readonly (() => void)[],
): Promise<void> {
  try {
    await response
  } catch {
    // The listener answers a failure.
  }
  for (const run of waiting) run()
}

/** 4,096: with 16 KiB of headers for each, 64 MiB. */
const MAX_CONNECTIONS = 4_096
/**
 * One quarter: relay and its sandbox have a listener each, which leaves half of the descriptors for the store, targets
 * and commands.
 */
const DESCRIPTOR_SHARE = 1 / 4

/** Limits the number of connections to a share of the file descriptors that this process may open (Linux: proc(5)). */
function maxConnections(): number {
  try {
    const [, descriptors] = /^Max open files +(\d+) /m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
    const share = Math.floor(Number(descriptors ?? Infinity) * DESCRIPTOR_SHARE)
    return Math.max(1, Math.min(MAX_CONNECTIONS, share))
  } catch {
    return MAX_CONNECTIONS
  }
}

/**
 * Responds to a request that the parser refused, for which there is no response object. The client must not mistake it
 * for the pending response `latest`.
 */
function refuse(error: Error, socket: Duplex, latest: ServerResponse | undefined): void {
  const code = errorCode(error)
  if (code === 'ECONNRESET') return void socket.destroy()
  if (!socket.writable) return
  // The refused bytes are the body of the request whose response is next, and none of that response is sent.
  const isAbout = latest && !latest.req.complete && latest.socket !== null && !latest.headersSent
  if (!latest || latest.writableFinished || isAbout) {
    closeGently(socket, refusal(code))
  } else if (latest.req.complete) {
    latest.shouldKeepAlive = false
    latest.once('close', () => socket.destroy())
  } else {
    // The body broke off after its response had started, or while an earlier one was pending, so the request can never
    // end.
    socket.destroy()
  }
}

/** Error responses by Node's codes: nodejs.org/api/http.html, event 'clientError'. */
const REFUSALS: Readonly<Record<string, RelayError>> = {
  HPE_HEADER_OVERFLOW: new RelayError('header_too_large', 'Request header fields too large'),
  ERR_HTTP_REQUEST_TIMEOUT: new RelayError('request_timeout', 'Request timeout'),
}

/** Formats a whole error response as text. */
function refusal(code = ''): string {
  const error = REFUSALS[code] ?? new RelayError('bad_request', 'Bad request')
  const body = JSON.stringify(errorBody(error))
  return [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${randomUUID()}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

/** Address for clients. They cannot connect to a wildcard address, which includes the loopback address. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return hostInUrl(host)
}
