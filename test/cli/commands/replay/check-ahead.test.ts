import { describe, expect, it } from 'vitest'
import {
  CHECKED_AHEAD,
  createCheckAhead,
  type Item,
} from '../../../../src/old/commands/replay/select-items.js'

/** An item of so many bytes, and how often it was loaded. */
function counted(size: number): { item: Item; loaded: () => number } {
  let loaded = 0
  const load = async () => {
    loaded++
    return { provider: 'github', event: 'push', deliveryId: 'id', headers: [], body: new Uint8Array(size) }
  }
  return { item: { name: 'a', load }, loaded: () => loaded }
}

describe('createCheckAhead', () => {
  it('loads items until they fill what is checked ahead, and keeps what was checked', async () => {
    const checkAhead = createCheckAhead()
    const all = [0, 1, 2, 3].map(() => counted(CHECKED_AHEAD / 2))
    const items: Item[] = []
    for (const { item } of all) items.push(await checkAhead(item))
    expect(all.map(({ loaded }) => loaded())).toEqual([1, 1, 0, 0])
    expect(await items[0]?.load()).toBe(await items[0]?.load())
    const loadedItems = await Promise.all(items.map((item) => item.load()))
    expect(loadedItems.map((recorded) => recorded?.body.length)).toEqual(Array(4).fill(CHECKED_AHEAD / 2))
    expect(all.map(({ loaded }) => loaded())).toEqual([1, 1, 1, 1])
  })

  it('counts more than bodies, so that no number of small ones is without end', async () => {
    const checkAhead = createCheckAhead()
    const all = Array.from({ length: 10_000 }, () => counted(1))
    for (const { item } of all) await checkAhead(item)
    expect(all.filter(({ loaded }) => loaded() > 0)).toHaveLength(2048)
  })
})
