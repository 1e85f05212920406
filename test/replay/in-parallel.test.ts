import { describe, expect, it } from 'vitest'
import { inParallel } from '../../src/replay/in-parallel.js'

async function* each<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items
}

describe('work in parallel', () => {
  it('takes items in order, only when their work starts, and never more at once', async () => {
    let now = 0
    let most = 0
    const taken: number[] = []
    async function* items(): AsyncGenerator<number> {
      for (let i = 0; i < 20; i++) {
        taken.push(i)
        yield i
      }
    }
    const done: number[] = []
    await inParallel(items(), 3, async (item) => {
      most = Math.max(most, ++now)
      expect(taken.length).toBeLessThanOrEqual(done.length + 3)
      await new Promise((resolve) => setImmediate(resolve))
      now -= 1
      done.push(item)
      return true
    })
    expect([most, done]).toEqual([3, taken])
  })

  it('ends at the first false or failure, once the pending work has ended', async () => {
    const done: number[] = []
    const work = async (item: number): Promise<boolean> => {
      await new Promise((resolve) => setImmediate(resolve))
      done.push(item)
      if (item === 6) throw new Error('six')
      return item !== 3
    }
    await inParallel(each([1, 2, 3, 4, 5, 6]), 2, work)
    expect(done).toEqual([1, 2, 3, 4])
    await expect(inParallel(each([5, 6, 7, 8, 9]), 2, work)).rejects.toThrow('six')
    expect(done.slice(4, 6)).toEqual([5, 6])
    expect(done).not.toContain(9)
  })
})
