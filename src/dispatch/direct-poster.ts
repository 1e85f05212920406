import { withoutBrackets } from '../base/loopback.js'
import type { Header } from '../journal/delivery.js'
import { Connection } from './connection.js'
import { isWritable } from './forwarded-headers.js'
import type { Posted, Poster, PosterOptions } from './poster.js'

/**
 * Posts to an http address without a proxy, over connections of its own, as few as there are requests at once. Why not by a
 * library: docs/decisions/015.
 */
export class DirectPoster implements Poster {
  readonly #host: string
  readonly #port: number
  readonly #limit: number
  /** The request line, and the headers that are not the caller's. */
  readonly #top: string
  readonly #open = new Set<Connection>()
  /** The one that was used last comes last, and is used next, so that those not needed any more end. */
  readonly #free: Connection[] = []
  #closed: (() => void) | undefined

  constructor({ hostname, host, port, pathname, search }: URL, { limit }: PosterOptions) {
    this.#limit = limit
    this.#host = withoutBrackets(hostname)
    this.#port = port === '' ? 80 : Number(port)
    this.#top = `POST ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
  }

  async post(headers: readonly Header[], body: Uint8Array, signal: AbortSignal): Promise<Posted> {
    signal.throwIfAborted()
    if (this.#closed) throw new Error('nothing more is posted')
    // First, since a connection that is taken and then not used would not come back.
    const head = this.#headOf(headers, body)
    return this.#connection().post(head, body, signal)
  }

  /** Lets what is under way end. */
  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#closed = () => {
        if (this.#open.size === 0) resolve()
      }
      for (const connection of this.#free) connection.end()
      this.#closed()
    })
  }

  #headOf(headers: readonly Header[], body: Uint8Array): string {
    let head = this.#top
    for (const [name, value] of headers) {
      if (!isWritable(name, value)) throw new Error(`the header ${name} cannot be sent`)
      head += `${name}: ${value}\r\n`
    }
    return `${head}content-length: ${body.byteLength}\r\n\r\n`
  }

  #connection(): Connection {
    for (let free = this.#free.pop(); free; free = this.#free.pop()) if (free.isOpen) return free
    return this.#connect()
  }

  #connect(): Connection {
    const connection = new Connection(this.#host, this.#port, {
      limit: this.#limit,
      onFree: (freed) => {
        if (this.#closed) freed.end()
        else this.#free.push(freed)
      },
      onClose: (closed) => {
        this.#open.delete(closed)
        const at = this.#free.indexOf(closed)
        if (at !== -1) this.#free.splice(at, 1)
        this.#closed?.()
      },
    })
    this.#open.add(connection)
    return connection
  }
}
