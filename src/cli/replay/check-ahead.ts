import type { Item } from './item.js'

/**
 * Bytes of fixtures that are read and checked before anything is sent, 8 MiB: those of most tests. What comes after is read when
 * its turn comes, so that neither memory nor the wait for the first request grows with what all of them hold.
 */
export const CHECKED_AHEAD = 8_388_608
/** What one takes besides its body, in bytes: headers and names. */
const BESIDES = 4096

/** Loads the first of the items it is given, and leaves the others as they are. @throws RelayError as their loading does */
export function createCheckAhead(): (item: Item) => Item {
  let size = 0
  return (item) => {
    if (size >= CHECKED_AHEAD) return item
    const recorded = item.load()
    size += BESIDES + (recorded?.body.length ?? 0)
    return { name: item.name, load: () => recorded }
  }
}
