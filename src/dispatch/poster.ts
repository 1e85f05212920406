import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { isLoopback } from '../base/loopback.js'
import type { Header } from '../journal/delivery.js'
import { StartOf } from './start-of.js'

/** What came back. */
export interface Posted {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** How the answer's text begins. */
  readonly start: Uint8Array
}

export interface Poster extends AsyncDisposable {
  /**
   * Posts once, byte for byte. The status decides as soon as it is there: what then goes wrong with the answer's text
   * changes nothing.
   * @throws what undici does when there is no answer; the signal's reason when it aborts before.
   */
  post(headers: readonly Header[], body: Uint8Array, signal: AbortSignal): Promise<Posted>
}

/** An answer is read to its end up to this many bytes, so that its connection can be used again; past it, it is cut off. */
const MAX_READ = 256 * 1024

const OPTIONS = {
  // Connections are kept for the rest of a burst only: on one that the other side is just closing, a request is lost.
  keepAliveTimeout: 1000,
  keepAliveMaxTimeout: 1000,
  // The caller's limit is the only one.
  headersTimeout: 0,
  bodyTimeout: 0,
}

/**
 * Posts to one address. Redirects are not followed. Any address but this machine's own is reached through the proxy that
 * HTTP_PROXY, HTTPS_PROXY and NO_PROXY name. Connections are as many as requests at once, or at most `connections`.
 */
export function openPoster(url: string, connections?: number): Poster {
  const { origin, pathname, search, hostname } = new URL(url)
  const direct = isLoopback(hostname)
  let opened: Promise<Dispatcher> | undefined
  return {
    async post(headers, body, signal) {
      const pool = await (opened ??= open(direct, connections))
      signal.throwIfAborted()
      const lines = direct ? headers.flat() : grouped(headers)
      const request = { origin, path: `${pathname}${search}`, method: 'POST', headers: lines, body } as const
      return new Promise((resolve, reject) => {
        pool.dispatch(request, new Exchange(signal, resolve, reject))
      })
    },
    async [Symbol.asyncDispose]() {
      await (await opened)?.close()
    },
  }
}

async function open(direct: boolean, connections: number | undefined): Promise<Dispatcher> {
  const { Agent, EnvHttpProxyAgent } = await import('undici')
  const options = { ...OPTIONS, ...(connections !== undefined && { connections }) }
  return direct ? new Agent(options) : new EnvHttpProxyAgent(options)
}

/** Not by undici's own `request`, which makes a stream of each answer that nobody here reads as one. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #signal: AbortSignal
  readonly #resolve: (posted: Posted) => void
  readonly #reject: (reason: unknown) => void
  readonly #start = new StartOf()
  #head: Pick<Posted, 'status' | 'headers'> | undefined
  #read = 0
  #abort = (): void => {}

  constructor(signal: AbortSignal, resolve: (posted: Posted) => void, reject: (reason: unknown) => void) {
    this.#signal = signal
    this.#resolve = resolve
    this.#reject = reject
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#abort = () => controller.abort(toError(this.#signal.reason))
    this.#signal.addEventListener('abort', this.#abort)
    if (this.#signal.aborted) this.#abort()
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Below that the answer is still to come.
    if (status >= 200) this.#head = { status, headers }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#start.add(chunk)
    this.#read += chunk.byteLength
    if (this.#read > MAX_READ) controller.abort(new Error('enough was read'))
  }

  onResponseEnd(): void {
    this.#end(new Error('unreachable: an answer without a status'))
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#end(error)
  }

  #end(error: Error): void {
    this.#signal.removeEventListener('abort', this.#abort)
    if (this.#head) this.#resolve({ ...this.#head, start: this.#start.bytes })
    else this.#reject(error)
  }
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('aborted', { cause: reason })
}

/** As an object, because undici's proxy agent makes one of a list and would keep one line of each name only. */
function grouped(headers: readonly Header[]): Record<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers) lines.set(name, [...(lines.get(name) ?? []), value])
  return Object.fromEntries(lines)
}
