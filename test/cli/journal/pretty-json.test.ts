import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { prettyJson } from '../../../src/cli/journal/pretty-json.js'

it('indents as JSON.stringify does', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t', '\r\n '), (value, space) => {
      expect(prettyJson(JSON.stringify(value, null, space)).join('\n')).toBe(JSON.stringify(value, null, 2))
    }),
  )
})

it('leaves numbers and strings as they were written', () => {
  const written = String.raw`{"n":12345678901234567890,"e":1E+2,"s":"\u00e9\/\\","t":"\"{,:}[]"}`
  expect(prettyJson(written)).toEqual([
    '{',
    '  "n": 12345678901234567890,',
    '  "e": 1E+2,',
    String.raw`  "s": "\u00e9\/\\",`,
    String.raw`  "t": "\"{,:}[]"`,
    '}',
  ])
})

it('takes a string as large as a body may be', () => {
  const text = JSON.stringify(String.raw`\"`.repeat(4_000_000))
  expect(prettyJson(text)).toEqual([text])
})
