import type { Agent, Dispatcher } from 'undici'
import { type Cancellable, onAbort } from '../base/wait.js'
import { isLoopback } from '../base/address.js'
import { readBounded } from '../base/bytes.js'
import { proxyFor } from './proxy.js'

/** Returns a header's value; ignores the case of its name, and joins several lines with commas. */
export type HeaderReader = (name: string) => string | undefined

/** A request to a code host or a tunnel's server. */
export interface OutboundRequest extends Cancellable {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export interface OutboundResponse {
  readonly status: number
  readonly header: HeaderReader
  readonly body: AsyncIterable<Uint8Array>
  /** Abandons the rest of the body, which closes the connection. */
  readonly discard: () => void
}

/** Sends one request, once, and resolves with the response's headers. @throws the error of the connection; the signal's reason */
export type SendOnce = (url: string, request: OutboundRequest) => Promise<OutboundResponse>

/**
 * {@link SendOnce} over the network. Each request has a connection of its own: if a write fails on a connection that the server
 * just closed, it is unknown whether it arrived. Follows no redirect. Asks for a body without content encoding, since nothing
 * here decodes one (RFC 9110 section 12.5.3).
 */
export const sendOnce: SendOnce = async (address, { method, headers, body = null, signal }) => {
  const url = new URL(address)
  const plain = { 'accept-encoding': 'identity', ...headers }
  const agent = await agentOfSingleRequests(url)
  const request = { method, headers: plain, body }
  const { lines: _, ...response } = await sendThrough(agent, url, request, { signal })
  return { ...response, discard: () => void response.body.on('error', () => {}).destroy() }
}

/** 4 MiB: many times the longest response to our calls (a pull request with both repositories, about 60 KiB). */
const MAX_TEXT = 4 * 1_048_576

/** The body as text. @throws TooManyBytes over 4 MiB; the error of the connection; the signal's reason */
export async function readText({ body }: Pick<OutboundResponse, 'body'>): Promise<string> {
  return String(await readBounded(body, MAX_TEXT))
}

/** A response whose headers have arrived. */
export interface AgentResponse {
  readonly status: number
  readonly header: HeaderReader
  /** Every header line; names in lower case. */
  readonly lines: () => readonly (readonly [name: string, value: string])[]
  readonly body: Dispatcher.ResponseData['body']
}

/** Sends one request, and follows no redirect. @throws the error of the connection; the signal's reason, at once: undici waits to be connected */
export async function sendThrough(
  agent: Dispatcher,
  { origin, pathname, search }: URL,
  request: Pick<Dispatcher.RequestOptions, 'method' | 'headers' | 'body'>,
  { signal }: Cancellable,
): Promise<AgentResponse> {
  signal?.throwIfAborted()
  const path = `${pathname}${search}`
  const { statusCode, headers, body } = await new Promise<Dispatcher.ResponseData>((resolve, reject) => {
    const ignore = signal && onAbort(signal, () => reject(signal.reason))
    agent
      .request({ ...request, origin, path, signal })
      .then(resolve, reject)
      .finally(() => ignore?.())
  })
  const header: HeaderReader = (name) => [headers[name.toLowerCase()] ?? []].flat().join(', ') || undefined
  const lines: AgentResponse['lines'] = () =>
    Object.entries(headers).flatMap(([name, values = []]) =>
      [values].flat().map((value) => [name, value] as const),
    )
  return { status: statusCode, header, lines, body }
}

/**
 * Opens the undici agent for requests to `url`'s host: directly to this machine, elsewhere through the proxy that the variables of this process
 * name. Loads undici, which takes 75 ms (measured): too long for a short command.
 * @throws ProxySettingError
 */
export async function openAgent(url: URL, options: Agent.Options): Promise<Dispatcher> {
  const proxy = proxyTo(url)
  const { Agent, Pool, ProxyAgent } = await import('undici')
  if (!proxy) return new Agent(options)
  const clientFactory = (to: URL, more: object): Dispatcher => failingOnce(new Pool(to, more))
  return new ProxyAgent({ ...options, uri: proxy.href, clientFactory })
}

function proxyTo(url: URL): URL | undefined {
  return isLoopback(url.hostname) ? undefined : proxyFor(url, process.env)
}

/** Changes the code of a proxy's closed connection: at undici's own it asks again without a pause (7.30; 35,000 connections in 30 s, measured). */
function failingOnce(proxy: Dispatcher): Dispatcher {
  return proxy.compose((dispatch) => (options, handler) => {
    const fail = handler.onResponseError?.bind(handler)
    handler.onResponseError = (controller, error) => {
      const isClosed = 'code' in error && error.code === 'UND_ERR_SOCKET'
      fail?.(controller, isClosed ? Object.assign(error, { code: 'ECONNRESET' }) : error)
    }
    return dispatch(options, handler)
  })
}

/** By the address of the proxy; '' for connections without one. */
const agents = new Map<string, Promise<Dispatcher>>()

/** The agent, shared by the whole process, that opens a connection for each request to `url`'s host. @throws as {@link openAgent} */
export async function agentOfSingleRequests(url: URL): Promise<Dispatcher> {
  const proxy = proxyTo(url)?.href ?? ''
  // Without pipelining, undici uses a connection for one request.
  const agent = agents.get(proxy) ?? openAgent(url, { pipelining: 0 })
  agents.set(proxy, agent)
  return agent
}
