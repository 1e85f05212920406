import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formPayload } from '../../src/base/bytes.js'
import { ENCODING_IDS, type EncodingId, FORMS, writeJson, writings } from '../../src/webhook/encodings.js'

const write = (id: EncodingId, json: string): string => writeJson(id, JSON.parse(json))
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

describe('the encodings of programs', () => {
  const content = '\u001f\b\n"\\u001f</&>\u007f\u2028\ufffdé😀\ud800'
  const text = JSON.stringify({ a: [1, { b: [] }], c: content })
  const escapes = String.raw`\u001f\b\n\"\\u001f`
  const html = String.raw`\u003c/\u0026\u003e`
  const tail = `\ufffdé😀${String.raw`\ud800`}`
  const ascii = String.raw`\ufffd\u00e9\ud83d\ude00\ud800`
  const compact = (string: string): string => `{"a":[1,{"b":[]}],"c":"${string}"}`
  const indented = (string: string): string =>
    `{\n  "a": [\n    1,\n    {\n      "b": []\n    }\n  ],\n  "c": "${string}"\n}`

  it.each([
    ['compact', compact(`${escapes}</&>\u007f\u2028${tail}`)],
    ['compact-upper', compact(`${String.raw`\u001F\b\n\"\\u001f`}</&>\u007f\u2028${tail}`)],
    ['compact-go', compact(`${escapes}${html}\u007f${String.raw`\u2028`}${tail}`)],
    ['indented', indented(`${escapes}</&>\u007f\u2028${tail}`)],
    ['indented-go', indented(`${escapes}${html}\u007f${String.raw`\u2028`}${tail}`)],
    [
      'indented-go-long',
      indented(`${String.raw`\u001f\u0008\n\"\\u001f`}${html}\u007f${String.raw`\u2028`}${tail}`),
    ],
    ['compact-ascii', compact(`${escapes}</&>${String.raw`\u007f\u2028`}${ascii}`)],
    ['compact-php', compact(`${escapes}<${String.raw`\/`}&>\u007f${String.raw`\u2028`}${ascii}`)],
    [
      'compact-html-upper',
      compact(`${String.raw`\u001F\b\n\"\\u001f\u003C/\u0026\u003E`}\u007f${String.raw`\u2028`}${tail}`),
    ],
    ['compact-php-unicode', compact(`${escapes}<${String.raw`\/`}&>\u007f${String.raw`\u2028`}${tail}`)],
    ['four-spaces', indented(`${escapes}</&>\u007f\u2028${tail}`).replaceAll('  ', '    ')],
    ['tab', indented(`${escapes}</&>\u007f\u2028${tail}`).replaceAll('  ', '\t')],
    ['one-space', indented(`${escapes}</&>\u007f\u2028${tail}`).replaceAll('  ', ' ')],
    ['spaced', `{"a": [1, {"b": []}], "c": "${escapes}</&>\u007f\u2028${tail}"}`],
    ['spaced-ascii', `{"a": [1, {"b": []}], "c": "${escapes}</&>${String.raw`\u007f\u2028`}${ascii}"}`],
  ] as const)('are matched to the character: %s', (id, written) => {
    expect(write(id, text)).toBe(written)
  })
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
