import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addressOf, isFiltered, parseAddress, type View } from '../../src/inspector/page/address.js'
import { lineDiff } from '../../src/inspector/page/diff.js'
import { exactTime, formatMs, formatSize, formatTime } from '../../src/inspector/page/format.js'
import { pathAt, pretty } from '../../src/inspector/page/pretty.js'

describe('laid out JSON', () => {
  it('differs in white space alone and names the partner of each bracket', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        const { text, pairs } = pretty(json)
        expect(JSON.parse(text)).toEqual(JSON.parse(json))
        for (const [open, close] of pairs)
          expect(['[]', '{}']).toContain(text.charAt(open) + text.charAt(close))
      }),
    )
  })

  it('goes through a text of 25 million characters, on which a regular expression would overflow the stack', () => {
    const json = `["${'x\\\\'.repeat(8_000_000)}"]`
    expect(pretty(json).text).toHaveLength(json.length + 4)
  })

  it.each([
    ['{"a":1e400,"b":12345678901234567890}', '{\n  "a": 1e400,\n  "b": 12345678901234567890\n}'],
    ['{"__proto__":1,"2":3,"1":4,"1":5}', '{\n  "__proto__": 1,\n  "2": 3,\n  "1": 4,\n  "1": 5\n}'],
    [String.raw`["a\\","\u00e9{","\"["]`, '[\n  "a\\\\",\n  "\\u00e9{",\n  "\\"["\n]'],
    ['[ [ ] , { } ]', '[\n  [],\n  {}\n]'],
    ['[1,', '[\n  1,\n  '],
  ])('shows %s as it was sent', (json, text) => {
    expect(pretty(json).text).toBe(text)
  })

  it.each([
    ['{"issue":{"labels":[{"name":"bug"}]}}', '"bug"', 'issue.labels[0].name'],
    ['{"":{"a b":1}}', '"a b"', '[""]["a b"]'],
    ['[[],[{}],7]', '7', '[2]'],
    ['"whole"', 'whole', ''],
  ])('of %s the path of %s is %s', (json, part, path) => {
    const laid = pretty(json)
    expect(pathAt(laid, laid.text.indexOf(part) + 1)).toBe(path)
  })
})

describe('the difference of two texts', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c d', '{', '}', ''), { maxLength: 30 })

  it('turns one into the other', () => {
    fc.assert(
      fc.property(lines, lines, (one, other) => {
        const [before, after] = [one.join('\n'), other.join('\n')]
        let made = ''
        let at = 0
        for (const { fromA, toA, fromB, toB } of lineDiff(before, after)) {
          made += before.slice(at, fromA) + after.slice(fromB, toB)
          at = toA
        }
        expect(made + before.slice(at)).toBe(after)
      }),
    )
  })

  it('names few changes of two long texts that repeat themselves', () => {
    const text = (changed: number): string => {
      const list = Array.from({ length: 5000 }, (_, i) => ({ i: i % 7, v: i === changed ? 'x' : 'y' }))
      return pretty(JSON.stringify(list)).text
    }
    expect(lineDiff(text(100), text(4000))).toHaveLength(2)
  })
})

describe('the address of a view', () => {
  it.each<[string, View | undefined]>([
    ['/inspect/', { page: 'list', query: {} }],
    [
      '/inspect/?event=push&status=failed&limit=5&text=',
      { page: 'list', query: { event: 'push', status: 'failed' } },
    ],
    ['/inspect/deliveries/12?repo=o%2Fd', { page: 'delivery', n: 12, query: { repo: 'o/d' } }],
    ['/inspect/deliveries/12/compare/7', { page: 'compare', n: 12, other: 7, query: {} }],
    ['/inspect/refused', { page: 'refused' }],
    ['/inspect/refused/3', { page: 'refused', id: 3 }],
    ['/inspect/state', { page: 'state' }],
    ['/inspect/open', { page: 'open' }],
    ['/inspect/deliveries/0', undefined],
    ['/inspect/deliveries/12/compare', undefined],
    ['/inspect/state/1', undefined],
    ['/inspect/nothing', undefined],
  ])('%s', (address, view) => {
    const parse = (text: string): View | undefined => {
      const { pathname, search } = new URL(text, 'http://localhost')
      return parseAddress(pathname, search)
    }
    expect(parse(address)).toEqual(view)
    expect(view && parse(addressOf(view))).toEqual(view)
  })

  it('is filtered by all but the delivery that its list begins before', () => {
    expect([{ before: '5' }, { before: '5', event: 'push' }].map(isFiltered)).toEqual([false, true])
  })
})

describe('what a person reads', () => {
  const now = new Date(2026, 10, 23, 14, 0).getTime()
  const HOUR = 3_600_000

  it.each([
    [formatTime(now - 60_000, now), '13:59:00'],
    [formatTime(new Date(2026, 10, 22, 23, 59).getTime(), now), 'yesterday 23:59'],
    [formatTime(new Date(2026, 10, 12, 9, 5).getTime(), now), '12 Nov 09:05'],
    [formatTime(new Date(2025, 10, 12).getTime(), now), '12 Nov 2025'],
    [exactTime(Date.UTC(2026, 10, 23, 8, 32, 11, 345)), '2026-11-23 14:02:11.345 +05:30'],
    [formatSize(712), '712 B'],
    [formatSize(7270), '7.1 KiB'],
    [formatSize(1_048_576), '1.0 MiB'],
    [formatSize(26_214_400), '25.0 MiB'],
    [formatMs(38), '38 ms'],
    [formatMs(1234), '1.2 s'],
    [formatMs(240_000), '4 min'],
    [formatMs(3 * HOUR), '3 h'],
    [formatMs(48 * HOUR), '2 days'],
  ])('%s is %s', (text, words) => {
    expect(text).toBe(words)
  })
})
