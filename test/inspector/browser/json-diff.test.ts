import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { diffHeaders } from '../../../src/inspector/browser/model/header-diff.js'
import { type Change, diffTrees, MAX_CHANGES } from '../../../src/inspector/browser/model/json-diff.js'
import { parseTree } from '../../../src/inspector/browser/model/json-tree.js'

describe('how two JSON texts differ', () => {
  const diff = (before: string, after: string): readonly Change[] =>
    diffTrees(parseTree(before), parseTree(after)).changes

  it('names each value that was changed, added or removed by its path', () => {
    const before = '{"a":1,"b":{"c":"x","gone":[1]},"list":[1,2,3]}'
    const after = '{"a":2,"b":{"c":"x","odd name":null},"list":[1,2,{"n":3}]}'
    expect(diff(before, after)).toEqual([
      { path: 'a', before: '1', after: '2' },
      { path: 'b.gone', before: '[1]' },
      { path: 'b["odd name"]', after: 'null' },
      { path: 'list[2]', before: '3', after: '{"n":3}' },
    ])
  })

  it('compares values, not how they are written', () => {
    expect(diff('{"a":"\\u0041","b":[1,2]}', '{ "b": [ 1, 2 ], "a": "A" }')).toEqual([])
    expect(diff('[12345678901234567890]', '[12345678901234567891]')).toEqual([
      { path: '[0]', before: '12345678901234567890', after: '12345678901234567891' },
    ])
  })

  it('finds an element that was inserted, and not all that follow it', () => {
    expect(diff('[{"a":1},{"a":2},{"a":3}]', '[{"a":1},{"a":9},{"a":2},{"a":3}]')).toEqual([
      { path: '[1]', after: '{"a":9}' },
    ])
  })

  it('names the whole where the two have nothing in common', () => {
    expect(diff('1', '"1"')).toEqual([{ path: '', before: '1', after: '"1"' }])
  })

  it('stops at its limit', () => {
    const numbers = (first: number): string =>
      JSON.stringify(Array.from({ length: 5000 }, (_, i) => first + i * 10))
    const { changes, isCut } = diffTrees(parseTree(numbers(0)), parseTree(numbers(1)))
    expect([changes.length, isCut]).toEqual([MAX_CHANGES, true])
  })

  it('is empty for equal values, whatever their order, and for no others', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        expect(diff(JSON.stringify(one), JSON.stringify(one, null, 1))).toEqual([])
        const isSame = canonical(one) === canonical(other)
        expect(diff(JSON.stringify(one), JSON.stringify(other)).length === 0).toBe(isSame)
      }),
    )
  })
})

describe('how headers differ', () => {
  it('compares them by name in any case', () => {
    const before = [
      ['X-A', '1'],
      ['X-B', '2'],
      ['X-B', '3'],
    ] as const
    const after = [
      ['x-a', '1'],
      ['X-B', '2'],
      ['X-C', '4'],
    ] as const
    expect(diffHeaders(before, after)).toEqual([
      { name: 'x-b', before: '2, 3', after: '2' },
      { name: 'x-c', after: '4' },
    ])
  })
})

/** JSON with the members of its objects in order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  )
}
