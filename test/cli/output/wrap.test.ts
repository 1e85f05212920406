import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fit, joinParagraphs } from '../../../src/old/output/wrap.js'

describe('fit', () => {
  it('leaves what fits', () => {
    const text = 'Usage: relay\n\n  -q  quiet\n'
    expect(fit(text, 13)).toBe(text)
  })

  it('breaks a paragraph at words, and an example further in', () => {
    expect(fit('one two three\n  relay serve --port 1', 10)).toBe(
      'one two\nthree\n  relay\n      serve\n      --port\n      1',
    )
  })

  it('continues under the second column', () => {
    expect(fit('  -q  say nothing but errors', 17)).toBe('  -q  say nothing\n      but errors')
  })

  it('gives a second column that begins too far right its own lines', () => {
    expect(fit('  --provider <name>  which code host', 20)).toBe(
      '  --provider <name>\n      which code\n      host',
    )
  })

  it('never breaks a word, keeps every word, and is done in one go', () => {
    const line = fc.tuple(fc.nat(4), fc.array(fc.stringMatching(/^\S{1,9}$/), { minLength: 1 }), fc.boolean())
    fc.assert(
      fc.property(line, fc.integer({ min: 20, max: 60 }), ([indent, words, table], width) => {
        const [first = '', ...rest] = words
        const text = `${' '.repeat(indent)}${first}${table ? '   ' : ' '}${rest.join(' ')}`
        const out = fit(text, width)
        expect(out.split(/\s+/).filter(Boolean)).toEqual(words)
        expect(out.split('\n').filter((one) => one.length > width && one.trim().includes(' '))).toEqual([])
        expect(fit(out, width)).toBe(out)
      }),
    )
  })
})

describe('joinParagraphs', () => {
  it('joins lines that are not indented, and no others', () => {
    expect(joinParagraphs('a\nb\n\nExamples:\n  c\n  d')).toBe('a b\n\nExamples:\n  c\n  d')
  })
})
