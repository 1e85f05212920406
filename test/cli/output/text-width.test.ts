import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bold, cutLine, dim, lineWidth, wrapLine } from '../../../src/old/output/line.js'
import { cut, cutStart, pad, textWidth } from '../../../src/old/output/text-width.js'
import { plain } from '../rig.js'

const TEXT = fc.string({ unit: 'grapheme', maxLength: 30 })
const WIDTH = fc.nat({ max: 40 })

describe('the width of text', () => {
  it.each([
    ['push', 4],
    ['日本語', 6],
    ['e\u0301', 1],
    ['👩‍👩‍👧 👍', 5],
    ['✓ ✗ ↻ ◦ … │', 11],
  ])('%s: %d columns', (text, width) => {
    expect(textWidth(text)).toBe(width)
  })

  it.each([
    ['日本語', 5, '日本…', '…本語'],
    ['日本語', 4, '日…', '…語'],
    ['cafe\u0301s', 4, 'caf…', '…fe\u0301s'],
    ['push', 4, 'push', 'push'],
    ['push', 1, '…', '…'],
    ['push', 0, '', ''],
  ])('%s in %d columns', (text, width, start, end) => {
    expect({ start: cut(text, width), end: cutStart(text, width) }).toEqual({ start, end })
  })

  it('is never more than was asked for', () => {
    fc.assert(
      fc.property(TEXT, WIDTH, (text, width) => {
        for (const shown of [
          cut(text, width),
          cutStart(text, width),
          plain(cutLine([bold(text), text], width)),
        ])
          expect(textWidth(shown)).toBeLessThanOrEqual(width)
        expect(textWidth(pad(text, width))).toBe(Math.max(width, textWidth(text)))
      }),
    )
  })
})

describe('a line broken at spaces', () => {
  it('continues below, indented', () => {
    const line = [dim('12:04:11'), '  app ', bold('is down: connection refused')]
    expect(wrapLine(line, 30, 10).map(plain)).toEqual([
      '12:04:11  app is down:',
      '          connection refused',
    ])
  })

  it('continues below what follows a label', () => {
    expect(wrapLine([dim('reason      '), 'there is no signature'], 26).map(plain)).toEqual([
      'reason      there is no',
      '            signature',
    ])
    expect(wrapLine('  text, then two spaces  ', 14).map(plain)).toEqual(['  text, then', '    two spaces'])
  })

  it('indents less what only then fits, and leaves whole what never does', () => {
    expect(
      wrapLine('go to http://localhost:3000/ or http://localhost:3000/long/path', 24, 10).map(plain),
    ).toEqual(['go to', '  http://localhost:3000/', '          or', '  http://localhost:3000/long/path'])
  })

  it('loses no word, and is wider than asked for only by one word', () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z日]{1,12}$/), { minLength: 1 }), WIDTH, (words, width) => {
        const lines = wrapLine(
          words.map((word, i) => (i % 2 === 0 ? bold(`${word} `) : `${word} `)),
          width,
          4,
        )
        expect(lines.flatMap((line) => plain(line).trim().split(' ')).filter(Boolean)).toEqual(words)
        for (const line of lines)
          expect(lineWidth(line) <= width + 1 || !plain(line).trim().includes(' ')).toBe(true)
      }),
    )
  })
})
