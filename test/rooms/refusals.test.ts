import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type RefusedKind, RefusedList } from '../../src/webhook/refused.js'

const KINDS = ['no_signature', 'invalid_signature', 'too_large'] as const
const entry = (kind: RefusedKind, length = 0) => ({
  at: 1000,
  via: 'tunnel' as const,
  status: 401,
  kind,
  reason: () => Promise.resolve('unverifiable'),
  source: 'github',
  event: 'push',
  deliveryId: 'd-1',
  headers: [],
  body: new Uint8Array(length),
  size: length,
})

describe('the list itself', () => {
  it('keeps the rare ones through a flood of others, and counts all', () => {
    const list = new RefusedList()
    list.add(entry('invalid_signature'))
    for (let i = 0; i < 1000; i++) list.add(entry('no_signature'))
    expect(list.list().map(({ id }) => id)).toEqual([1, ...Array.from({ length: 99 }, (_, i) => i + 903)])
    expect(list.counts()).toEqual({ invalid_signature: 1, no_signature: 1000 })
  })

  it('holds a hundred, 256 KiB of each body and 8 MiB in all, whatever comes, and in order', () => {
    const of = (max: number) => fc.tuple(fc.constantFrom(...KINDS), fc.nat({ max }))
    const some = fc.array(of(300_000), { maxLength: 150 })
    const few = fc.array(of(20), { minLength: 90, maxLength: 120 })
    fc.assert(
      fc.property(fc.oneof(some, few), (given) => {
        const list = new RefusedList()
        for (const [kind, length] of given) list.add(entry(kind, length))
        const kept = list.list()
        expect(kept.length).toBeLessThanOrEqual(100)
        expect(kept.length).toBeGreaterThanOrEqual(Math.min(given.length, 32))
        expect(kept.reduce((sum, { body }) => sum + body.length, 0)).toBeLessThanOrEqual(8_388_608)
        const ids = kept.map(({ id }) => id)
        expect(ids).toEqual(ids.toSorted((one, other) => one - other))
      }),
      { numRuns: 30 },
    )
  })
})
