import type { Agent, ClientRequest } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { decoded, isLoopback } from '../base/address.js'
import { proxyFor, ProxyAnswerError } from './proxy.js'
import { TlsError, watchTls } from './tls.js'

export interface AgentOptions {
  /** Milliseconds for which an idle connection is kept for the next request. Default: each request has a connection of its own. */
  readonly keepAlive?: number
}

/** How requests to an address travel. */
export interface Way {
  readonly agent: Agent
  /** A proxy that reads the requests, and gets the whole address in each (RFC 9112 section 3.2.2); undefined for one that only connects. */
  readonly reader: URL | undefined
}

/**
 * Opens the way for requests to an address: straight to this machine, elsewhere through the proxy that the variables of this process name. As
 * browsers do, it has a proxy connect for https alone: many refuse to for http, as Squid does in its usual settings.
 * @throws ProxySettingError
 */
export function openWay(url: URL, { keepAlive }: AgentOptions = {}): Way {
  const proxy = proxyTo(url)
  const options = keepAlive === undefined ? {} : { keepAlive: true, timeout: keepAlive }
  const agent = new (protocolOf(url).Agent)(options)
  if (!proxy) return { agent, reader: undefined }
  if (url.protocol === 'http:') {
    Object.assign(agent, { createConnection: () => connectTo(proxy) })
    return { agent, reader: proxy }
  }
  // Documented, and left out of Node's types: it may answer later (nodejs.org/api/http.html, agent.createConnection).
  Object.assign(agent, {
    createConnection(given: object, done: (error: Error | null, socket?: Socket) => void): void {
      openTunnel(proxy, url, (error, socket) => {
        if (!socket) return done(error)
        const { connect } = process.getBuiltinModule('node:tls')
        done(null, connect({ ...given, socket }))
      })
    },
  })
  return { agent, reader: undefined }
}

function connectTo(proxy: URL): Socket {
  const place = hostOf(proxy)
  if (proxy.protocol === 'http:') return process.getBuiltinModule('node:net').connect(place)
  const { connect } = process.getBuiltinModule('node:tls')
  return connect({ ...place, servername: isIP(place.host) === 0 ? place.host : '' })
}

/** The header by which a request signs in to a proxy, where its address has a user name. */
export function proxyCredentials({ username, password }: URL): readonly (readonly [string, string])[] {
  if (username === '') return []
  const credentials = Buffer.from([username, password].map(decoded).join(':')).toString('base64')
  return [['Proxy-Authorization', `Basic ${credentials}`]]
}

/** The client of Node for a protocol. Loaded when it is used: short commands send nothing. */
export function protocolOf({ protocol }: URL) {
  return protocol === 'https:'
    ? process.getBuiltinModule('node:https')
    : process.getBuiltinModule('node:http')
}

/** {@link watchTls}, with what this process trusts. */
function watchConnection(request: ClientRequest, url: URL): (error: Error) => Error {
  return watchTls(request, url, process.env['NODE_EXTRA_CA_CERTS'])
}

/** The same for a request of this way. */
export function watchWay(request: ClientRequest, url: URL, { reader }: Way): (error: Error) => Error {
  if (!reader) return watchConnection(request, url)
  const explain = watchConnection(request, reader)
  return (error) => ofProxy(explain(error))
}

function proxyTo(url: URL): URL | undefined {
  return isLoopback(url.hostname) ? undefined : proxyFor(url, process.env)
}

/** 20 s: longer than a proxy tries to connect, and less than relay waits for an answer. */
const CONNECT_LIMIT_MS = 20_000

/** Opens a connection to an address through a proxy (RFC 9110 section 9.3.6). */
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
    // The caller may have given up: without an end, the connection would stay.
    .once('timeout', () => request.destroy(new ProxyAnswerError()))
    .once('error', (error) => done(ofProxy(explain(error))))
    .end()
}

/** Whose certificate it is matters: the messages of other failures are of the whole way. */
function ofProxy(error: Error): Error {
  if (!(error instanceof TlsError)) return error
  return new TlsError(`TLS with the proxy failed: ${error.message}`, { cause: error, isUnreached: true })
}

/** The options of a request for its host. Node's `URL` has IPv6 addresses in brackets, its sockets have them without. */
export function hostOf({ hostname, port, protocol }: URL) {
  const standard = protocol === 'https:' ? 443 : 80
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || standard) }
}
