import { writeFileSync } from 'node:fs'
import path from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lineOfError, readJsonObject } from '../../../src/cli/settings/json.js'
import { emptyFolder } from '../../helpers/context.js'
import { failure } from '../../helpers/failure.js'

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

describe('readJsonObject', () => {
  const file = path.join(emptyFolder(), 'x.json')

  it('reads an object, with or without a byte order mark, and no file as undefined', () => {
    expect(readJsonObject(file)).toBeUndefined()
    writeFileSync(file, '\uFEFF{"a":1}')
    expect(readJsonObject(file)).toEqual({ a: 1 })
  })

  it.each([
    ['{\n  "a": 1\n  "b": 2\n}', `${file}, line 3: not JSON`],
    ['[]', `${file}: must hold one JSON object, { … }`],
    ['null', `${file}: must hold one JSON object, { … }`],
  ])('refuses %j', (text, message) => {
    writeFileSync(file, text)
    expect(failure(() => readJsonObject(file))).toEqual({ kind: 'settings', message })
  })
})
