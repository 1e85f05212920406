import { MAX_ANSWER } from '../journal/hand-on.js'

const NOTHING = new Uint8Array()

/** Keeps the start of what a target says, {@link MAX_ANSWER} bytes, and lets the rest go. */
export class StartOf {
  readonly #chunks: Uint8Array[] = []
  #room = MAX_ANSWER

  add(chunk: Uint8Array): void {
    if (this.#room === 0) return
    // A copy, so that the few bytes kept do not keep the whole chunk, and its memory may be used again.
    const kept = new Uint8Array(chunk.subarray(0, this.#room))
    this.#room -= kept.byteLength
    this.#chunks.push(kept)
  }

  get bytes(): Uint8Array {
    const [first, ...more] = this.#chunks
    return more.length === 0 ? (first ?? NOTHING) : new Uint8Array(Buffer.concat(this.#chunks))
  }
}
