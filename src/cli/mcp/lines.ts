import { Transform, type TransformCallback } from 'node:stream'

const LINE_FEED = 0x0a

/**
 * Passes on whole lines, since a line may arrive in many pieces. The reader of messages copies everything it has at each
 * further piece, which takes seconds for a message of 16 MiB. A line longer than `limit` bytes is passed on before its end,
 * so that the reader refuses it. An unwanted whole line is left out.
 */
export class WholeLines extends Transform {
  readonly #limit: number
  readonly #isWanted: (line: Buffer) => boolean
  #pieces: Uint8Array[] = []
  #length = 0

  constructor(limit: number, isWanted: (line: Buffer) => boolean = () => true) {
    super()
    this.#limit = limit
    this.#isWanted = isWanted
  }

  override _transform(piece: Uint8Array, _: BufferEncoding, done: TransformCallback): void {
    const end = piece.lastIndexOf(LINE_FEED) + 1
    if (end > 0) this.#pass(piece.subarray(0, end))
    const rest = piece.subarray(end)
    if (rest.length > 0) this.#hold(rest)
    if (this.#length > this.#limit) this.#pass()
    done()
  }

  override _flush(done: TransformCallback): void {
    if (this.#length > 0) this.#pass()
    done()
  }

  #hold(piece: Uint8Array): void {
    this.#pieces.push(piece)
    this.#length += piece.length
  }

  #pass(...last: readonly Uint8Array[]): void {
    const lines = Buffer.concat([...this.#pieces, ...last])
    if (lines.at(-1) === LINE_FEED) this.#passWhole(lines)
    else this.push(lines)
    this.#pieces = []
    this.#length = 0
  }

  #passWhole(lines: Buffer): void {
    for (let start = 0; start < lines.length;) {
      const end = lines.indexOf(LINE_FEED, start) + 1
      const line = lines.subarray(start, end)
      if (this.#isWanted(line)) this.push(line)
      start = end
    }
  }
}
