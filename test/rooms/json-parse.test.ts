import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../../src/json/parse.js'

const parse = (text: string): unknown => parseJson(Buffer.from(text))
const arrays = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const objects = (depth: number): string => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth)

/** What parseJson gave or threw, to compare as a whole. */
function outcome(bytes: Uint8Array): unknown {
  try {
    return { value: parseJson(bytes) }
  } catch (error) {
    return error
  }
}

const refused = expect.any(SyntaxError)

/** What JSON.parse says of it. */
function expected(text: string): unknown {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return refused
  }
}

describe('parseJson', () => {
  it.each([
    ['{"a":[1,true,null,"x"]}', { a: [1, true, null, 'x'] }],
    ['null', null],
    ['false', false],
    ['-1.5e3', -1500],
    ['"text"', 'text'],
    ['[]', []],
    [' \t\r\n{} \t\r\n', {}],
    ['"\\ud83d\\ude00 \\ud800"', '😀 \ud800'],
    ['"\u2028"', '\u2028'],
  ])('reads %s', (text, value) => {
    expect(parse(text)).toEqual(value)
  })

  it('keeps __proto__ an ordinary member', () => {
    const value = parse('{"__proto__":{"action":"x"}}')
    expect(JSON.stringify(value)).toBe('{"__proto__":{"action":"x"}}')
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })

  it('reads a view into a larger buffer', () => {
    expect(parseJson(Buffer.from('xx[1]yy').subarray(2, 5))).toEqual([1])
  })

  it.each([
    ['nothing', ''],
    ['white space', ' \n'],
    ['trailing text', '{}x'],
    ['a second value', '{}{}'],
    ['a trailing NUL', '{}\0'],
    ['a byte order mark', '\ufeff{}'],
    ['a non-JSON space', '\u00a0{}'],
    ['a comment', '{}//'],
    ['single quotes', "{'a':1}"],
    ['NaN', 'NaN'],
    ['a leading zero', '01'],
    ['a trailing comma', '[1,]'],
    ['a raw control character', '"\n"'],
    ['an unfinished string', '{"a'],
    ['an unfinished array', '[1'],
  ])('refuses %s', (_, text) => {
    expect(outcome(Buffer.from(text))).toEqual(refused)
  })

  it.each([
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a cut character', [0x22, 0xe2, 0x82, 0x22]],
    ['a byte order mark', [0xef, 0xbb, 0xbf, 0x7b, 0x7d]],
    ['UTF-16', [0x7b, 0x00, 0x7d, 0x00]],
  ])('refuses bytes with %s', (_, bytes) => {
    expect(outcome(Uint8Array.from(bytes))).toEqual(refused)
  })

  it('names the reason, and quotes nothing', () => {
    const causes = ['secret', '"\xff"', arrays(1001)].map((text) => {
      const error = outcome(Buffer.from(text, 'latin1'))
      return error instanceof Error ? error.message : error
    })
    expect(causes).toEqual(['not JSON', 'not UTF-8', 'nested too deep'])
  })

  it.each([
    ['arrays', arrays],
    ['objects', objects],
    ['both', (depth: number) => (depth % 2 ? `[${objects(depth - 1)}]` : objects(depth))],
  ])('accepts %s nested 1,000 deep and refuses 1,001', (_, nested) => {
    expect(parse(nested(1000))).toEqual(JSON.parse(nested(1000)))
    expect(outcome(Buffer.from(nested(1001)))).toEqual(refused)
  })

  it('counts depth, not brackets: many of them, and those in strings, are no nesting', () => {
    const wide = JSON.stringify(Array.from({ length: 5000 }, () => ({ a: [] })))
    const quoted = JSON.stringify(['[{'.repeat(2000), '\\', '\\"[[', 'é{'.repeat(2000), '"['])
    expect(parse(wide)).toEqual(JSON.parse(wide))
    expect(parse(quoted)).toEqual(JSON.parse(quoted))
    expect(outcome(Buffer.from(`[${quoted},${arrays(1000)}]`))).toEqual(refused)
    expect(parse(`[${quoted},${arrays(999)}]`)).toEqual(JSON.parse(`[${quoted},${arrays(999)}]`))
  })

  it.each([
    ['the last of two members', (deep: string) => `{"a":1,"a":${deep}}`],
    ['a member named __proto__', (deep: string) => `{"__proto__":${deep}}`],
  ])('counts the depth of %s', (_, around) => {
    const above = around('').match(/\{/g)?.length ?? 0
    const many = '[],'.repeat(2000)
    expect(parse(`[${many}${around(arrays(999 - above))}]`)).toBeInstanceOf(Array)
    expect(outcome(Buffer.from(`[${many}${around(arrays(1000 - above))}]`))).toEqual(refused)
  })

  it('refuses more brackets than it parses at once only for their depth', () => {
    const wide = `[${'[],'.repeat(100_000)}0]`
    expect(parse(wide)).toHaveLength(100_001)
    expect(outcome(Buffer.from(wide.replace('0', arrays(1000))))).toEqual(refused)
    expect(parse(wide.replace('0', arrays(999)))).toHaveLength(100_001)
  })

  it.each([
    ['unclosed brackets', '['.repeat(1_048_576)],
    ['quotes', '"'.repeat(1_048_576)],
    ['backslashes in a string', `${'['.repeat(1001)}"${'\\'.repeat(1_048_576)}`],
    ['escaped quotes', `${arrays(2).repeat(600)}"${'\\"'.repeat(500_000)}`],
  ])('refuses a megabyte of %s at once', (_, text) => {
    // Processor time, which other programs do not affect.
    const start = process.cpuUsage()
    expect(outcome(Buffer.from(text))).toEqual(refused)
    const { user, system } = process.cpuUsage(start)
    expect((user + system) / 1000).toBeLessThan(500)
  })

  it('agrees with JSON.parse on every JSON text', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 20 }), fc.constantFrom(0, 2), (text, indent) => {
        const spelled = JSON.stringify(JSON.parse(text), null, indent)
        expect(parse(spelled)).toEqual(JSON.parse(spelled))
      }),
    )
  })

  it('agrees with JSON.parse on text that is nearly JSON', () => {
    const marks = [
      '{',
      '}',
      '[',
      ']',
      '"',
      '\\',
      ',',
      ':',
      ' ',
      '\n',
      '\u0000',
      '\u007f',
      '\ufeff',
      "'",
      '/',
      '""',
      '"a":',
    ]
    const others = [
      'null',
      'tru',
      '1',
      '0',
      '-',
      '+',
      '.',
      'e',
      'E5',
      '\\u',
      '\\u00e9',
      '\\n',
      '\\"',
      'bcdef',
      'a',
      'é',
      '😀',
    ]
    const pieces = fc.constantFrom(...marks, ...others)
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), (parts) => {
        const text = parts.join('')
        expect(outcome(Buffer.from(text))).toEqual(expected(text))
      }),
      { numRuns: 5000 },
    )
  })

  it('agrees with JSON.parse on JSON in which one character was changed', () => {
    const change = fc.record({
      at: fc.nat(),
      drop: fc.nat({ max: 1 }),
      add: fc.constantFrom('', ...Array.from('"\\{}[],:0-.eE+t\u001f\té')),
    })
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), change, (json, { at, drop, add }) => {
        const start = at % (json.length + 1)
        const text = Buffer.from(json.slice(0, start) + add + json.slice(start + drop)).toString()
        expect(outcome(Buffer.from(text))).toEqual(expected(text))
      }),
      { numRuns: 5000 },
    )
  })

  it('agrees with a plain count on how deep a text nests', () => {
    const tree = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 6 },
        fc.string(),
        fc.array(tie('node')),
        fc.dictionary(fc.string(), tie('node')),
      ),
    })).node
    const depth = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? 1 + Math.max(0, ...Object.values(value).map((child) => depth(child)))
        : 0
    fc.assert(
      fc.property(tree, (value) => {
        const wrap = 1000 - depth(value)
        const text = JSON.stringify(value)
        expect(outcome(Buffer.from('['.repeat(wrap) + text + ']'.repeat(wrap)))).not.toEqual(refused)
        expect(outcome(Buffer.from('['.repeat(wrap + 1) + text + ']'.repeat(wrap + 1)))).toEqual(refused)
      }),
    )
  })

  it('counts the depth of the value, in which of members given twice the last is', () => {
    const { text } = fc.letrec<{ text: string }>((tie) => ({
      text: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom('1', '"x"', '"[["', '"\\"{"', '"\\\\"', '"}]"'),
        fc.array(tie('text')).map((items) => `[${items.join(',')}]`),
        fc
          .array(fc.tuple(fc.constantFrom('a', 'b', '{', '__proto__'), tie('text')))
          .map((members) => `{${members.map(([name, value]) => `"${name}":${value}`).join(',')}}`),
      ),
    }))
    const depthOf = (json: string): number => {
      let [depth, deepest] = [0, 0]
      for (const token of JSON.stringify(JSON.parse(json)).match(/"(?:[^"\\]|\\.)*"|[[\]{}]/g) ?? []) {
        depth += token === '[' || token === '{' ? 1 : token === ']' || token === '}' ? -1 : 0
        deepest = Math.max(deepest, depth)
      }
      return deepest
    }
    fc.assert(
      fc.property(text, fc.nat({ max: 2000 }), fc.integer({ min: 990, max: 1001 }), (inner, wide, deep) => {
        const around = deep - depthOf(inner)
        const whole = `[${'[],'.repeat(wide)}${'['.repeat(around - 1)}${inner}${']'.repeat(around - 1)}]`
        const expected = deep > 1000 ? refused : { value: JSON.parse(whole) as unknown }
        expect(outcome(Buffer.from(whole))).toEqual(expected)
      }),
    )
  })
})
