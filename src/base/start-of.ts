/** 4 KiB: enough of a target's response to see what it says. */
export const MAX_START = 4096

const NOTHING = new Uint8Array()

/** Collects the first {@link MAX_START} bytes of a response or an output, and drops the rest. */
export class StartOf {
  readonly #chunks: Uint8Array[] = []
  #room = MAX_START

  add(chunk: Uint8Array): void {
    if (this.#room === 0) return
    // A copy, so that these few bytes do not keep the whole chunk in memory.
    const start = new Uint8Array(chunk.subarray(0, this.#room))
    this.#room -= start.byteLength
    this.#chunks.push(start)
  }

  get bytes(): Uint8Array {
    const [first, ...more] = this.#chunks
    return more.length === 0 ? (first ?? NOTHING) : new Uint8Array(Buffer.concat(this.#chunks))
  }
}
