import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Fixture, fixtureBody } from '../../src/journal/fixture.js'
import { ENCODINGS, type Encoding, type EncodingId, FORMS, spellings } from '../../src/webhook/encodings.js'
import { formPayload } from '../../src/webhook/form.js'

const write = (id: EncodingId, json: string) => ENCODINGS.find((encoding) => encoding.id === id)?.write(json)
const named = ENCODINGS.map((encoding) => [encoding.id, encoding] as const)

/** Characters that programs escape differently, half characters, and what only looks like an escape. */
const unit = fc.oneof(
  fc.constantFrom('\\', '"', '/', '\u001f', '\b', '\n', '\u007f', '<', '&', '\u2028', 'é', '😀', '\\u001f'),
  fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
)
const value = fc.jsonValue({ stringUnit: unit })
/** JSON as any program may have written it. */
const json = fc
  .tuple(value, fc.constantFrom('', '\t', '   '), fc.constantFrom(...ENCODINGS))
  .map(([one, indent, { write }]) => write(JSON.stringify(one, null, indent)) ?? '')

/** As text, which tells -0 from 0 and shows repeated keys to nobody. */
const valueOf = (text: string | undefined): string => JSON.stringify(JSON.parse(text ?? ''))

describe.each(named)('%s', (_, { write }: Encoding) => {
  it('keeps the value', () => {
    fc.assert(
      fc.property(json, (text) => {
        expect(valueOf(write(text))).toBe(valueOf(text))
      }),
    )
  })

  it('is the same whatever the JSON was written in, itself included', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(...ENCODINGS), (text, before) => {
        expect(write(before.write(text) ?? '')).toBe(write(text))
      }),
    )
  })

  it('keeps numbers, order and repeated keys, and nothing between them', () => {
    const text = ' {"2" : [1.0 ,-0,1E3] , "1":12345678901234567890,\r\n"1":\t{ } , "a":[ ]} '
    const compact = '{"2":[1.0,-0,1E3],"1":12345678901234567890,"1":{},"a":[]}'
    expect(write(text)?.replaceAll(/\s/g, '')).toBe(compact)
  })
})

describe('what programs write', () => {
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
    ['spaced-ascii', `{"a": [1, {"b": []}], "c": "${escapes}</&>${String.raw`\u007f\u2028`}${ascii}"}`],
  ] as const)('is written to the character: %s', (id, written) => {
    expect(write(id, text)).toBe(written)
  })

  it('is what JSON.stringify writes, compact and indented', () => {
    fc.assert(
      fc.property(value, (one) => {
        const other = JSON.stringify(one, null, '\t')
        expect([write('compact', other), write('indented', other)]).toEqual([
          JSON.stringify(one),
          JSON.stringify(one, null, 2),
        ])
      }),
    )
  })

  it.each([
    ['github', 'compact-upper'],
    ['gitea', 'indented-go'],
  ] as const)('is what the fixtures of %s hold', (provider, id) => {
    const bodies = bodiesOf(provider)
    expect(bodies.map((body) => write(id, body))).toEqual(bodies)
    expect(bodies.length).toBeGreaterThan(5)
  })
})

it('gives up where indenting would fill the memory', () => {
  const deep = `${'['.repeat(900)}${'1,'.repeat(100_000)}1${']'.repeat(900)}`
  const given = ENCODINGS.filter(({ write }) => write(deep) !== undefined).map(({ id }) => id)
  expect(given).toEqual([
    'compact',
    'compact-upper',
    'compact-go',
    'compact-ascii',
    'compact-php',
    'spaced-ascii',
  ])
  expect([...spellings(deep)].map(([id]) => id)).toEqual(['compact', 'spaced-ascii'])
})

it.each(FORMS.map((write, i) => [i, write] as const))('form %i holds the JSON', (_, write) => {
  fc.assert(
    fc.property(json, (text) => {
      const payload = formPayload(Buffer.from(write(text)))
      expect(payload && Buffer.from(payload).toString()).toBe(text)
    }),
  )
})

/** The JSON bodies of the fixtures that come with relay. */
function bodiesOf(provider: string): string[] {
  const folder = path.resolve('fixtures', provider)
  return readdirSync(folder)
    .filter((name) => !name.includes('.form.'))
    .map((name) => {
      const fixture: Fixture = JSON.parse(readFileSync(path.join(folder, name), 'utf8'))
      return Buffer.from(fixtureBody(fixture)).toString()
    })
}
