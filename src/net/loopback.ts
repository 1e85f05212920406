import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http'
import type { Cancellable } from '../base/wait.js'
import { readBounded } from '../base/bytes.js'

interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

interface ResponseHead {
  readonly status: number
  /** Returns a header's value. Ignores the case of its name. */
  readonly header: (name: string) => string | undefined
}

export interface HttpResponse extends ResponseHead {
  readonly text: string
}

/** A response whose body is read as it arrives. Reading throws when the signal of its request aborts or the connection breaks. */
export interface HttpStream extends ResponseHead {
  readonly body: AsyncIterable<Buffer>
  /** The whole body. @throws TooManyBytes over 1 MiB; AbortError; an Error with a `code` when the connection breaks */
  readonly text: () => Promise<string>
}

/**
 * Sends a request once, without retries, and reads the whole response. Follows no redirect.
 * @throws AbortError when the signal aborts; TooManyBytes for a response over 1 MiB; an Error with a `code` when
 * connecting fails or the connection breaks
 */
export type SendLoopback = (url: URL, request: HttpRequest, options?: Cancellable) => Promise<HttpResponse>

/** 1 MiB: a thousand times relay's longest response. */
const MAX_ANSWER = 1_048_576

/** Sends one request, once, and resolves once the head of the response is there. @throws as {@link SendLoopback} */
export type OpenLoopback = (url: URL, request: HttpRequest, options?: Cancellable) => Promise<HttpStream>

/**
 * A client for plain HTTP to this machine, without a proxy. On `node:http`: loading undici takes longer than a short command does. Disposing
 * of it closes its connection.
 */
export function createLoopbackClient(): Disposable & {
  readonly send: SendLoopback
  readonly open: OpenLoopback
} {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const open: OpenLoopback = async (url, { method, headers, body }, { signal } = {}) => {
    const incoming = await responseTo(httpRequest(url, { method, headers, agent, signal }).end(body))
    return {
      status: incoming.statusCode ?? 0,
      header: (name) => [incoming.headers[name.toLowerCase()]].flat()[0],
      body: incoming,
      text: async () => String(await readBounded(incoming, MAX_ANSWER)),
    }
  }
  return {
    open,
    async send(url, request, options) {
      const { status, header, text } = await open(url, request, options)
      return { status, header, text: await text() }
    },
    [Symbol.dispose]: () => agent.destroy(),
  }
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // After a response that changes the protocol (101), Node closes the connection without an error.
    const closed = (): void => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' }))
    request.on('response', resolve).on('error', reject).on('close', closed)
  })
}
