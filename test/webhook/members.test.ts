import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { members } from '../../src/webhook/members.js'

/** What members gave or threw, to compare as a whole. */
function outcome(json: string): unknown {
  try {
    return members(json)
  } catch (error) {
    return error
  }
}

const refused = new RelayError('invalid_event', 'Invalid event')
const wide = (count: number): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [n, n])))

describe('members', () => {
  it.each([
    ['{}', []],
    [' { } ', []],
    ['{"a":1}', [['a', '1']]],
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
    ['{"a":{"a":{"a":[{"a":1}]}}}', [['a', '{"a":{"a":[{"a":1}]}}']]],
  ] as const)('reads %s', (json, expected) => {
    expect([...members(json)]).toEqual(expected)
  })

  it.each([
    '',
    'x',
    '[]',
    'null',
    '"{}"',
    '1',
    '{"a":1',
    '{"a":1}}',
    `{"a":${'['.repeat(1001)}${']'.repeat(1001)}}`,
  ])('refuses %s', (json) => {
    expect(outcome(json)).toEqual(refused)
  })

  it('reads 10,000 members and refuses more', () => {
    expect(members(wide(10_000)).size).toBe(10_000)
    expect(outcome(wide(10_001))).toEqual(refused)
  })

  it('agrees with JSON.parse on every object', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(0, 1, '\t'),
        (object, indent) => {
          const json = JSON.stringify(object, null, indent)
          const parsed = [...members(json)].map(([name, text]) => [name, JSON.parse(text) as unknown])
          expect(Object.fromEntries(parsed)).toEqual(JSON.parse(json))
        },
      ),
    )
  })
})
