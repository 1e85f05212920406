import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { type Cancellable, onAbort } from '../base/wait.js'
import { errorCode, isError } from '../base/errors.js'
import { MAX_PREFIX, readBounded, PrefixBuffer } from '../base/bytes.js'
import {
  hostOf,
  openTransport,
  protocolOf,
  proxyCredentials,
  watchTransport,
  type Transport,
} from './agent.js'
import { decompressed } from './encoding.js'
import { ProxyAnswerError } from './proxy.js'

/** Returns a header's value. Ignores the case of its name, and joins several lines with commas. */
export type HeaderReader = (name: string) => string | undefined

/** A header line: name and value. */
export type HeaderLine = readonly [name: string, value: string]

/** Request to a code host or a tunnel's server. */
export interface OutboundRequest extends Cancellable {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/** Status and headers of a response. */
export interface ResponseHead {
  readonly status: number
  readonly header: HeaderReader
}

export interface OutboundResponse extends ResponseHead {
  /** Response body. Rejects with an `EncodingError` if its compression cannot be undone. */
  readonly body: AsyncIterable<Uint8Array>
  /** Abandons the rest of the body, which closes the connection. */
  readonly discard: () => void
}

/**
 * Sends a request once, without retries, and resolves with the response's headers.
 * @throws the error of the connection; `NetFailure`; the signal's reason
 */
export type SendOnce = (url: string, request: OutboundRequest) => Promise<OutboundResponse>

/**
 * {@link SendOnce} over the network. Each request has its own connection: if a write fails on a reused connection that
 * the server just closed, it is unknown whether it arrived. Follows no redirect. Asks for an uncompressed body (RFC
 * 9110 section 12.5.3), and decompresses one that is compressed nevertheless.
 */
export const sendOnce: SendOnce = async (address, request) =>
  send(address, request, { transport: openTransport(new URL(address)), keepsAlive: false })

/** Error of a request on a connection that had served another one, and on which no byte of a response came. */
export class StaleConnectionError extends Error {
  override readonly name = 'StaleConnectionError'
}

/**
 * Returns a sender of requests to one server that can be repeated: they share connections. An idle connection is kept for
 * `keepAlive` milliseconds. A request rejects with {@link StaleConnectionError} if the server may just have closed its one.
 */
export function reuseConnections(server: string, keepAlive: number): SendOnce {
  let opened: Transport | undefined
  return async (address, request) => {
    const transport = (opened ??= openTransport(new URL(server), { keepAlive }))
    return send(address, request, { transport, keepsAlive: true })
  }
}

async function send(
  address: string,
  { method, headers, body, signal }: OutboundRequest,
  way: Pick<ExchangeRequest, 'transport' | 'keepsAlive'>,
): Promise<OutboundResponse> {
  const lines = Object.entries({ 'accept-encoding': 'identity', ...headers })
  const { response, isStale } = exchange(new URL(address), { method, lines, body, signal, ...way })
  const {
    lines: _,
    body: received,
    ...head
  } = await response.catch((error: unknown) => {
    if (!isStale() || signal?.aborted === true) throw error
    throw new StaleConnectionError('the connection was closed', { cause: error })
  })
  const discard = (): void => void received.on('error', () => {}).destroy()
  try {
    return { ...head, body: decompressed(received, head.header('content-encoding')), discard }
  } catch (error) {
    discard()
    throw error
  }
}

/** 4 MiB: many times the longest response to our calls (a pull request with both repositories, about 60 KiB). */
const MAX_TEXT = 4 * 1_048_576

/** Reads a response body as text. @throws TooManyBytes over 4 MiB; the error of the connection; the signal's reason */
export async function readResponseText({
  body,
}: {
  readonly body: AsyncIterable<Uint8Array>
}): Promise<string> {
  return String(await readBounded(body, MAX_TEXT))
}

/** 256 KiB, the limit of browsers: debugging tools of web frameworks put whole logs into headers. */
const MAX_HEADERS = 262_144
/** 16 KiB: largest header block that is recovered from a response that the parser refuses. */
const MAX_SALVAGED = 16_384

/** Request to any address. */
export interface ExchangeRequest extends Cancellable {
  readonly method: string
  /** Header lines, sent in this order and spelling, after Host and Connection and before Content-Length. */
  readonly lines: readonly HeaderLine[]
  readonly body?: string | Uint8Array | undefined
  readonly transport: Transport
  /** Allows the connection to serve another request afterwards. Default: false. */
  readonly keepsAlive?: boolean
}

/** Response whose headers have arrived. */
export interface StreamedResponse extends ResponseHead {
  /** Every header line, names in lower case. */
  readonly lines: readonly HeaderLine[]
  readonly body: Readable
}

export interface Exchange {
  /** Rejects with the error of the connection, {@link NotHttpError}, or at once with the signal's reason. */
  readonly response: Promise<StreamedResponse>
  /** True if the connection had served a request before, and no byte of a response came. */
  readonly isStale: () => boolean
  /** True once there is a connection to the server, or to a proxy that passes requests on. */
  readonly isConnected: () => boolean
}

/**
 * Error for a response that is not HTTP/1, probably from another kind of server. The message names the protocol if its
 * first bytes reveal it.
 */
export class NotHttpError extends Error {
  override readonly name = 'NotHttpError'
  /** The first bytes of the response, if they are of another protocol. */
  readonly start: Uint8Array
  readonly isTls: boolean

  constructor(start: Uint8Array, { cause, why }: { cause?: Error; why?: string | undefined } = {}) {
    const spoken = protocolIn(start)
    const isTls = spoken === 'TLS'
    const reason = spoken === undefined ? why : `but ${spoken}`
    const advice = isTls ? 'set https:// in the address' : 'check the address and the port'
    super(`its answer is not HTTP/1.1${reason === undefined ? '' : `, ${reason}`}: ${advice}`, { cause })
    this.start = start
    this.isTls = isTls
  }
}

/** Protocols whose servers speak first, or answer an HTTP request like this. */
const OTHER_PROTOCOLS: readonly (readonly [RegExp, string])[] = [
  [/^HTTP\/[023]/i, 'another version'],
  [/^SSH-/, 'SSH'],
  [/^[1-5]\d\d[ -]/, 'mail or FTP'],
]

/** Recognizes a protocol by its first bytes. Undefined if unknown. */
function protocolIn(start: Uint8Array): string | undefined {
  const [type = 0, major, third = 0, frame] = start
  // A TLS record with an alert or a handshake (RFC 8446 section 5.1).
  if ((type === 0x15 || type === 0x16) && major === 3) return 'TLS'
  // A SETTINGS frame of less than 256 bytes (RFC 9113 section 6.5).
  if (type === 0 && major === 0 && third % 6 === 0 && frame === 4) return 'HTTP/2'
  const text = Buffer.from(start).toString('latin1')
  return OTHER_PROTOCOLS.find(([pattern]) => pattern.test(text))?.[1]
}

/**
 * Sends one request. Follows no redirect. Accepts invalid responses that other clients accept, too (LF line ends,
 * folded headers, a repeated length): the server has done its work, and the request must not be repeated.
 */
export function exchange(url: URL, asked: ExchangeRequest): Exchange {
  const { method, body, transport: way, signal } = asked
  const request = protocolOf(url).request({
    ...hostOf(url),
    method,
    path: `${way.reader ? url.origin : ''}${url.pathname}${url.search}`,
    headers: headersFor(url, asked),
    agent: way.agent,
    insecureHTTPParser: true,
    maxHeaderSize: MAX_HEADERS,
  })
  const explain = watchTransport(request, url, way)
  const start = new PrefixBuffer(MAX_SALVAGED)
  let [before, isReused] = [0, false]
  // Also handles errors of a request that is cancelled before it is sent.
  request.on('error', () => {})
  request.once('socket', (socket) => {
    before = socket.bytesRead
    isReused = request.reusedSocket
    const note = (chunk: Uint8Array): void => start.add(chunk)
    // Listens before the parser, which may refuse these bytes.
    socket.prependListener('data', note)
    request.once('close', () => socket.off('data', note))
  })
  const response = new Promise<StreamedResponse>((resolve, reject) => {
    let incoming: IncomingMessage | undefined
    const abort = (): void => {
      reject(signal?.reason)
      if (incoming) incoming.on('error', () => {}).destroy(toError(signal?.reason))
      else request.destroy()
    }
    // Aborts at once if the signal already has.
    const ignore = signal ? onAbort(signal, abort) : () => {}
    request
      .once('response', (message) => {
        incoming = message
        const refused = refusalOf(message.statusCode ?? 0, way)
        if (!refused) return resolve(responseOf(message))
        message.destroy()
        reject(refused)
      })
      // A response that switches to another protocol (101).
      .once('upgrade', (_, socket) => {
        socket.destroy()
        reject(new NotHttpError(new Uint8Array(), { why: 'it changes to another protocol' }))
      })
      .once('close', ignore)
      .on('error', (error) => {
        const salvaged = salvage(start.bytes, isOfParser(error), request.socket?.readableEnded === true)
        if (salvaged) resolve(salvaged)
        else reject(isOfParser(error) ? notHttp(start.bytes, error) : explain(error))
      })
      .end(body)
  })
  return {
    response,
    isConnected: () => request.socket?.connecting === false,
    isStale: () => isReused && (request.socket?.bytesRead ?? before) === before,
  }
}

/** RFC 9110 section 15.5.8. Such a response comes from the proxy, not from the server. */
const PROXY_AUTHENTICATION_REQUIRED = 407

/** Error for a status that comes from a proxy, or that does not exist (RFC 9110 section 15). */
function refusalOf(status: number, { reader }: Transport): Error | undefined {
  if (reader && status === PROXY_AUTHENTICATION_REQUIRED) return new ProxyAnswerError(status)
  if (status >= 100) return undefined
  return new NotHttpError(new Uint8Array(), {
    why: `since there is no status ${String(status).padStart(3, '0')}`,
  })
}

/** Header lines as a list, which Node sends unchanged. */
function headersFor(
  { host }: URL,
  { lines: own, body, transport: way, keepsAlive = false }: ExchangeRequest,
): string[] {
  const lines = way.reader ? [...proxyCredentials(way.reader), ...own] : own
  const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
  return ['Host', host, 'Connection', keepsAlive ? 'keep-alive' : 'close', ...lines.flat(), ...length]
}

function responseOf(message: IncomingMessage): StreamedResponse {
  const { statusCode: status = 0, rawHeaders } = message
  const lines = rawHeaders.flatMap((name, i): HeaderLine[] =>
    i % 2 === 0 ? [[name.toLowerCase(), rawHeaders[i + 1] ?? '']] : [],
  )
  return { status, lines, header: readerOf(lines), body: message }
}

function readerOf(lines: readonly HeaderLine[]): HeaderReader {
  return (name) => {
    const values = lines.flatMap(([own, value]) => (own === name.toLowerCase() ? [value] : []))
    return values.join(', ') || undefined
  }
}

/** Status line of a final response, as leniently as other clients read it. */
const STATUS_LINE = /^HTTP\/\d(?:\.\d)?[ \t]+([2-9]\d\d)(?!\d)[^\n]*\n/i
/** Interim responses and blank lines before the final response. */
const INTERIM = /^(?:\s+|HTTP\/\d(?:\.\d)?[ \t]+1\d\d(?!\d)[^]*?\n\r?\n)+/i

/**
 * Recovers the final response from the first bytes of one that the parser refused or that broke off, since its status
 * is clear. Undefined if its headers are incomplete, unless the server has closed the connection, after which nothing
 * follows.
 */
function salvage(start: Uint8Array, isRefused: boolean, isEnded: boolean): StreamedResponse | undefined {
  if (!isRefused && !isEnded) return undefined
  const final = Buffer.from(start).toString('latin1').replace(INTERIM, '')
  const [first = '', status] = STATUS_LINE.exec(final) ?? []
  const rest = final.slice(first.length)
  const [, head = isEnded ? rest : undefined, body = ''] = /^((?:[^]*?\n)?)\r?\n([^]*)$/.exec(rest) ?? []
  if (status === undefined || head === undefined) return undefined
  const lines = head.split(/\r?\n/).flatMap((line): HeaderLine[] => {
    const [name = '', ...value] = line.split(':')
    const isHeader = value.length > 0 && /^\S+$/.test(name.trimEnd())
    return isHeader ? [[name.trimEnd().toLowerCase(), value.join(':').trim()]] : []
  })
  return {
    status: Number(status),
    lines,
    header: readerOf(lines),
    body: Readable.from([Buffer.from(body, 'latin1')]),
  }
}

/** True for the error of a response that the parser refuses. */
function isOfParser(error: Error): boolean {
  return errorCode(error)?.startsWith('HPE_') === true
}

function notHttp(start: Uint8Array, cause: Error): NotHttpError {
  const isHttp = Buffer.from(start).toString('latin1').startsWith('HTTP/1.')
  if (!isHttp) return new NotHttpError(start.subarray(0, MAX_PREFIX), { cause })
  const isLong = errorCode(cause) === 'HPE_HEADER_OVERFLOW'
  const why = isLong ? 'its headers have more than 256 KiB' : 'its first lines are not well formed'
  return new NotHttpError(new Uint8Array(), { cause, why })
}

function toError(reason: unknown): Error {
  return isError(reason) ? reason : new Error(String(reason))
}
