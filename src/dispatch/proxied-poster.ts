import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { isLoopback } from '../base/loopback.js'
import type { Header } from '../journal/delivery.js'
import { MAX_READ, type Posted, type Poster, type PosterOptions } from './poster.js'
import { StartOf } from './start-of.js'
import { limitTo } from './time-limit.js'

const OPTIONS = {
  // Connections are kept for the rest of a burst only: on one that the other side is just closing, a request is lost.
  keepAliveTimeout: 1000,
  keepAliveMaxTimeout: 1000,
  // The caller's limit is the only one.
  headersTimeout: 0,
  bodyTimeout: 0,
}

/** Posts with undici: over TLS, and through the proxy that the environment names, but for this machine's own addresses. */
export class ProxiedPoster implements Poster {
  readonly #url: URL
  readonly #limit: number
  #opened: Promise<Dispatcher> | undefined

  constructor(url: URL, { limit }: PosterOptions) {
    this.#url = url
    this.#limit = limit
  }

  async post(headers: readonly Header[], body: Uint8Array, signal: AbortSignal): Promise<Posted> {
    const { origin, pathname, search, hostname } = this.#url
    const pool = await (this.#opened ??= open(isLoopback(hostname)))
    signal.throwIfAborted()
    const path = `${pathname}${search}`
    const request = { origin, path, method: 'POST', headers: grouped(headers), body } as const
    return new Promise((resolve, reject) => {
      pool.dispatch(request, new Exchange(this.#limit, signal, resolve, reject))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#opened)?.close()
  }
}

async function open(direct: boolean): Promise<Dispatcher> {
  const { Agent, EnvHttpProxyAgent } = await import('undici')
  return direct ? new Agent(OPTIONS) : new EnvHttpProxyAgent(OPTIONS)
}

/** Not by undici's own `request`, which makes a stream of each answer that nobody here reads as one. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (posted: Posted) => void
  readonly #reject: (reason: unknown) => void
  readonly #start = new StartOf()
  readonly #unlimit: () => void
  #controller: Dispatcher.DispatchController | undefined
  #head: Pick<Posted, 'status' | 'header'> | undefined
  #read = 0
  /** Why it was given up, perhaps before it began. */
  #why: Error | undefined

  constructor(
    limit: number,
    signal: AbortSignal,
    resolve: (posted: Posted) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#resolve = resolve
    this.#reject = reject
    this.#unlimit = limitTo(limit, signal, (reason) => {
      this.#why = toError(reason)
      this.#controller?.abort(this.#why)
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#why) controller.abort(this.#why)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Below that the answer is still to come.
    if (status >= 200)
      this.#head = { status, header: (name) => [headers[name] ?? []].flat().join(', ') || undefined }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#start.add(chunk)
    this.#read += chunk.byteLength
    if (this.#read > MAX_READ) controller.abort(new Error('enough was read'))
  }

  onResponseEnd(): void {
    this.#end()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#end(error)
  }

  #end(error?: Error): void {
    this.#unlimit()
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
