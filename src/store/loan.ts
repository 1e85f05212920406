import { asBinary } from 'lmdb'

/** What lmdb takes for a value: where in which memory it begins and ends. */
interface Place {
  readonly start: number
  readonly end: number
  buffer: ArrayBufferLike | undefined
  /** Set by lmdb, from the buffer. */
  address: number
}

/** Below it a value is not worth a place of its own, in bytes. */
const LARGE = 1024

/**
 * Values lent to lmdb for a commit. lmdb keeps each value in an entry of a list whose done entries it lets go; but one that has
 * grown old keeps all that come after it from the garbage collector's quick rounds, and their values with them. A value that was
 * lent is gone when the loan ends. Measured: a tenth of the processor time for deliveries of 7 KB and of 1 MiB.
 */
export class Loan {
  readonly #places: Place[] = []

  lend(value: Uint8Array): Uint8Array {
    if (value.length < LARGE) return value
    const { byteOffset: start, length, buffer } = value
    const place: Place = { start, end: start + length, buffer, address: 0 }
    this.#places.push(place)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- lmdb's own encoders give it such places for bytes
    return asBinary(place as unknown as Uint8Array) as unknown as Uint8Array
  }

  /** To be called when the commit is done: only then has lmdb no more use for the values. */
  end(): void {
    for (const place of this.#places) place.buffer = undefined
  }
}
