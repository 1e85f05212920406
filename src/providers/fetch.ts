import type { Dispatcher } from 'undici'
import { isLoopback } from '../base/loopback.js'
import { callHere } from './here.js'

/** A request to a code host. */
export interface Outgoing {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly headers: Record<string, string>
  readonly body?: string
  readonly signal: AbortSignal
  /** What is answered with a redirect is answered: whoever asked looks at it. */
  readonly redirect: 'manual'
}

/** What is read of the answer. A `Response` is one. */
export interface Incoming {
  readonly status: number
  readonly headers: Pick<Headers, 'get' | 'has'>
  readonly body: AsyncIterable<Uint8Array> | null
}

/**
 * Sends one request, once. `fetch` is such a function.
 * @throws what broke the connection, or kept it from being made; the signal's reason.
 */
export type SendOnce = (address: string, request: Outgoing) => Promise<Incoming>

interface Outbound {
  readonly fetch: typeof fetch
  readonly request: (typeof import('undici'))['request']
  readonly direct: Dispatcher
  readonly proxied: Dispatcher
}

let outbound: Promise<Outbound> | undefined

/**
 * `fetch` for calls that leave relay: through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name, except
 * to this machine itself. undici is loaded by the first call. Takes an address, not a `Request`.
 */
export const outboundFetch: typeof fetch = async (input, init) => {
  if (input instanceof Request) throw new TypeError('outboundFetch takes an address')
  const { fetch, direct, proxied } = await (outbound ??= load())
  const through: object = { ...init, dispatcher: isHere(input) ? direct : proxied }
  return fetch(input, through)
}

/** The same for calls to a code host's API: without what makes a `Request`, a `Response` and their streams, half the time. */
export const outboundCall: SendOnce = async (address, outgoing) => {
  // Nothing here unpacks; without a word any encoding would do (RFC 9110 section 12.5.3).
  const headers = { 'accept-encoding': 'identity', ...outgoing.headers }
  const call = isHere(address) && new URL(address).protocol === 'http:' ? callHere : callByUndici
  return call(address, { ...outgoing, headers })
}

const callByUndici: SendOnce = async (address, { method, headers, body: text, signal }) => {
  const { request, direct, proxied } = await (outbound ??= load())
  const dispatcher = isHere(address) ? direct : proxied
  const answer = await request(address, { method, headers, body: text ?? null, signal, dispatcher })
  return { status: answer.statusCode, headers: toHeaders(answer.headers), body: answer.body }
}

function toHeaders(lines: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(lines))
    for (const value of [values].flat()) headers.append(name, value)
  return headers
}

function isHere(address: string | URL): boolean {
  return isLoopback(new URL(address).hostname)
}

async function load(): Promise<Outbound> {
  const { Agent, EnvHttpProxyAgent, fetch, request } = await import('undici')
  // No connection is used twice: on a kept one that the other side has just closed, a write fails and nobody
  // can tell whether it arrived.
  const options = { pipelining: 0 }
  const direct = new Agent(options)
  const proxied = new EnvHttpProxyAgent(options)
  // Node's own fetch is an older undici, so the types differ, in places that no caller here uses.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { fetch: fetch as unknown as typeof globalThis.fetch, request, direct, proxied }
}
