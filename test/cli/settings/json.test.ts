import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { readJsonObject } from '../../../src/old/settings/json.js'
import { emptyFolder } from '../../helpers/context.js'
import { failure } from '../../helpers/failure.js'

describe('readJsonObject', () => {
  const file = path.join(emptyFolder(), 'x.json')

  it('reads an object, with or without a byte order mark, and no file as undefined', () => {
    expect(readJsonObject(file)).toBeUndefined()
    writeFileSync(file, '\uFEFF{"a":1}')
    expect(readJsonObject(file)).toEqual({ a: 1 })
  })

  it.each([
    ['{\n  "a": 1\n  "b": 2\n}', `${file}, line 3: not JSON`],
    ['[]', `${file}: must be one JSON object, { … }`],
    ['null', `${file}: must be one JSON object, { … }`],
  ])('refuses %j', (text, message) => {
    writeFileSync(file, text)
    expect(failure(() => readJsonObject(file))).toEqual({ kind: 'settings', message })
  })
})
