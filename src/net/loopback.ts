import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http'
import type { Cancellable } from '../base/wait.js'
import { readBounded } from '../base/bytes.js'

interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

export interface HttpResponse {
  readonly status: number
  /** Returns a header's value. Ignores the case of its name. */
  readonly header: (name: string) => string | undefined
  readonly text: string
}

/**
 * Sends a request once, without retries, and reads the whole response. Follows no redirect.
 * @throws AbortError when the signal aborts; TooManyBytes for a response over 1 MiB; an Error with a `code` when
 * connecting fails or the connection breaks
 */
export type SendLoopback = (url: URL, request: HttpRequest, options?: Cancellable) => Promise<HttpResponse>

/** 1 MiB: a thousand times relay's longest response. */
const MAX_ANSWER = 1_048_576

/**
 * HTTP client for this machine, without a proxy. Uses `node:http`, because loading undici takes longer than a short
 * command does.
 */
export function createLoopbackClient(): Disposable & { readonly send: SendLoopback } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    async send(url, { method, headers, body }, { signal } = {}) {
      const incoming = await responseTo(httpRequest(url, { method, headers, agent, signal }).end(body))
      return {
        status: incoming.statusCode ?? 0,
        header: (name) => [incoming.headers[name.toLowerCase()]].flat()[0],
        text: String(await readBounded(incoming, MAX_ANSWER)),
      }
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
