import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { layOut, rowText } from '../../../src/inspector/browser/model/raw-lines.js'
import { scrollToRow, windowOf } from '../../../src/inspector/browser/model/window-of.js'

describe('the rows in view', () => {
  it('are those of the viewport and some around it', () => {
    expect(windowOf({ count: 1000, rowHeight: 10 }, { top: 500, height: 100 })).toEqual({ from: 42, to: 68 })
  })

  it('stay within the list, and cover all of the viewport', () => {
    const law = fc.property(
      fc.nat(5000),
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: -2000, max: 300_000 }),
      fc.nat(3000),
      (count, rowHeight, top, height) => {
        const { from, to } = windowOf({ count, rowHeight }, { top, height })
        expect(0 <= from && from <= to && to <= count).toBe(true)
        const first = Math.max(0, Math.floor(top / rowHeight))
        const last = Math.min(count - 1, Math.ceil((top + height) / rowHeight) - 1)
        expect(first > last || (from <= first && last < to)).toBe(true)
        expect(to - from).toBeLessThanOrEqual(height / rowHeight + 18)
      },
    )
    fc.assert(law)
  })

  it('are none of an empty list, or before its height is known', () => {
    expect(windowOf({ count: 0, rowHeight: 10 }, { top: 0, height: 100 })).toEqual({ from: 0, to: 0 })
    expect(windowOf({ count: 9, rowHeight: 0 }, { top: 0, height: 100 })).toEqual({ from: 0, to: 0 })
  })

  it('scroll as little as brings a row into view', () => {
    const viewport = { top: 100, height: 50 }
    expect([9, 10, 14, 15].map((row) => scrollToRow(row, 10, viewport))).toEqual([-10, 0, 0, 10])
  })
})

describe('raw text in rows', () => {
  const rows = (text: string, columns: number): (string | number)[][] => {
    const lines = layOut(text, columns)
    return lines.starts.map((_, row) => [lines.numbers[row] ?? 0, rowText(lines, row)])
  }

  it('breaks at line feeds, and where a row is full', () => {
    expect(rows('abcdefg\n\nhi\n', 3)).toEqual([
      [1, 'abc'],
      [1, 'def'],
      [1, 'g'],
      [2, ''],
      [3, 'hi'],
      [4, ''],
    ])
    expect(rows('', 3)).toEqual([[1, '']])
    expect(rows('abc', 3)).toEqual([[1, 'abc']])
  })

  it('keeps every character, and no surrogate pair apart', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\n', '😀', '\r', 'é') })
    const law = fc.property(text, fc.integer({ min: 2, max: 9 }), (text, columns) => {
      const found = rows(text, columns)
      const lines = text.split('\n').map((_, i) => found.filter(([number]) => number === i + 1))
      expect(lines.map((parts) => parts.map(([, part]) => part).join(''))).toEqual(text.split('\n'))
      // encodeURIComponent refuses half a pair.
      for (const [, part] of found) expect(() => encodeURIComponent(String(part))).not.toThrow()
    })
    fc.assert(law)
  })
})
