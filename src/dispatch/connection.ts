import { connect, type Socket } from 'node:net'
import { onAbort } from '../base/abort.js'
import { AnswerReader } from '../base/answer-reader.js'
import { MAX_READ, type Posted } from './poster.js'
import { StartOf } from './start-of.js'
import { timedOut } from './time-limit.js'

/** Milliseconds. Connections are kept for the rest of a burst only: on one that the other side is just closing, a request is lost. */
const KEPT = 1000

/** What is read is taken at once, so that one buffer does for all connections. */
const read = Buffer.alloc(64 * 1024)

export interface ConnectionOptions {
  /** Milliseconds that an exchange may take, connecting included. */
  readonly limit: number

  /** It can carry another request, while it {@link Connection.isOpen}. */
  onFree(connection: Connection): void
  /** It has ended. */
  onClose(connection: Connection): void
}

interface Exchange {
  readonly answer: AnswerReader
  readonly start: StartOf
  readonly resolve: (posted: Posted) => void
  readonly reject: (reason: unknown) => void
  /** Stops listening to the signal. */
  readonly ignore: () => void
}

/** A connection of HTTP/1.1, which carries one request after the other. It ends by itself when it is free for a second. */
export class Connection {
  readonly #socket: Socket
  readonly #options: ConnectionOptions
  /** Runs until the connection ends, since to begin anew takes less than to make one for each exchange. */
  readonly #timer: NodeJS.Timeout
  /** Begins anew whenever it becomes free. Not the socket's own, which runs during an exchange too. */
  readonly #idle: NodeJS.Timeout
  #exchange: Exchange | undefined
  /** Why it is to end, or has. */
  #why: unknown

  constructor(host: string, port: number, options: ConnectionOptions) {
    this.#options = options
    const callback = (size: number): boolean => {
      this.#read(read.subarray(0, size))
      return true
    }
    this.#timer = setTimeout(() => {
      if (this.#exchange) this.end(timedOut())
    }, options.limit)
    this.#idle = setTimeout(() => {
      if (!this.#exchange) this.end()
    }, KEPT)
    this.#socket = connect({ host, port, noDelay: true, onread: { buffer: read, callback } })
    this.#socket
      .on('error', (error) => (this.#why ??= error))
      // Whoever has said all, and has not answered, will not.
      .on('end', () => this.end())
      .on('close', () => {
        clearTimeout(this.#timer)
        clearTimeout(this.#idle)
        this.#settle()
        options.onClose(this)
      })
  }

  /** Whether it has not ended, as far as is known here. */
  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /**
   * Sends a request, its head with the empty line and its body. Not to be called again before it was free again.
   * @throws what went wrong when there is no answer; a `TimeoutError` when that takes too long, the signal's reason when it aborts.
   */
  async post(head: string, body: Uint8Array, signal: AbortSignal): Promise<Posted> {
    return new Promise((resolve, reject) => {
      const ignore = onAbort(signal, () => this.end(signal.reason))
      const start = new StartOf()
      const answer = new AnswerReader((content) => start.add(content), MAX_READ)
      this.#exchange = { answer, start, resolve, reject, ignore }
      this.#timer.refresh()
      this.#socket.cork()
      this.#socket.write(head, 'latin1')
      this.#socket.write(body)
      this.#socket.uncork()
    })
  }

  /** Ends it, also in the middle of a request. */
  end(why?: unknown): void {
    this.#why ??= why
    this.#socket.destroy()
  }

  #read(piece: Buffer): void {
    const answer = this.#exchange?.answer
    // What nobody asked for is no answer to the next request.
    if (!answer) return this.end()
    try {
      answer.read(piece)
    } catch (error) {
      return this.end(error)
    }
    if (!answer.isComplete) return
    this.#settle()
    // An early answer may come before the request has gone out whole.
    if (!answer.keepsOpen || this.#socket.writableLength > 0) return this.end()
    this.#idle.refresh()
    this.#options.onFree(this)
  }

  /** The status decides as soon as it is there, whatever becomes of the text. */
  #settle(): void {
    if (!this.#exchange) return
    const { answer, start, resolve, reject, ignore } = this.#exchange
    this.#exchange = undefined
    ignore()
    if (!answer.head) return reject(this.#why ?? Object.assign(new Error('closed'), { code: 'ECONNRESET' }))
    const { status, headers } = answer.head
    resolve({ status, start: start.bytes, header: (name) => headers.get(name) })
  }
}
