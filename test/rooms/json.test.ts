import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../../src/json/parse.js'
import { indentJson, lineOf, MAX_DEPTH, replaceScalar } from '../../src/json/text.js'

const parse = (text: string): unknown => parseJson(Buffer.from(text))
const arrays = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const objects = (depth: number): string => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth)

describe('parseJson', () => {
  it('reads a view into a larger buffer, and keeps __proto__ an ordinary member', () => {
    expect(parseJson(Buffer.from('xx[1]yy').subarray(2, 5))).toEqual([1])
    const value = parse('{"__proto__":{"action":"x"}}')
    expect(JSON.stringify(value)).toBe('{"__proto__":{"action":"x"}}')
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })

  it.each([
    ['nothing', [], 'not JSON'],
    ['a secret', Buffer.from('secret'), 'not JSON'],
    ['trailing text', Buffer.from('{}x'), 'not JSON'],
    ['a comment', Buffer.from('{}//'), 'not JSON'],
    ['a byte order mark', [0xef, 0xbb, 0xbf, 0x7b, 0x7d], 'not JSON'],
    ['UTF-16', [0x7b, 0x00, 0x7d, 0x00], 'not JSON'],
    ['a lone continuation byte', [0x22, 0x80, 0x22], 'not UTF-8'],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22], 'not UTF-8'],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22], 'not UTF-8'],
    ['a cut character', [0x22, 0xe2, 0x82, 0x22], 'not UTF-8'],
  ])('refuses %s, and quotes none of it', (_, bytes, why) => {
    expect(() => parseJson(Uint8Array.from(bytes))).toThrow(new SyntaxError(why))
  })

  it.each([
    ['arrays', arrays],
    ['objects', objects],
    ['both', (depth: number) => (depth % 2 ? `[${objects(depth - 1)}]` : objects(depth))],
    ['the last of two members', (depth: number) => `{"a":1,"a":${arrays(depth - 1)}}`],
    ['a member named __proto__', (depth: number) => `{"__proto__":${arrays(depth - 1)}}`],
    ['what follows many others', (depth: number) => `[${'[],'.repeat(100_000)}${arrays(depth - 1)}]`],
    ['what follows brackets in strings', (depth: number) => `["[{","\\"[[",${arrays(depth - 1)}]`],
  ])('accepts %s nested 1,000 deep and refuses 1,001', (_, nested) => {
    expect(parse(nested(1000))).toEqual(JSON.parse(nested(1000)))
    expect(() => parse(nested(1001))).toThrow(new SyntaxError('nested too deep'))
  })

  it.each([
    ['unclosed brackets', '['.repeat(1_048_576)],
    ['backslashes in a string', `${'['.repeat(1001)}"${'\\'.repeat(1_048_576)}`],
    ['escaped quotes', `${arrays(2).repeat(600)}"${'\\"'.repeat(500_000)}`],
  ])('refuses a megabyte of %s at once', (_, text) => {
    // Processor time, which other programs do not affect.
    const start = process.cpuUsage()
    expect(() => parse(text)).toThrow(SyntaxError)
    const { user, system } = process.cpuUsage(start)
    expect((user + system) / 1000).toBeLessThan(500)
  })
})

describe('layOut', () => {
  it('writes as JSON.stringify does, whatever the layout was', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t', '\r\n '), (value, space) => {
        expect(indentJson(JSON.stringify(value, null, space))).toBe(JSON.stringify(value, null, 2))
      }),
    )
  })

  it('keeps numbers, strings, names and their order as written', () => {
    const written = String.raw`{"n":12345678901234567890,"2":1E+2,"1":-0.0,"s":"\u00e9\/\\","s":"\"{,:}[]"}`
    expect(indentJson(written).split('\n')).toEqual([
      '{',
      '  "n": 12345678901234567890,',
      '  "2": 1E+2,',
      '  "1": -0.0,',
      String.raw`  "s": "\u00e9\/\\",`,
      String.raw`  "s": "\"{,:}[]"`,
      '}',
    ])
  })
})

it('leaves text as it is, and finds a line of it, where more than a thousand arrays and objects are open', () => {
  expect(indentJson(arrays(MAX_DEPTH)).split('\n')).toHaveLength(2 * MAX_DEPTH - 1)
  const deeper = arrays(MAX_DEPTH + 2)
  expect([indentJson(deeper), lineOf(deeper)]).toEqual([deeper, 1])
})

describe('lineOf', () => {
  it('finds the line into which something foreign was put', () => {
    const foreign = fc.constantFrom('@', '}{', "'a'", '01', 'tru')
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(), foreign, (value, at, put) => {
        const text = JSON.stringify({ value, last: [1] }, null, 1).split('\n')
        const line = 1 + (at % (text.length - 1))
        text.splice(line, 0, put)
        expect(lineOf(text.join('\n'))).toBe(line + 1)
      }),
    )
  })

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
    expect(lineOf(text, path)).toBe(line)
  })

  it('finds each member of any object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), fc.nat(), (object, n) => {
        const keys = Object.keys(object)
        const key = keys[n % keys.length] ?? ''
        const members = Object.entries(object).map((each) =>
          each.map((part) => JSON.stringify(part)).join(':'),
        )
        expect(lineOf(`{\n${members.join(',\n')}\n}`, [key])).toBe(2 + keys.indexOf(key))
      }),
    )
  })
})

describe('replaceScalar', () => {
  const name = fc.oneof(fc.constantFrom('a', 'b', '__proto__', '"', 'é'), fc.string())
  const value = fc.oneof(fc.string(), fc.integer())

  it('sets one value, and leaves every other byte', () => {
    fc.assert(
      fc.property(
        fc.array(name, { minLength: 1, maxLength: 3 }),
        fc.json(),
        fc.oneof(value, fc.constantFrom(true, null)),
        value,
        fc.constantFrom('', ' ', '\n\t'),
        (path, other, before, after, space) => {
          const nested = (inner: string): string =>
            path.reduceRight(
              (rest, key) =>
                `{${space}"x y":${other},${JSON.stringify(key)}${space}:${space}${rest},"y z":[${other}]}`,
              inner,
            )
          const [text, wanted] = [nested(JSON.stringify(before)), nested(JSON.stringify(after))]
          fc.pre(!path.includes('x y') && !path.includes('y z'))
          expect(replaceScalar(text, path, after)).toBe(wanted)
        },
      ),
    )
  })

  it.each([
    ['nothing there', '{"b":1}'],
    ['an object', '{"a":{"b":1}}'],
    ['a list', '{"a":[1]}'],
    ['one in a list', '[{"a":1}]'],
    ['one deeper', '{"b":{"a":1}}'],
    ['text', '"a"'],
  ])('finds no value where there is %s', (_, text) => {
    expect(replaceScalar(text, ['a'], 1)).toBeUndefined()
  })

  it('sets the last of two members with one name, as JSON.parse reads', () => {
    expect(replaceScalar('{"a":1,"a":2}', ['a'], 3)).toBe('{"a":1,"a":3}')
    expect(replaceScalar('{"a":1,"a":{}}', ['a'], 3)).toBeUndefined()
  })
})

describe('what is too dear to parse', () => {
  it.each([
    ['empty objects', '{}'],
    ['empty arrays', '[]'],
    ['objects with a member', '{"a":0}'],
  ])('is %s beyond the number that 1 MiB can have', (_, one) => {
    const of = (count: number): string => `[${Array.from({ length: count - 1 }, () => one).join(',')}]`
    expect(parseJson(of(349_525))).toHaveLength(349_524)
    expect(() => parseJson(of(349_526))).toThrow(new SyntaxError('more than 349,525 arrays and objects'))
  })

  it('is not what stands in a string', () => {
    expect(parseJson(JSON.stringify('['.repeat(1_000_000)))).toHaveLength(1_000_000)
  })
})
