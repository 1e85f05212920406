import { assert, integer, property, uniqueArray } from 'fast-check'
import { expect, it } from 'vitest'
import { BoundedMap } from '../../src/sandbox/bounded.js'

it('holds at most its limit, and removes the oldest first', () => {
  const keys = uniqueArray(integer(), { maxLength: 50 })
  assert(
    property(keys, integer({ min: 1, max: 20 }), (keys, limit) => {
      const map = new BoundedMap<number, number>(limit)
      for (const key of keys) map.set(key, -key)
      expect([...map]).toEqual(keys.slice(-limit).map((key) => [key, -key]))
    }),
  )
})

it('replaces the value of a key without removing another', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2).set('a', 3)
  expect([...map]).toEqual([
    ['a', 3],
    ['b', 2],
  ])
})
