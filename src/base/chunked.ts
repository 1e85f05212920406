/** As much as Node takes of headers: so long may a line be that begins a chunk, and all lines that follow the last chunk. */
const MAX_LINES = 16 * 1024

const SIZE = /^([\da-f]{1,12})[ \t]*(?:;.*)?$/i

/** Reads the chunked coding of a text (RFC 9112 section 7.1) in whatever pieces it comes. */
export class Chunked {
  /** What has come of a line. */
  #line = ''
  /** Bytes that are still to come of a chunk. */
  #left = 0
  #wanted: 'size' | 'end of chunk' | 'trailer' | 'nothing' = 'size'
  /** How long the lines after the last chunk were. */
  #trailers = 0

  get isComplete(): boolean {
    return this.#wanted === 'nothing'
  }

  /**
   * Gives what the piece has of the text to `add`, and tells how many bytes of the piece belong to the coding.
   * @throws Error when it is not the chunked coding.
   */
  read(piece: Buffer, add: (content: Buffer) => void): number {
    let at = 0
    while (at < piece.length && !this.isComplete) {
      if (this.#left > 0) {
        const content = piece.subarray(at, at + this.#left)
        add(content)
        at += content.length
        this.#left -= content.length
      } else {
        const feed = piece.indexOf('\n', at)
        const end = feed === -1 ? piece.length : feed + 1
        this.#line += piece.toString('latin1', at, end)
        at = end
        if (this.#trailers + this.#line.length > MAX_LINES) throw wrong()
        if (feed !== -1) this.#endLine()
      }
    }
    return at
  }

  #endLine(): void {
    if (!this.#line.endsWith('\r\n')) throw wrong()
    const line = this.#line.slice(0, -2)
    this.#line = ''
    if (this.#wanted === 'size') this.#begin(SIZE.exec(line)?.[1])
    else if (this.#wanted === 'end of chunk') {
      if (line !== '') throw wrong()
      this.#wanted = 'size'
    } else {
      this.#trailers += line.length + 2
      if (line === '') this.#wanted = 'nothing'
    }
  }

  #begin(size: string | undefined): void {
    if (size === undefined) throw wrong()
    this.#left = Number.parseInt(size, 16)
    this.#wanted = this.#left === 0 ? 'trailer' : 'end of chunk'
  }
}

function wrong(): Error {
  return new Error('what it answers is not HTTP/1: its chunks are not right')
}
