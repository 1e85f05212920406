import type { Dispatcher } from 'undici'
import type { Cancellable } from '../base/abort.js'
import { isLoopback } from '../base/loopback.js'
import { readBounded } from '../base/read-bounded.js'
import { type HeaderReader, openAgent, sendThrough } from './agent.js'

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

/**
 * Sends one request, once, and resolves with the headers of the response.
 * @throws the error of the connection; the signal's reason.
 */
export type SendOnce = (url: string, request: OutboundRequest) => Promise<OutboundResponse>

/** 4 MiB: many times the longest response to our calls (a pull request with both repositories, about 60 KiB). */
const MAX_TEXT = 4 * 1_048_576

/** One agent for this machine, and one for all other hosts. The first request opens it. */
const agents: { loopback?: Promise<Dispatcher>; elsewhere?: Promise<Dispatcher> } = {}

/**
 * {@link SendOnce} over the network. Each request has a connection of its own: if a write fails on a connection that the server
 * just closed, it is unknown whether it arrived. Follows no redirect. Requests a body without content encoding, since nothing
 * here decodes one (RFC 9110 section 12.5.3).
 */
export const sendOnce: SendOnce = async (address, { method, headers, body = null, signal }) => {
  const url = new URL(address)
  const agent = await (agents[isLoopback(url.hostname) ? 'loopback' : 'elsewhere'] ??= openAgent(url, {
    pipelining: 0,
  }))
  const identity = { 'accept-encoding': 'identity', ...headers }
  const response = await sendThrough(agent, url, { method, headers: identity, body }, { signal })
  return { ...response, discard: () => void response.body.on('error', () => {}).destroy() }
}

/**
 * Reads the body as text.
 * @throws TooManyBytes over 4 MiB; the error of the connection; the signal's reason.
 */
export async function readText({ body }: Pick<OutboundResponse, 'body'>): Promise<string> {
  return String(await readBounded(body, MAX_TEXT))
}
