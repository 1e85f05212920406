import { connect, type Socket } from 'node:net'
import { AnswerReader } from './answer-reader.js'

export interface Answer {
  readonly status: number
  /** A header's value, whatever the case of its name. */
  readonly header: (name: string) => string | undefined
  readonly text: string
}

/** 1 MiB: a thousand times the longest answer that relay gives. */
const MAX_ANSWER = 1_048_576

/** Half a second. Node's servers close a connection after five of silence: one that is just being closed is not used again. */
const FRESH_MS = 500

interface Exchange {
  readonly pieces: Uint8Array[]
  readonly reader: AnswerReader
  readonly resolve: (answer: Answer) => void
  readonly reject: (reason: unknown) => void
}

/** A connection of HTTP/1.1 to a server on this machine, which carries one request after the other. */
export class Line {
  readonly #socket: Socket
  #exchange: Exchange | undefined
  #freeSince: number | undefined

  constructor(host: string, port: number) {
    this.#socket = connect({ host, port, noDelay: true })
      .on('data', (piece) => this.#read(piece))
      .on('end', () => this.#end())
      .on('error', (error) => this.#fail(error))
      // Without effect where the answer is there.
      .on('close', () => this.#fail(Object.assign(new Error('closed'), { code: 'ECONNRESET' })))
  }

  /** Whether it can carry another request: the last one's answer has come, and nothing after it, no longer than half a second ago. */
  get isFree(): boolean {
    const since = this.#freeSince
    return since !== undefined && !this.#socket.destroyed && performance.now() - since < FRESH_MS
  }

  /** Sends a request and takes the whole answer. Not to be called again before it was free. */
  send(request: Uint8Array): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const pieces: Uint8Array[] = []
      let size = 0
      const take = (content: Uint8Array): void => {
        size += content.length
        if (size > MAX_ANSWER) throw new Error('The answer is larger than 1 MiB')
        pieces.push(content)
      }
      this.#freeSince = undefined
      this.#exchange = { pieces, reader: new AnswerReader(take, MAX_ANSWER), resolve, reject }
      this.#socket.write(request)
    })
  }

  /** Leaves it, where it is free, to end with this process or by the other side, whichever is sooner; else ends it. */
  leave(): void {
    if (this.isFree) this.#socket.unref()
    else this.end()
  }

  /** Ends it, also in the middle of a request, which then fails with `why`. */
  end(why?: Error): void {
    this.#socket.destroy(why)
  }

  #read(piece: Buffer): void {
    const reader = this.#exchange?.reader
    // What nobody asked for is no answer to the next request.
    if (!reader) return this.end()
    try {
      reader.read(piece)
    } catch (error) {
      return this.#fail(error)
    }
    if (!reader.isWhole) return
    if (reader.keepsOpen) this.#freeSince = performance.now()
    this.#settle()
  }

  #end(): void {
    if (this.#exchange?.reader.head?.framing === 'close') this.#settle()
    this.end()
  }

  #settle(): void {
    const { pieces, reader, resolve } = this.#exchange ?? {}
    this.#exchange = undefined
    const head = reader?.head
    if (!head || !pieces) return
    resolve?.({
      status: head.status,
      header: (name) => head.headers.get(name.toLowerCase()),
      text: Buffer.concat(pieces).toString(),
    })
  }

  #fail(reason: unknown): void {
    this.#exchange?.reject(reason)
    this.#exchange = undefined
    this.#freeSince = undefined
  }
}
