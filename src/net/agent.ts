import type { Agent, ClientRequest } from 'node:http'
import type { Socket } from 'node:net'
import { decoded, isLoopback } from '../base/address.js'
import { proxyFor, ProxyAnswerError } from './proxy.js'
import { TlsError, watchTls } from './tls.js'

export interface AgentOptions {
  /** Milliseconds for which an idle connection is kept for the next request. Default: each request has a connection of its own. */
  readonly keepAlive?: number
}

/** Opens the agent for requests to an address: straight to this machine, elsewhere through the proxy that the variables of this process name. @throws ProxySettingError */
export function openAgent(url: URL, { keepAlive }: AgentOptions = {}): Agent {
  const proxy = proxyTo(url)
  const options = keepAlive === undefined ? {} : { keepAlive: true, timeout: keepAlive }
  const agent = new (protocolOf(url).Agent)(options)
  if (!proxy) return agent
  // Documented, and left out of Node's types: it may answer later (nodejs.org/api/http.html, agent.createConnection).
  return Object.assign(agent, {
    createConnection(given: object, done: (error: Error | null, socket?: Socket) => void): void {
      openTunnel(proxy, url, (error, socket) => {
        if (!socket || url.protocol === 'http:') return done(error, socket)
        const { connect } = process.getBuiltinModule('node:tls')
        done(null, connect({ ...given, socket }))
      })
    },
  })
}

/** The client of Node for a protocol. Loaded when it is used: short commands send nothing. */
export function protocolOf({ protocol }: URL) {
  return protocol === 'https:'
    ? process.getBuiltinModule('node:https')
    : process.getBuiltinModule('node:http')
}

/** {@link watchTls}, with what this process trusts. */
export function watchConnection(request: ClientRequest, url: URL): (error: Error) => Error {
  return watchTls(request, url, process.env['NODE_EXTRA_CA_CERTS'])
}

function proxyTo(url: URL): URL | undefined {
  return isLoopback(url.hostname) ? undefined : proxyFor(url, process.env)
}

/** Opens a connection to an address through a proxy (RFC 9110 section 9.3.6). */
function openTunnel(proxy: URL, url: URL, done: (error: Error | null, socket?: Socket) => void): void {
  const { hostname, port } = url
  const authority = `${hostname}:${port || (url.protocol === 'https:' ? 443 : 80)}`
  const { username, password } = proxy
  const credentials = Buffer.from([username, password].map(decoded).join(':')).toString('base64')
  const headers = {
    Host: authority,
    ...(username !== '' && { 'Proxy-Authorization': `Basic ${credentials}` }),
  }
  const request = protocolOf(proxy).request({
    ...hostOf(proxy),
    method: 'CONNECT',
    path: authority,
    headers,
    agent: false,
  })
  const explain = watchConnection(request, proxy)
  request
    .once('connect', ({ statusCode = 0 }, socket) => {
      if (statusCode === 200) return done(null, socket)
      socket.destroy()
      done(new ProxyAnswerError(statusCode))
    })
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
