import { MAX_ANSWER } from '../journal/hand-on.js'

/** Keeps the start of what a target says, {@link MAX_ANSWER} bytes, and lets the rest go. */
export class StartOf {
  readonly #chunks: Uint8Array[] = []
  #room = MAX_ANSWER

  add(chunk: Uint8Array): void {
    if (this.#room === 0) return
    // A copy, so that the few bytes kept do not keep the whole chunk.
    const kept = Uint8Array.from(chunk.subarray(0, this.#room))
    this.#room -= kept.byteLength
    this.#chunks.push(kept)
  }

  get bytes(): Uint8Array {
    return Uint8Array.from(Buffer.concat(this.#chunks))
  }
}
