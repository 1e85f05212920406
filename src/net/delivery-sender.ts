import { Readable } from 'node:stream'
import { errorCode } from '../base/errors.js'
import { PrefixBuffer } from '../base/bytes.js'
import { isTimeout, withTimeLimit } from '../base/wait.js'
import { type ConnectionOptions, openTransport, type Transport } from './agent.js'
import { withRest } from '../base/address.js'
import { exchange, type HeaderLine, NotHttpError, type StreamedResponse } from './client.js'
import { decompressed } from './encoding.js'

/** A request to post. */
export interface PostRequest {
  /** Default: POST. */
  readonly method?: string

  readonly lines: readonly HeaderLine[]
  readonly body: Uint8Array
  /** Query without `?`. Default: that of the address alone. */
  readonly query?: string | undefined
  /** Path with its slash. Default: that of the address alone. */
  readonly path?: string | undefined
}

/** A target's response to a delivery. */
interface DeliveryResponse extends Omit<StreamedResponse, 'body'> {
  /** First bytes of the body, decompressed. Unchanged if they cannot be decompressed. */
  readonly start: Uint8Array
  /** The body as it was sent. Undefined if it is longer than {@link MAX_WHOLE}, or broke off. */
  readonly whole: Uint8Array | undefined
}

/** 1 s, the rest of a burst: the longer a connection is idle, the likelier the target closes it. */
const KEEP_ALIVE_MS = 1000

/**
 * Sends deliveries to one address, with one connection for each parallel request. Dispose of it once no request is
 * pending.
 */
export class DeliverySender implements AsyncDisposable {
  readonly #url: URL
  readonly #limit: number
  readonly #connection: ConnectionOptions
  #way: Transport | undefined

  /** @param limit milliseconds for a whole request, from connecting to the end of the response */
  constructor(url: string, limit: number, connection: ConnectionOptions = {}) {
    this.#url = new URL(url)
    this.#limit = limit
    this.#connection = connection
  }

  /**
   * Posts a body byte for byte, to the address with path and query after its own. Follows no redirect.
   * @throws {@link NoResponse}; the signal's reason; `NotHttpError`
   */
  post(
    { method = 'POST', lines, body, query, path }: PostRequest,
    signal: AbortSignal,
  ): Promise<DeliveryResponse> {
    const url = withRest(this.#url, { path, query })
    return withTimeLimit(this.#limit, signal, async (limited) => {
      const transport = (this.#way ??= openTransport(url, { ...this.#connection, keepAlive: KEEP_ALIVE_MS }))
      const request = { method, lines, body, signal: limited, transport, keepsAlive: true }
      const { response, isStale, isConnected } = exchange(url, request)
      try {
        return await withStart(await response)
      } catch (error) {
        if (signal.aborted || error instanceof NotHttpError) throw error
        if (isTimeout(error)) throw new NoResponse(isConnected() ? 'unanswered' : 'unreached', error)
        if (!isConnected() || !CLOSED.has(errorCode(error) ?? '')) throw new NoResponse('unreached', error)
        if (!isStale()) throw new NoResponse('broken', error)
        // Others that are idle may be closed too, so the next request opens one. These close when they are idle for long.
        this.#way = undefined
        throw new NoResponse('stale', error)
      }
    })
  }

  /** Closes the connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#way?.agent.destroy()
  }
}

/**
 * Error for a request without a response. Its cause is the error of the connection, which `describeConnectionError`
 * describes.
 *
 * - `unreached`: there was no connection, also not within the time limit.
 * - `unanswered`: there was no answer within the time limit.
 * - `broken`: the connection ended before an answer.
 * - `stale`: the same, of a connection that had served a request before. The server most likely closed it while it was
 *   idle (RFC 9112 section 9.3.1). Of 200 deliveries to such a server, 33 met that (measured).
 */
export class NoResponse extends Error {
  override readonly name = 'NoResponse'
  readonly how: 'unreached' | 'unanswered' | 'broken' | 'stale'

  constructor(how: NoResponse['how'], cause: unknown) {
    super('There is no response', { cause })
    this.how = how
  }
}

/** Error codes of a connection that the other side closed. */
const CLOSED = new Set(['ECONNRESET', 'EPIPE'])

/**
 * 256 KiB. A body up to this length is read completely, so that its connection can be reused. A longer one is cut off.
 */
const MAX_READ = 262_144

/** 64 KiB: longest body that is passed on to a sender. Slack's largest view has a quarter of that. */
const MAX_WHOLE = 65_536

/**
 * Reads the first bytes of a response's body. An interrupted body, also one interrupted by the signal, is no failure:
 * the status decides.
 */
async function withStart({ body, ...head }: StreamedResponse): Promise<DeliveryResponse> {
  const encoding = head.header('content-encoding')
  const chunks: Uint8Array[] = []
  const start = new PrefixBuffer()
  let read = 0
  let isWhole = false
  try {
    for await (const chunk of body) {
      start.add(chunk)
      if (encoding !== undefined || read < MAX_WHOLE) chunks.push(chunk)
      read += chunk.byteLength
      if (read > MAX_READ) break
    }
    isWhole = read <= MAX_WHOLE
  } catch {
    // The bytes that arrived are enough.
  }
  const text = encoding === undefined ? undefined : await startOf(chunks, encoding)
  const whole = isWhole ? Buffer.concat(chunks) : undefined
  return { ...head, start: text ?? start.bytes, whole }
}

/**
 * Decompresses the first bytes of a body, even if its end is missing. Undefined if that fails, or the body is empty.
 */
async function startOf(packed: readonly Uint8Array[], encoding: string): Promise<Uint8Array | undefined> {
  const start = new PrefixBuffer()
  try {
    for await (const chunk of decompressed(Readable.from(packed), encoding)) {
      start.add(chunk)
      if (start.isFull) break
    }
  } catch {
    // The bytes before the failure may still be text.
  }
  return start.bytes.length === 0 ? undefined : start.bytes
}
