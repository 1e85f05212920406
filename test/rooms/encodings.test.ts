import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { formPayload } from '../../src/base/bytes.js'
import { ENCODING_IDS, FORMS, writeJson, writings } from '../../src/webhook/encodings.js'

const anyId = fc.constantFrom(...ENCODING_IDS)

/** Characters that programs escape differently, lone surrogates, and text that only looks like an escape. */
const unit = fc.oneof(
  fc.constantFrom('\\', '"', '/', '\u001f', '\b', '\n', '\u007f', '<', '&', '\u2028', 'é', '😀', '\\u001f'),
  fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
)
const value = fc.jsonValue({ stringUnit: unit })

it('every encoding keeps the value', () => {
  fc.assert(
    fc.property(value, anyId, (one, id) => {
      expect(JSON.stringify(JSON.parse(writeJson(id, one)))).toBe(JSON.stringify(one))
    }),
    { numRuns: 1000 },
  )
})

it('writes nothing that is larger than the limit: indenting could fill the memory', () => {
  const deep = `${'['.repeat(900)}${'1,'.repeat(100_000)}1${']'.repeat(900)}`
  const all = [...writings(JSON.parse(deep), 1_000_000)]
  const given = all.filter(({ text }) => text !== undefined).map(({ id }) => id)
  expect(given).toEqual(['compact', 'spaced-ascii'])
  expect(all.map(({ id }) => id)).toEqual([
    'compact',
    'indented-go',
    'one-space-go',
    'spaced-ascii',
    'four-spaces',
    'tab',
  ])
})

it('knows how long a text becomes', () => {
  fc.assert(
    fc.property(value, (one) => {
      for (const { text = '', id } of writings(one, Infinity)) {
        const same = [...writings(one, text.length)].find((each) => each.id === id)
        const [shorter] = [...writings(one, writeJson('compact', one).length - 1)]
        expect([same?.text, shorter?.text]).toEqual([text, undefined])
      }
    }),
  )
})

it.each(FORMS.map((write, i) => [i, write] as const))('form %i holds the JSON', (_, write) => {
  fc.assert(
    fc.property(value, anyId, (one, id) => {
      const text = writeJson(id, one)
      const payload = formPayload(Buffer.from(write(text)))
      expect(payload && Buffer.from(payload).toString()).toBe(text)
    }),
  )
})
