/**
 * Error for a body or input that is larger than its limit. The message names the limit and quotes none of the content.
 */
export class TooManyBytes extends Error {
  override readonly name = 'TooManyBytes'

  constructor(limit: number) {
    super(`more than ${limit} bytes`)
  }
}

/**
 * Reads a whole stream: a response body, standard input or a file.
 * @param limit in bytes; reading stops there, which closes the stream's connection.
 * @throws TooManyBytes beyond the limit; the stream's own error.
 */
export async function readBounded(stream: AsyncIterable<Uint8Array>, limit: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.byteLength
    if (size > limit) throw new TooManyBytes(limit)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Default size of {@link PrefixBuffer}, in bytes: enough of a target's response to recognize it. */
export const MAX_PREFIX = 4096

const NOTHING = new Uint8Array()

/** Collects the first bytes of a response or an output, and drops the rest. */
export class PrefixBuffer {
  readonly #chunks: Uint8Array[] = []
  #room: number

  constructor(limit = MAX_PREFIX) {
    this.#room = limit
  }

  add(chunk: Uint8Array): void {
    if (this.#room === 0) return
    // Copied, so that these few bytes do not keep the whole chunk in memory.
    const start = new Uint8Array(chunk.subarray(0, this.#room))
    this.#room -= start.byteLength
    this.#chunks.push(start)
  }

  /** True once all further bytes are dropped. */
  get isFull(): boolean {
    return this.#room === 0
  }

  get bytes(): Uint8Array {
    const [first, ...more] = this.#chunks
    return more.length === 0 ? (first ?? NOTHING) : new Uint8Array(Buffer.concat(this.#chunks))
  }
}
