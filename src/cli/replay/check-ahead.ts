import type { Item } from './item.js'

/**
 * Bytes of bodies that are read and checked before anything is sent, 8 MiB: the fixtures of most tests. What comes after is read
 * when its turn comes, so that neither memory nor the wait for the first request grows with the number of files.
 */
export const CHECKED_AHEAD = 8_388_608

/** The items, of which the first have been loaded. @throws RelayError as their loading does */
export function checkAhead(items: readonly Item[]): Item[] {
  let size = 0
  return items.map((item) => {
    if (size >= CHECKED_AHEAD) return item
    const recorded = item.load()
    size += recorded?.body.length ?? 0
    return { name: item.name, load: () => recorded }
  })
}
