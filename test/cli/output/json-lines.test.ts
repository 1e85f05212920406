import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonLines } from '../../../src/old/output/json-lines.js'
import { printable } from '../../../src/base/printable.js'
import { plain } from '../rig.js'

it('colours JSON without changing it', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      const pretty = JSON.stringify(JSON.parse(json), null, 2)
      expect(jsonLines(pretty).map(plain)).toEqual(pretty.split('\n').map(printable))
    }),
  )
})
