import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { REFUSED_LIMITS, type RefusedKind, RefusedList } from '../../src/webhook/refused.js'

const KINDS = ['no_signature', 'invalid_signature', 'too_large'] as const
const refused = (kind: RefusedKind, length = 0) => ({
  at: 1000,
  via: 'tunnel' as const,
  status: 401,
  kind,
  reason: () => Promise.resolve('unverifiable'),
  event: 'push',
  deliveryId: 'd-1',
  headers: [],
  body: new Uint8Array(length),
  size: length,
})

describe('the list of refused requests', () => {
  it('gives each a number and keeps the start of its body', () => {
    const list = new RefusedList({ ...REFUSED_LIMITS, body: 20 })
    const [short, long] = [refused('no_signature', 20), refused('too_large', 21)]
    const kept = { ...long, id: 2, body: new Uint8Array(20) }
    expect([short, long].map((one) => list.add(one))).toEqual([{ ...short, id: 1 }, kept])
    expect([list.list().map(({ id }) => id), list.get(2), list.get(3)]).toEqual([[1, 2], kept, undefined])
  })

  it('holds a hundred, 256 KiB of each body, and 8 MiB in all', () => {
    const [many, large] = [new RefusedList(), new RefusedList()]
    for (let i = 0; i < 101; i++) many.add(refused('no_signature'))
    for (let i = 0; i < 33; i++) large.add(refused('too_large', 262_145))
    const kept = large.list()
    expect([many.list().length, many.get(1)]).toEqual([100, undefined])
    expect([kept.length, kept[0]?.id]).toEqual([32, 2])
    expect(kept.reduce((sum, { body }) => sum + body.length, 0)).toBe(8_388_608)
  })

  it('keeps the rare ones through a flood of others, and counts all', () => {
    const list = new RefusedList({ ...REFUSED_LIMITS, entries: 3 })
    list.add(refused('invalid_signature'))
    for (let i = 0; i < 1000; i++) list.add(refused('no_signature'))
    expect(list.list().map(({ id }) => id)).toEqual([1, 1000, 1001])
    expect(list.counts()).toEqual({ invalid_signature: 1, no_signature: 1000 })
  })

  it('stays within its limits, whatever comes, and in order', () => {
    const some = fc.array(fc.tuple(fc.constantFrom(...KINDS), fc.nat({ max: 30 })))
    fc.assert(
      fc.property(some, (given) => {
        const list = new RefusedList({ entries: 5, body: 20, total: 60 })
        for (const [kind, length] of given) list.add(refused(kind, length))
        const kept = list.list()
        const total = kept.reduce((sum, { body }) => sum + body.length, 0)
        expect([
          kept.length <= 5,
          kept.length >= Math.min(given.length, 3),
          total <= 60,
          kept.map(({ id }) => id),
        ]).toEqual([true, true, true, kept.map(({ id }) => id).toSorted((one, other) => one - other)])
      }),
    )
  })
})
