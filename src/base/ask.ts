import { onAbort, type Cancellable } from './abort.js'
import { type Answer, Line } from './line.js'
import { withoutBrackets } from './loopback.js'

export type { Answer } from './line.js'

export interface Question {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

/** Sends one request, once, and takes the whole answer. Follows no redirect. */
export type Ask = (url: URL, question: Question, options?: Cancellable) => Promise<Answer>

/** What would end a header's line, or is no character of one. */
const NOT_IN_HEADER = /[^\t\x20-\x7e\x80-\xff]/

/**
 * Asks a server on this machine, over plain HTTP and no proxy, on a connection of its own. Without Node's fetch and http: to load
 * and first use them takes longer than all else that a short command does, and 3 ms longer than this (measured).
 * @throws AbortError; an error with a `code` when the connection cannot be made or breaks.
 */
export const ask: Ask = async (url, question, options) => {
  using asker = new Asker()
  return await asker.ask(url, question, options)
}

/** Asks as {@link ask}, one question after the other, those to one server on one connection while it stays open. */
export class Asker implements Disposable {
  #host = ''
  #line: Line | undefined
  #isAsking = false

  readonly ask: Ask = async (url, question, { signal } = {}) => {
    if (signal?.aborted) throw aborted(signal)
    if (this.#isAsking) throw new Error('unreachable: one question after the other')
    const request = requestOf(url, question)
    const line = this.#lineTo(url)
    const ignore = signal && onAbort(signal, () => line.end(aborted(signal)))
    this.#isAsking = true
    try {
      return await line.send(request)
    } finally {
      this.#isAsking = false
      ignore?.()
      if (!line.isFree) line.end()
    }
  }

  #lineTo(url: URL): Line {
    if (this.#line?.isFree && this.#host === url.host) return this.#line
    this[Symbol.dispose]()
    this.#host = url.host
    return (this.#line = new Line(withoutBrackets(url.hostname), Number(url.port || 80)))
  }

  /**
   * Leaves the connection to end with this process, for one that is about to: when a socket is closed, Node compares it with
   * standard error, and opens that for it (2 ms).
   */
  leave(): void {
    this.#line?.leave()
  }

  [Symbol.dispose](): void {
    this.#line?.end()
  }
}

function requestOf(url: URL, { method, headers, body }: Question): Buffer {
  const own = { Host: url.host }
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  let head = `${method} ${url.pathname}${url.search} HTTP/1.1\r\n`
  for (const [name, value] of Object.entries({ ...own, ...headers, ...length })) {
    if (NOT_IN_HEADER.test(value)) throw new Error(`The header ${name} cannot be sent`)
    head += `${name}: ${value}\r\n`
  }
  return Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), Buffer.from(body ?? '')])
}

/** As Node's own functions throw it. */
function aborted({ reason }: AbortSignal): Error {
  return Object.assign(new Error('The operation was aborted', { cause: reason }), {
    name: 'AbortError',
    code: 'ABORT_ERR',
  })
}
