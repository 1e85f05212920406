import { describe, expect, it } from 'vitest'
import type { DeliveryLine, DeliveryPage } from '../../../src/inspector/api.js'
import {
  firstPage,
  type ListModel,
  MAX_FOLLOWED,
  MAX_HELD,
  withFirstPage,
  withHeld,
  withLive,
  withNextPage,
  withSkipped,
  withoutRemoved,
} from '../../../src/inspector/browser/model/list-model.js'

const line = (n: number, duplicates = 0): DeliveryLine => ({
  n,
  receivedAt: n,
  event: 'push',
  action: null,
  repo: null,
  subject: null,
  size: 1,
  duplicates,
  targets: [],
})

const page = (from: number, to: number, next: number | null = to): DeliveryPage => ({
  deliveries: Array.from({ length: from - to + 1 }, (_, i) => line(from - i)),
  next,
})

const numbers = ({ lines }: ListModel): number[] => lines.map(({ n }) => n)

describe('the part of the list that the page has', () => {
  const start = firstPage(page(10, 8))

  it('grows by pages, none of whose lines is there twice', () => {
    const more = withNextPage(start, page(8, 5, null))
    expect([numbers(more), more.next]).toEqual([[10, 9, 8, 7, 6, 5], null])
  })

  it('takes in what arrives at the top, newest first, and what changed in its place', () => {
    const live = withLive(start, [line(9, 3), line(11), line(12), line(4)], true)
    expect(live.lines.map(({ n, duplicates }) => [n, duplicates])).toEqual([
      [12, 0],
      [11, 0],
      [10, 0],
      [9, 3],
      [8, 0],
    ])
    expect(live.heldCount).toBe(0)
  })

  it('holds back what arrives while the user is scrolled away, until it is asked for', () => {
    const once = withLive(start, [line(11), line(12)], false)
    const held = withLive(once, [line(13), line(12, 5)], false)
    expect([numbers(held), held.heldCount]).toEqual([[10, 9, 8], 3])
    const shown = withHeld(held)
    expect(shown?.lines.slice(0, 4).map(({ n, duplicates }) => [n, duplicates])).toEqual([
      [13, 0],
      [12, 5],
      [11, 0],
      [10, 0],
    ])
    expect(shown?.heldCount).toBe(0)
  })

  it('only counts what it has no room to hold, and then has to be read again', () => {
    const many = Array.from({ length: MAX_HELD + 1 }, (_, i) => line(11 + i))
    const held = withLive(start, many, false)
    expect([held.held.length, held.heldCount, withHeld(held)]).toEqual([MAX_HELD, MAX_HELD + 1, undefined])
    expect(withHeld(withSkipped(start, 1))).toBeUndefined()
    expect(withSkipped(start, 0)).toBe(start)
  })

  it('stays bounded however many arrive, and continues with the page after its last line', () => {
    let model = start
    for (let n = 11; n < 20_000; n += 50)
      model = withLive(
        model,
        Array.from({ length: 50 }, (_, i) => line(n + i)),
        true,
      )
    expect(model.lines.length).toBeLessThanOrEqual(2 * MAX_FOLLOWED)
    expect(model.lines.length).toBeGreaterThanOrEqual(MAX_FOLLOWED)
    const all = numbers(model)
    expect(all).toEqual(Array.from({ length: all.length }, (_, i) => (all[0] ?? 0) - i))
    expect(model.next).toBe(all.at(-1))
  })

  it('replaces what a first page covers when it is read again', () => {
    const before = firstPage(page(10, 3))
    // 9 no longer passes the filter; 12 does.
    const again: DeliveryPage = { deliveries: [line(12), line(10, 1), line(8)], next: 8 }
    expect(numbers(withFirstPage(before, again, true))).toEqual([12, 10, 8, 7, 6, 5, 4, 3])
    const held = withFirstPage(before, again, false)
    expect([numbers(held), held.heldCount]).toEqual([[10, 8, 7, 6, 5, 4, 3], 1])
  })

  it('begins with the first page where that has nothing in common with what it had', () => {
    expect(numbers(withFirstPage(start, page(90, 88), true))).toEqual([90, 89, 88])
    expect(numbers(withFirstPage(start, { deliveries: [], next: null }, true))).toEqual([])
  })

  it('drops what retention removed, which was its end', () => {
    const model = withoutRemoved(start, 9)
    expect([numbers(model), model.next]).toEqual([[10, 9], null])
    expect(withoutRemoved(start, 5).next).toBe(8)
  })
  it('counts what arrived meanwhile without what retention removed', () => {
    const reported = (from: number, to: number) => page(to, from).deliveries.toReversed()
    const held = withLive(start, reported(11, 14), false)
    const counts = (below: number, model = held) => {
      const left = withoutRemoved(model, below)
      return [left.held.map(({ n }) => n), left.heldCount]
    }
    expect(counts(11)).toEqual([[14, 13, 12, 11], 4])
    expect(counts(13)).toEqual([[14, 13], 2])
    expect(counts(15)).toEqual([[], 0])
    // #15 to #17 were skipped: only their number is known.
    const skipped = withLive(withSkipped(held, 3), reported(18, 18), false)
    expect(counts(12, skipped)).toEqual([[18, 14, 13, 12], 7])
    expect(counts(17, skipped)).toEqual([[18], 2])
    expect(counts(19, skipped)).toEqual([[], 0])
  })
})
