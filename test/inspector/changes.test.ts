import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createChanges, MAX_CHANGES } from '../../src/inspector/changes.js'

describe('the changes of entries', () => {
  it('gives each entry once, in the order of its last change', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 })), fc.nat(30), (numbers, seen) => {
        const changes = createChanges()
        for (const n of numbers) changes.add(n)
        expect(changes.latest).toBe(numbers.length)
        const later = numbers.slice(seen)
        const last = [...new Set(later.toReversed())].toReversed()
        expect(changes.since(seen)).toEqual(seen <= numbers.length ? last : undefined)
      }),
    )
  })

  it('no longer knows the oldest of too many', () => {
    const changes = createChanges()
    const count = 5 * MAX_CHANGES + 3
    for (let n = 1; n <= count; n++) changes.add(n)
    expect(changes.latest).toBe(count)
    expect(changes.since(count - 2)).toEqual([count - 1, count])
    expect(changes.since(count - MAX_CHANGES)).toHaveLength(MAX_CHANGES)
    expect(changes.since(count - 2 * MAX_CHANGES)).toBeUndefined()
    expect(changes.since(Number.NaN)).toBeUndefined()
  })
})
