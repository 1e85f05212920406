import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { topLevelFields } from '../../src/json/fields.js'

describe('topLevelFields', () => {
  it('returns the texts that JSON.parse turns into the values', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(undefined, 2),
        (object, space) => {
          const fields = topLevelFields(JSON.stringify(object, null, space), Infinity)
          const values = [...fields].map(([name, text]) => [name, JSON.parse(text)] as const)
          expect(new Map(values)).toEqual(new Map(Object.entries(JSON.parse(JSON.stringify(object)))))
        },
      ),
    )
  })

  it.each([
    ['{}', []],
    [' { } ', []],
    [
      '{"a":12345678901234567890,"b":1.0}',
      [
        ['a', '12345678901234567890'],
        ['b', '1.0'],
      ],
    ],
    [
      '{ "a" :\n[1, 2]\t, "b" : {"c": {}} }\n',
      [
        ['a', '[1, 2]'],
        ['b', '{"c": {}}'],
      ],
    ],
    [String.raw`{"\u0062ody":"\"},{:"}`, [['body', String.raw`"\"},{:"`]]],
    [
      '{"a":1,"b":2,"a":3}',
      [
        ['a', '3'],
        ['b', '2'],
      ],
    ],
    [
      '{"__proto__":1,"10":2,"2":3,"":4}',
      [
        ['__proto__', '1'],
        ['10', '2'],
        ['2', '3'],
        ['', '4'],
      ],
    ],
  ] as const)('reads %s', (json, expected) => {
    expect([...topLevelFields(json, 10)]).toEqual(expected)
  })

  it('refuses more fields than the limit', () => {
    expect(() => topLevelFields('{"a":1,"b":2}', 1)).toThrow(RangeError)
  })

  it('takes values as deep as JSON may be, and none deeper', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
    expect(topLevelFields(`{"a":${nested(1000)}}`, 1).get('a')).toBe(nested(1000))
    expect(() => topLevelFields(`{"a":${nested(1001)}}`, 1)).toThrow(RangeError)
  })
})
