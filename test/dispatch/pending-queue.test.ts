import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PendingQueue } from '../../src/dispatch/pending-queue.js'

const all = (waiting: PendingQueue): number[] => {
  const found: number[] = []
  waiting.first((n) => {
    found.push(n)
    return false
  })
  return found
}

describe('PendingQueue', () => {
  it('is a sorted set', () => {
    const step = fc.record({ add: fc.boolean(), n: fc.nat(30), since: fc.nat(100) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.nat(100), (steps, instant) => {
        const waiting = new PendingQueue()
        const model = new Map<number, number>()
        for (const { add, n, since } of steps) {
          expect(add ? waiting.add(n, since) : waiting.delete(n)).toBe(model.has(n) !== add)
          if (!add) model.delete(n)
          else if (!model.has(n)) model.set(n, since)
          expect(waiting.size).toBe(model.size)
        }
        const sorted = [...model].toSorted(([one], [other]) => one - other)
        expect(all(waiting)).toEqual(sorted.map(([n]) => n))
        expect(waiting.first((n) => n > 9)).toBe(sorted.find(([n]) => n > 9)?.[0])
        expect(waiting.waitingSince(instant)).toEqual(
          sorted.filter(([, since]) => since <= instant).map(([n]) => n),
        )
      }),
    )
  })

  it('takes and gives a hundred thousand in order in no time', () => {
    const waiting = new PendingQueue()
    const before = performance.now()
    for (let n = 1; n <= 100_000; n++) waiting.add(n, n)
    for (let n = 1; n <= 100_000; n++) waiting.delete(waiting.first(() => true) ?? 0)
    expect(waiting.size).toBe(0)
    expect(performance.now() - before).toBeLessThan(2000)
  })
})
