import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_DEPTH, tokens } from '../../src/json/tokens.js'

const texts = (text: string): string[] => [...tokens(text)].map(({ start, end }) => text.slice(start, end))

describe('tokens', () => {
  it('are all of the text but its white space', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(texts(JSON.stringify(value, null, ' \t')).join('')).toBe(JSON.stringify(value))
      }),
    )
  })

  it('stand outside the array or object that they open and close', () => {
    expect([...tokens('[{}, 1]')]).toEqual([
      { start: 0, end: 1, depth: 0 },
      { start: 1, end: 2, depth: 1 },
      { start: 2, end: 3, depth: 1 },
      { start: 3, end: 4, depth: 1 },
      { start: 5, end: 6, depth: 1 },
      { start: 6, end: 7, depth: 0 },
    ])
  })

  it.each([
    ['', []],
    [' \n', []],
    [String.raw`"\"" "\\"`, [String.raw`"\""`, String.raw`"\\"`]],
    ['"no end', ['"no end']],
    ['tru\u00a0e@{', ['tru\u00a0e@', '{']],
    ["'a'", ["'a'"]],
  ])('of %j, JSON or not', (text, expected) => {
    expect(texts(text)).toEqual(expected)
  })

  it('end with an error when more than a thousand arrays and objects are open', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
    expect(texts(nested(MAX_DEPTH))).toHaveLength(2 * MAX_DEPTH)
    expect(() => texts(nested(MAX_DEPTH + 1))).toThrow(RangeError)
  })
})
