import { connect, type Socket } from 'node:net'
import { AnswerReader } from './answer-reader.js'
import type { Limits, Posted } from './poster.js'
import { limitTo } from './time-limit.js'

/** Milliseconds. Connections are kept for the rest of a burst only: on one that the other side is just closing, a request is lost. */
const KEPT = 1000

/** What is read is taken at once, so that one buffer does for all connections. */
const read = Buffer.alloc(64 * 1024)

export interface ConnectionEvents {
  /** It can carry another request, while it {@link Connection.isOpen}. */
  onFree(connection: Connection): void
  /** It has ended. */
  onClose(connection: Connection): void
}

interface Exchange {
  readonly answer: AnswerReader
  readonly resolve: (posted: Posted) => void
  readonly reject: (reason: unknown) => void
  /** Takes back the time limit. */
  readonly unlimit: () => void
}

/** A connection of HTTP/1.1, which carries one request after the other. It ends by itself when it is free for a second. */
export class Connection {
  readonly #socket: Socket
  readonly #events: ConnectionEvents
  #exchange: Exchange | undefined
  /** Why it is to end, or has. */
  #why: unknown

  constructor(host: string, port: number, events: ConnectionEvents) {
    this.#events = events
    const callback = (size: number): boolean => {
      this.#read(read.subarray(0, size))
      return true
    }
    this.#socket = connect({ host, port, noDelay: true, onread: { buffer: read, callback } })
    this.#socket
      .setTimeout(KEPT, () => {
        if (!this.#exchange) this.end()
      })
      .on('error', (error) => (this.#why ??= error))
      // Whoever has said all, and has not answered, will not.
      .on('end', () => this.end())
      .on('close', () => {
        this.#settle()
        events.onClose(this)
      })
  }

  /** Whether it has not ended, as far as is known here. */
  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /**
   * Sends a request, its head with the empty line and its body. Not to be called again before it was free again.
   * @throws what went wrong when there is no answer; as {@link limitTo} has it when that takes too long.
   */
  async post(head: string, body: Uint8Array, { limit, signal }: Limits): Promise<Posted> {
    return new Promise((resolve, reject) => {
      const unlimit = limitTo(limit, signal, (reason) => this.end(reason))
      this.#exchange = { answer: new AnswerReader(), resolve, reject, unlimit }
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
    if (answer.keepsOpen && this.#socket.writableLength === 0) this.#events.onFree(this)
    else this.end()
  }

  /** The status decides as soon as it is there, whatever becomes of the text. */
  #settle(): void {
    if (!this.#exchange) return
    const { answer, resolve, reject, unlimit } = this.#exchange
    this.#exchange = undefined
    unlimit()
    if (!answer.head) return reject(this.#why ?? Object.assign(new Error('closed'), { code: 'ECONNRESET' }))
    const { status, headers } = answer.head
    resolve({ status, start: answer.start, header: (name) => headers.get(name) })
  }
}
