import { setMaxListeners } from 'node:events'
import type { Dispatcher } from 'undici'
import { withTimeLimit } from '../base/time-limit.js'
import { openAgent } from './agent.js'
import { type DeliveryResponse, exchange } from './exchange.js'
import { noticingStale, StaleConnectionError } from './stale-connection.js'

const OPTIONS = {
  // 1 s, the rest of a burst: the longer a connection is idle, the likelier the target closes it.
  keepAliveTimeout: 1000,
  keepAliveMaxTimeout: 1000,
  // `limit` is the only time limit.
  headersTimeout: 0,
  bodyTimeout: 0,
}

export interface DeliverySenderOptions {
  /** Milliseconds for a whole request, from connecting to the end of the response. */
  readonly limit: number
  /** Limit for open connections; further requests wait for one. Default: no limit. */
  readonly connections?: number
}

/** The header lines to send: name and value. */
type HeaderLines = readonly (readonly [name: string, value: string])[]

/** One agent that reuses connections, and one that opens a connection for each request. */
interface Agents {
  readonly reusing: Dispatcher
  readonly fresh: Dispatcher
}

/**
 * Sends deliveries to one address. An address on another machine is reached through the proxy that the environment names. Opens
 * a connection for each parallel request.
 */
export class DeliverySender implements AsyncDisposable {
  readonly #url: URL
  readonly #limit: number
  readonly #sending = new Set<Promise<DeliveryResponse>>()
  readonly #end = new AbortController()
  readonly #opened: Promise<Agents>
  #isClosed = false

  constructor(url: string, { limit, connections }: DeliverySenderOptions) {
    this.#url = new URL(url)
    this.#limit = limit
    // Each connection listens to it.
    setMaxListeners(0, this.#end.signal)
    // At once: if the module cannot be read later because no file descriptor is free, Node 20 ends the process (measured).
    this.#opened = openAgents(this.#url, this.#end.signal, connections)
    // A failure reaches every request.
    this.#opened.catch(() => {})
  }

  /**
   * Posts a body byte for byte. Follows no redirect. After a {@link StaleConnectionError} it sends the request once more on a
   * connection of its own. The target may have read it the first time, which is safe: deliveries arrive at least once.
   * @throws `TimeoutError` at the limit; the signal's reason; {@link NotHttpError}; otherwise the error of the connection, which
   * {@link describeConnectionError} describes.
   */
  async post(headers: HeaderLines, body: Uint8Array, signal: AbortSignal): Promise<DeliveryResponse> {
    signal.throwIfAborted()
    if (this.#isClosed) throw new Error('the sender is closed')
    const request = { headers: grouped(headers), body }
    const sending = withTimeLimit(this.#limit, signal, (limited) => this.#post(request, limited))
    this.#sending.add(sending)
    try {
      return await sending
    } finally {
      this.#sending.delete(sending)
    }
  }

  /** Waits for pending requests, then closes the connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled(this.#sending)
    // undici's close() would wait for a connection that is still opening for an abandoned request; its destroy() leaves that open.
    const opened = await this.#opened.catch(() => undefined)
    await Promise.all([opened?.reusing.destroy(), opened?.fresh.destroy()])
    this.#end.abort()
  }

  async #post(
    request: Pick<Dispatcher.RequestOptions, 'headers' | 'body'>,
    signal: AbortSignal,
  ): Promise<DeliveryResponse> {
    const { reusing, fresh } = await this.#opened
    try {
      return await exchange(reusing, this.#url, request, signal)
    } catch (error) {
      if (!(error instanceof StaleConnectionError)) throw error
    }
    return await exchange(fresh, this.#url, request, signal)
  }
}

/** `end` destroys every connection, even one that is still opening. */
async function openAgents(url: URL, end: AbortSignal, connections: number | undefined): Promise<Agents> {
  const { Client, Pool } = await import('undici')
  const client = (to: URL, options: object): Dispatcher => noticingStale(new Client(to, options))
  const factory = (to: string | URL, options: object): Dispatcher =>
    new Pool(to, { ...options, factory: client })
  const options = { ...OPTIONS, factory, connect: { signal: end }, ...(connections && { connections }) }
  // Without pipelining, undici uses a connection for one request.
  const fresh = { ...options, pipelining: 0 }
  return { reusing: await openAgent(url, options), fresh: await openAgent(url, fresh) }
}

/** As an object, since undici's proxy agent converts a list to one and would keep only one line per name. */
function grouped(headers: HeaderLines): Record<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers) lines.set(name, [...(lines.get(name) ?? []), value])
  return Object.fromEntries(lines)
}
