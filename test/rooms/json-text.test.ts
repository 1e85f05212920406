import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { layOut, lineOf, MAX_DEPTH } from '../../src/json/text.js'

describe('layOut', () => {
  it('writes as JSON.stringify does, whatever the layout was', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t', '\r\n '), (value, space) => {
        expect(layOut(JSON.stringify(value, null, space))).toBe(JSON.stringify(value, null, 2))
      }),
    )
  })

  it('keeps numbers, strings, names and their order as written', () => {
    const written = String.raw`{"n":12345678901234567890,"2":1E+2,"1":-0.0,"s":"\u00e9\/\\","s":"\"{,:}[]"}`
    expect(layOut(written).split('\n')).toEqual([
      '{',
      '  "n": 12345678901234567890,',
      '  "2": 1E+2,',
      '  "1": -0.0,',
      String.raw`  "s": "\u00e9\/\\",`,
      String.raw`  "s": "\"{,:}[]"`,
      '}',
    ])
  })
})

it('leaves text as it is, and finds a line of it, where more than a thousand arrays and objects are open', () => {
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  expect(layOut(nested(MAX_DEPTH)).split('\n')).toHaveLength(2 * MAX_DEPTH - 1)
  const deeper = nested(MAX_DEPTH + 2)
  expect([layOut(deeper), lineOf(deeper)]).toEqual([deeper, 1])
})

describe('lineOf malformed text', () => {
  it('finds the line into which something foreign was put', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.nat(),
        fc.constantFrom('@', '}{', "'a'", '01', 'tru'),
        (value, at, foreign) => {
          const text = JSON.stringify({ value, last: [1] }, null, 1).split('\n')
          const line = 1 + (at % (text.length - 1))
          text.splice(line, 0, foreign)
          expect(lineOf(text.join('\n'))).toBe(line + 1)
        },
      ),
    )
  })
})

describe('lineOf a path', () => {
  const text = `
{ "a": 1,
  "b": [
    {},
    { "c": "[{,\\"\\\\", "a":
      2, "d e": [1,
        2] }
  ],
  "a": 3 }`

  it.each([
    [[], 2],
    [['a'], 9],
    [['b'], 3],
    [['b', 0], 4],
    [['b', 1], 5],
    [['b', 1, 'c'], 5],
    [['b', 1, 'd e', 1], 7],
    [['b', 1, 'missing', 'x'], 5],
    [['b', 7], 3],
    [['missing'], 2],
  ])('%j: line %i', (path, line) => {
    expect(lineOf(text, path)).toBe(line)
  })

  it('finds each member of any object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), fc.nat(), (object, n) => {
        const keys = Object.keys(object)
        const key = keys[n % keys.length] ?? ''
        const given = Object.entries(object).map(
          ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
        )
        expect(lineOf(`{\n${given.join(',\n')}\n}`, [key])).toBe(2 + keys.indexOf(key))
      }),
    )
  })
})
