import type { IncomingMessage, ServerResponse } from 'node:http'
import { types } from 'node:util'
import { RelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import {
  address,
  checkArgument,
  checkMembers,
  type Checks,
  must,
  optional,
  text,
  type Words,
} from '../base/checks.js'
import type { Settings } from '../base/settings.js'
import { pathOf } from '../base/source-names.js'
import { didYouMean } from '../base/text.js'
import { parseUrl } from '../base/address.js'
import { errorResponse } from '../http/router.js'
import { checkRequest, OPTION_WORDS } from '../relay.js'
import { isObject } from '../json/parse.js'
import type { Instance } from './instance.js'
import type { ReceiveOptions } from './serve.js'

const OPTIONS: Checks<ReceiveOptions> = { source: optional(text), address: optional(address) }
const WORDS: Words = { ...OPTION_WORDS, example: "{ source: 'billing' }" }
const isNodeRequest = (value: unknown): boolean => isObject(value) && Array.isArray(value['rawHeaders'])
const nodeRequest = must("an http.IncomingMessage, of Node's server; for a Request, use fetch", isNodeRequest)
const nodeResponse = must(
  'an http.ServerResponse',
  (value) => isObject(value) && typeof value['writeHead'] === 'function',
)
/** In place of the program's Host, which is the program's to check. */
const ORIGIN = 'http://localhost'

/** Takes requests from the HTTP server of an embedding program, in place of a listener. */
export class Mount {
  /** Address of the service in messages. */
  readonly url: string
  readonly #publicUrl: string | undefined
  readonly #maxBody: number
  readonly #log: Log
  readonly #inFlight = new Set<Promise<Response>>()
  #instance: Instance | undefined
  /** True once the log says that bodies are read before relay gets them. */
  #hasReported = false

  constructor({ host, port, publicUrl, maxBody }: Settings, log: Log = silentLog) {
    this.url = publicUrl ?? `http://${host}:${port}`
    this.#publicUrl = publicUrl
    this.#maxBody = maxBody
    this.#log = log
  }

  /** Passes requests to an instance from now on. */
  open(instance: Instance): void {
    this.#instance = instance
  }

  /** Refuses requests from now on, and resolves once those in flight are answered. */
  async close(): Promise<void> {
    this.#instance = undefined
    await Promise.all(this.#inFlight)
  }

  async receive(request: Request, options: ReceiveOptions = {}): Promise<Response> {
    const source = this.#sourceOf(options)
    checkRequest(request)
    const { url, method, headers, body, bodyUsed } = request
    const bytes = bodyUsed ? Promise.reject(alreadyRead()) : body && read(body, this.#maxBody)
    return this.#answer(source, { url, method, headers, body: bytes }, options)
  }

  handler(options: ReceiveOptions = {}) {
    if (isNodeRequest(options))
      throw new RelayError(
        'usage',
        'Pass relay.handler() to the server, not relay.handler: it makes the handler',
      )
    const source = this.#sourceOf(options)
    return async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
      checkArgument('handler: the first argument', req, nodeRequest)
      checkArgument('handler: the second argument', res, nodeResponse)
      const answer = await this.#answer(source, receivedBy(req, this.#maxBody), options)
      res.writeHead(answer.status, Object.fromEntries(answer.headers))
      res.end(Buffer.from(await answer.arrayBuffer()))
    }
  }

  /** @throws RelayError `usage` for a source that the settings do not have */
  #sourceOf(options: ReceiveOptions): string {
    checkMembers(options, OPTIONS, WORDS)
    const { sources, host } = this.#instance?.core ?? {}
    const { source = host?.source ?? '' } = options
    if (!sources || sources.has(source)) return source
    const names = [...sources.values()].map(({ name }) => name)
    throw new RelayError('usage', `There is no source ${source}${didYouMean(source, names)}`)
  }

  async #answer(source: string, received: Received, { address }: ReceiveOptions): Promise<Response> {
    const answering = this.#respond(source, received, address)
    this.#inFlight.add(answering)
    try {
      return await answering
    } finally {
      this.#inFlight.delete(answering)
    }
  }

  /** Never rejects. */
  async #respond(source: string, received: Received, address: string | undefined): Promise<Response> {
    try {
      const { method, headers } = received
      const body = await received.body
      const instance = this.#instance
      if (!instance) throw new RelayError('unavailable', 'relay is stopping')
      const { pathname, search, origin } = new URL(received.url)
      const request = new Request(`${ORIGIN}${pathOf(source)}${search}`, {
        method,
        headers,
        ...(body && body.byteLength > 0 && { body: new Uint8Array(body) }),
      })
      const payloadUrl = address ?? `${this.#publicUrl ?? origin}${pathname}`
      // The other bindings are those of a connection.
      const env: object = { payloadUrl }
      return await instance.respond(request, env)
    } catch (error) {
      const isKnown = error instanceof AlreadyReadError && this.#hasReported
      this.#hasReported ||= error instanceof AlreadyReadError
      return errorResponse(error, isKnown ? silentLog : this.#log)
    }
  }
}

/** A request of a sender, from whichever server. */
interface Received {
  readonly url: string
  readonly method: string
  readonly headers: Headers
  /** Rejects if the sender goes away. Longer than the limit for a body that is too long, whose rest is not read. */
  readonly body: Promise<Uint8Array> | null
}

/**
 * Reads a body, up to the first chunk past `limit` bytes.
 * @throws RelayError `cancelled` when the client disconnects before the end
 */
async function read(body: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      size += chunk.byteLength
      if (size > limit) break
    }
  } catch (cause) {
    throw new RelayError('cancelled', 'The client went away', { cause })
  }
  return Buffer.concat(chunks, size)
}

/** Address of a request, of its path and its Host header. A malformed Host, which the program lets pass, is left out. */
function addressOf(path: string, scheme: string, host: string): string {
  const origin = parseUrl(`${scheme}://${host}`)?.origin ?? ORIGIN
  if (path.startsWith('/')) return `${origin}${path}`
  // The form for proxies (RFC 9112 section 3.2.2).
  return parseUrl(path)?.href ?? origin
}

/** Reads a request of Node's, or of a framework that adds the address before its routes and a body that it has read. */
function receivedBy(req: IncomingMessage & KeptBody & { originalUrl?: string }, limit: number): Received {
  const { method = 'GET', rawHeaders, originalUrl, url = '/', socket } = req
  const headers = new Headers()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    // Those of HTTP/2 itself.
    if (!name.startsWith(':')) headers.append(name, rawHeaders[i + 1] ?? '')
  }
  const scheme = 'encrypted' in socket ? 'https' : 'http'
  const address = addressOf(originalUrl ?? url, scheme, headers.get('host') ?? 'localhost')
  return { url: address, method, headers, body: bodyOf(req, limit) }
}

/**
 * Exact bytes of the body, also if a framework has read and kept them: as `rawBody` (cloud functions, NestJS) or, by
 * `express.raw`, as the body. Text is not taken: it can differ from the bytes that were signed.
 * @throws RelayError `not_configured` if something else has read the body
 */
async function bodyOf(req: IncomingMessage & KeptBody, limit: number): Promise<Uint8Array> {
  for (const kept of [req.rawBody, req.body]) if (types.isUint8Array(kept)) return kept
  const { 'content-length': length, 'transfer-encoding': encoding } = req.headers
  const hasBody = encoding !== undefined || Number(length ?? 0) > 0
  if (hasBody && req.readableDidRead) throw alreadyRead()
  // A stream that is destroyed closes the connection, on which the sender reads why its body was refused.
  return read(req.iterator({ destroyOnReturn: false }), limit)
}

/** Members that frameworks add to a request after they have read its body. */
interface KeptBody {
  readonly body?: unknown
  readonly rawBody?: unknown
}

function alreadyRead(): RelayError {
  return new AlreadyReadError(
    'not_configured',
    'The body was read before relay got the request, so its signature cannot be verified: mount relay before what ' +
      "parses bodies (express.json), or keep the exact bytes there, as with express.raw({ type: '*/*' })",
  )
}

/** The program has its handlers in the wrong order, which every request shows again. */
class AlreadyReadError extends RelayError {}
