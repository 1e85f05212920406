import type { Agent, ClientRequest } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { decodeUserinfo, isLoopback } from '../base/address.js'
import { proxyFor, ProxyAnswerError } from './proxy.js'
import { TlsError, watchTls } from './tls.js'

/** Certificates that a connection trusts. Default: those that Node trusts. */
export interface Trusted {
  /** False: any certificate. Default: true. */
  readonly verify?: boolean | undefined
  /** Certificates in PEM that replace those that Node trusts. */
  readonly ca?: string | undefined
}

/** How connections are made. */
export interface ConnectionOptions extends Trusted {
  /** True: a connection does not keep the process alive. Default: false. */
  readonly background?: boolean | undefined
}

export interface AgentOptions extends ConnectionOptions {
  /**
   * Milliseconds for which an idle connection is kept for the next request. Default: each request has its own
   * connection.
   */
  readonly keepAlive?: number
}

/** Connection to an address, either direct or through a proxy. */
export interface Transport {
  readonly agent: Agent
  /**
   * A proxy that reads the requests, so that each contains the whole address (RFC 9112 section 3.2.2). Undefined for a
   * tunnelling proxy.
   */
  readonly reader: URL | undefined
  readonly background: boolean
}

/**
 * Chooses the connection to an address: direct on this machine, elsewhere through the proxy that the environment names.
 * As in browsers, only https is tunnelled with CONNECT, because many proxies, such as Squid by default, refuse that for
 * http.
 * @throws ProxySettingError
 */
export function openTransport(
  url: URL,
  { keepAlive, verify, ca, background = false }: AgentOptions = {},
): Transport {
  const proxy = proxyTo(url)
  const options = {
    ...(keepAlive !== undefined && { keepAlive: true, timeout: keepAlive }),
    ...(verify !== undefined && { rejectUnauthorized: verify }),
    ...(ca !== undefined && { ca }),
  }
  const agent = new (protocolOf(url).Agent)(options)
  if (!proxy) return { agent, reader: undefined, background }
  if (url.protocol === 'http:') {
    Object.assign(agent, { createConnection: () => connectTo(proxy) })
    return { agent, reader: proxy, background }
  }
  // The callback is documented but missing in Node's types (nodejs.org/api/http.html, agent.createConnection).
  Object.assign(agent, {
    createConnection(given: object, done: (error: Error | null, socket?: Socket) => void): void {
      openTunnel(proxy, url, (error, socket) => {
        if (!socket) return done(error)
        const { connect } = process.getBuiltinModule('node:tls')
        done(null, connect({ ...given, socket }))
      })
    },
  })
  return { agent, reader: undefined, background }
}

function connectTo(proxy: URL): Socket {
  const place = hostOf(proxy)
  if (proxy.protocol === 'http:') return process.getBuiltinModule('node:net').connect(place)
  const { connect } = process.getBuiltinModule('node:tls')
  return connect({ ...place, servername: isIP(place.host) === 0 ? place.host : '' })
}

/** Header that authenticates a request to a proxy whose address has a user name. */
export function proxyCredentials({ username, password }: URL): readonly (readonly [string, string])[] {
  if (username === '') return []
  const credentials = Buffer.from([username, password].map(decodeUserinfo).join(':')).toString('base64')
  return [['Proxy-Authorization', `Basic ${credentials}`]]
}

/** Node's client for a protocol. Loaded on first use, since short commands send nothing. */
export function protocolOf({ protocol }: URL) {
  return protocol === 'https:'
    ? process.getBuiltinModule('node:https')
    : process.getBuiltinModule('node:http')
}

/** {@link watchTls} with the certificates that this process trusts. */
function watchConnection(request: ClientRequest, url: URL): (error: Error) => Error {
  return watchTls(request, url, process.env['NODE_EXTRA_CA_CERTS'])
}

/** {@link watchTls} for a request over this route, whose TLS may be that of a proxy. */
export function watchTransport(
  request: ClientRequest,
  url: URL,
  { reader, background }: Transport,
): (error: Error) => Error {
  if (background) request.once('socket', (socket) => socket.unref())
  if (!reader) return watchConnection(request, url)
  const explain = watchConnection(request, reader)
  return (error) => ofProxy(explain(error))
}

function proxyTo(url: URL): URL | undefined {
  return isLoopback(url.hostname) ? undefined : proxyFor(url, process.env)
}

/** 20 s: longer than a proxy tries to connect, and less than relay waits for a response. */
const CONNECT_LIMIT_MS = 20_000

/** Opens a connection to an address through a proxy's CONNECT (RFC 9110 section 9.3.6). */
function openTunnel(proxy: URL, url: URL, done: (error: Error | null, socket?: Socket) => void): void {
  const { hostname, port } = url
  const authority = `${hostname}:${port || (url.protocol === 'https:' ? 443 : 80)}`
  const headers = { Host: authority, ...Object.fromEntries(proxyCredentials(proxy)) }
  const request = protocolOf(proxy).request({
    ...hostOf(proxy),
    method: 'CONNECT',
    path: authority,
    headers,
    agent: false,
    timeout: CONNECT_LIMIT_MS,
  })
  const explain = watchConnection(request, proxy)
  request
    .once('connect', ({ statusCode = 0 }, socket) => {
      socket.setTimeout(0)
      if (statusCode >= 200 && statusCode < 300) return done(null, socket)
      socket.destroy()
      done(new ProxyAnswerError(statusCode))
    })
    // The caller may have given up. Without this, the connection would stay open.
    .once('timeout', () => request.destroy(new ProxyAnswerError()))
    .once('error', (error) => done(ofProxy(explain(error))))
    .end()
}

/** Names the proxy in a TLS error, since it matters whose certificate failed. Other errors are returned unchanged. */
function ofProxy(error: Error): Error {
  if (!(error instanceof TlsError)) return error
  return new TlsError(`TLS with the proxy failed: ${error.message}`, { cause: error, isUnreached: true })
}

/**
 * Request options for a URL's host and port. Node's `URL` puts IPv6 addresses in brackets; its sockets take them
 * without.
 */
export function hostOf({ hostname, port, protocol }: URL) {
  const standard = protocol === 'https:' ? 443 : 80
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || standard) }
}
