import { setMaxListeners } from 'node:events'
import type { buildConnector as Connect, Dispatcher } from 'undici'
import { errorCode } from '../base/errors.js'
import { StartOf } from '../base/bytes.js'
import { onAbort, withTimeLimit } from '../base/wait.js'
import { type AgentResponse, agentOfSingleRequests, openAgent, sendThrough } from './client.js'

/** A target's response to a delivery. */
interface DeliveryResponse extends Omit<AgentResponse, 'body'> {
  /** The start of the body. */
  readonly start: Uint8Array
}

/** The response is not HTTP/1.1: probably another kind of server listens there. */
export class NotHttpError extends Error {
  override readonly name = 'NotHttpError'
  /** Its first bytes, if undici reports them. */
  readonly start: Uint8Array

  constructor(start: Uint8Array) {
    super('its answer is not HTTP/1.1: check the address and the port')
    this.start = start
  }
}

/** The header lines to send: name and value. */
type HeaderLines = readonly (readonly [name: string, value: string])[]
type Request = Parameters<typeof sendThrough>[2]

/** Sends deliveries to one address, over a connection for each parallel request. Dispose of it once no request is pending. */
export class DeliverySender implements AsyncDisposable {
  readonly #url: URL
  readonly #limit: number
  readonly #end = new AbortController()
  readonly #agent: Promise<Dispatcher>

  /** `limit`: milliseconds for a whole request, from connecting to the end of the response. */
  constructor(url: string, limit: number) {
    this.#url = new URL(url)
    this.#limit = limit
    // Each connection listens to it while it opens.
    setMaxListeners(0, this.#end.signal)
    // At once: if undici cannot be read later because no file descriptor is free, Node 20 ends the process (measured).
    this.#agent = openReusingAgent(this.#url, this.#end.signal)
    // A failure reaches every request.
    this.#agent.catch(() => {})
  }

  /**
   * Posts a body byte for byte. Follows no redirect. If the target closes a reused connection instead of answering, sends the
   * request once more on a connection of its own. The target may have read it the first time, which is safe: deliveries arrive
   * at least once.
   * @throws `TimeoutError` at the limit; the signal's reason; {@link NotHttpError}; otherwise the error of the connection, which
   * {@link describeConnectionError} describes.
   */
  post(headers: HeaderLines, body: Uint8Array, signal: AbortSignal): Promise<DeliveryResponse> {
    const request = { method: 'POST' as const, headers: grouped(headers), body }
    return withTimeLimit(this.#limit, signal, async (limited) => {
      try {
        return await exchange(await this.#agent, this.#url, request, limited)
      } catch (error) {
        if (!(error instanceof StaleConnectionError)) throw error
      }
      return await exchange(await agentOfSingleRequests(this.#url), this.#url, request, limited)
    })
  }

  /** Closes the connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    const agent = await this.#agent.catch(() => undefined)
    // Not undici's close(), which waits for a connection that still opens for an abandoned request. destroy() leaves it open, so
    // the signal ends it.
    await agent?.destroy()
    this.#end.abort()
  }
}

/** As an object, since undici's proxy agent converts a list to one and would keep only one line per name. */
function grouped(headers: HeaderLines): Record<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers) lines.set(name, [...(lines.get(name) ?? []), value])
  return Object.fromEntries(lines)
}

/** 256 KiB: a body up to this length is read completely, so that its connection can be reused; a longer one is cut off. */
const MAX_READ = 262_144

/** The status decides: a body that is interrupted, also by the signal, is no failure. */
async function exchange(agent: Dispatcher, url: URL, request: Request, signal: AbortSignal) {
  const { body, ...head } = await sendThrough(agent, url, request, { signal }).catch((error: unknown) => {
    throw toNotHttp(error) ?? error
  })
  const start = new StartOf()
  let read = 0
  try {
    for await (const chunk of body) {
      start.add(chunk)
      read += chunk.byteLength
      if (read > MAX_READ) break
    }
  } catch {
    // The part that arrived is enough.
  }
  return { ...head, start: start.bytes }
}

/** undici's names for responses that its parser refuses. They have no code (undici 7.30), although one is intended. */
const UNREADABLE = new Set(['HTTPParserError', 'HeadersOverflowError', 'ResponseContentLengthMismatchError'])

function toNotHttp(error: unknown): NotHttpError | undefined {
  const { name, message, data }: Partial<Record<'name' | 'message' | 'data', unknown>> = Object(error)
  // To undici, an unexpected 100 or 101 is a socket error.
  const isRefused = name === 'SocketError' && /^bad (?:response|upgrade)$/.test(String(message))
  if (!isRefused && !UNREADABLE.has(String(name))) return undefined
  const start = new StartOf()
  if (typeof data === 'string') start.add(Buffer.from(data))
  return new NotHttpError(start.bytes)
}

/** 1 s, the rest of a burst: the longer a connection is idle, the likelier the target closes it. */
const KEEP_ALIVE_MS = 1000

/** Opens the agent that reuses connections. `end` destroys one that is still opening. */
async function openReusingAgent(url: URL, end: AbortSignal): Promise<Dispatcher> {
  const { buildConnector, Client, Pool } = await import('undici')
  const connect: Connect.connector = (to, callback) => {
    // Not `end` itself: Node 20 never takes a socket from the listeners of its signal (measured: 6 KB for each connection).
    const opening = new AbortController()
    const ignore = onAbort(end, () => opening.abort())
    // The port is the one of `to`; undici's type asks for another.
    buildConnector({ port: 0, signal: opening.signal })(to, (...result) => {
      ignore()
      callback(...result)
    })
  }
  const client = (to: URL, options: object): Dispatcher => noticingStale(new Client(to, options))
  return openAgent(url, {
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    // The sender's limit is the only one.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect,
    factory: (to, options: object) => new Pool(to, { ...options, factory: client }),
  })
}

/**
 * A reused connection was closed before the first byte of the response, most likely while idle (RFC 9112 section 9.3.1): the target is not
 * down. Of 200 deliveries to such a target, 33 were lost to it (measured).
 */
class StaleConnectionError extends Error {
  override readonly name = 'StaleConnectionError'
}

/** Codes of Node and undici for a connection that the other side closed. */
const CLOSED = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/** Wraps a client of one connection so that its requests fail with a {@link StaleConnectionError} if that is the reason. */
function noticingStale(client: Dispatcher): Dispatcher {
  /** Whether the connection has carried a response. */
  let isUsed = false
  client.on('disconnect', () => {
    isUsed = false
  })
  // Not undici's RetryAgent: it also sends again what was answered 200, if that answer's body breaks off (measured).
  return client.compose((dispatch) => (options, handler) => {
    let hasBegun = false
    return dispatch(options, {
      onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
      onResponseStarted() {
        hasBegun = true
      },
      onResponseStart: (controller, status, headers, text) =>
        handler.onResponseStart?.(controller, status, headers, text),
      onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
      onResponseEnd(controller, trailers) {
        isUsed = true
        handler.onResponseEnd?.(controller, trailers)
      },
      onResponseError(controller, error) {
        const isStale = isUsed && !hasBegun && CLOSED.has(errorCode(error) ?? '')
        handler.onResponseError?.(controller, isStale ? new StaleConnectionError(error.message) : error)
      },
    })
  })
}
