import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lineOfError, lineOfField } from '../../src/json/lines.js'

const lines = (text: string): number => text.split('\n').length

describe('lineOfError', () => {
  it('finds nothing wrong in JSON: it is past the end', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(3), (json, indent) => {
        const text = JSON.stringify(JSON.parse(json), null, indent)
        expect(lineOfError(text)).toBe(lines(text))
      }),
    )
  })

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
          expect(lineOfError(text.join('\n'))).toBe(line + 1)
        },
      ),
    )
  })

  it.each([
    ['', 1],
    ['{\n"a": 1,\n}', 3],
    ['{\n"a" 1\n}', 2],
    ['{\n"a": "b\n}', 2],
    ['{\n"a": 1\n', 3],
    ['{}\n{}', 2],
    ['{\n// no\n}', 2],
    ['[1,\n2}', 2],
  ])('%j: line %i', (text, line) => {
    expect(lineOfError(text)).toBe(line)
  })
})

describe('lineOfField', () => {
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
    JSON.parse(text)
    expect(lineOfField(text, path)).toBe(line)
  })

  it('finds each member of any object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), fc.nat(), (object, n) => {
        const keys = Object.keys(object)
        const key = keys[n % keys.length] ?? ''
        const given = Object.entries(object).map(
          ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
        )
        expect(lineOfField(`{\n${given.join(',\n')}\n}`, [key])).toBe(2 + keys.indexOf(key))
      }),
    )
  })

  it('reads megabytes in one string', () => {
    const long = `{"a":\n${JSON.stringify('\u0000"'.repeat(2_000_000))},\n"b":0\n`
    expect(lineOfField(`${long}}`, ['b'])).toBe(3)
    expect(lineOfError(long)).toBe(4)
  })
})
