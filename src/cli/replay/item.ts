import type { Recorded } from '../../journal/fixture.js'

/** Something to be sent. */
export interface Item {
  /** What its line calls it: a file, `#7`. */
  readonly name: string
  /** Reads it; undefined when it is gone by now, as an old entry may be. @throws RelayError naming the file, when it is wrong */
  load(): Recorded | undefined
}
