import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { COMPACT, format, PRETTY } from '../../src/json/format.js'

const SPACES = fc.constantFrom(undefined, 1, '\t', '\r\n ')

describe('format', () => {
  it('writes as JSON.stringify does, whatever the layout was', () => {
    fc.assert(
      fc.property(fc.jsonValue(), SPACES, (value, space) => {
        const text = JSON.stringify(value, null, space)
        expect(format(text, { layout: PRETTY })).toBe(JSON.stringify(value, null, 2))
        expect(format(text, { layout: COMPACT })).toBe(JSON.stringify(value))
      }),
    )
  })

  it('keeps numbers, strings, names and their order as written', () => {
    const written = String.raw`{"n":12345678901234567890,"2":1E+2,"1":-0.0,"s":"\u00e9\/\\","s":"\"{,:}[]"}`
    expect(format(written, { layout: PRETTY }).split('\n')).toEqual([
      '{',
      '  "n": 12345678901234567890,',
      '  "2": 1E+2,',
      '  "1": -0.0,',
      String.raw`  "s": "\u00e9\/\\",`,
      String.raw`  "s": "\"{,:}[]"`,
      '}',
    ])
    expect(format(format(written, { layout: PRETTY }), { layout: COMPACT })).toBe(written)
  })

  it('puts spaces where a layout has them, and no line breaks without an indent', () => {
    expect(format('{"a":[1,2],"b":{}}', { layout: { indent: '', space: true } })).toBe(
      '{"a": [1, 2], "b": {}}',
    )
  })

  it('accepts a string as large as a body may be', () => {
    const text = JSON.stringify(String.raw`\"`.repeat(4_000_000))
    expect(format(text, { layout: PRETTY }) === text).toBe(true)
  })
})
