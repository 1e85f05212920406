import type { Recorded } from '../../journal/fixture.js'

/** Something to be sent. */
export interface Item {
  /** What its line calls it: a file, `#7`. */
  readonly name: string
  /** Undefined when it is gone by now, as an old entry may be. */
  load(): Recorded | undefined
}
