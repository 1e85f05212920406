import { describe, expect, it } from 'vitest'
import { parseJson } from '../../src/json/parse.js'

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
