import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { WholeLines } from '../../src/cli/mcp/lines.js'

/** What is passed on of these pieces. */
async function passed(pieces: readonly string[], limit: number): Promise<string[]> {
  const found: string[] = []
  const given = Readable.from(pieces.map((piece) => Buffer.from(piece)))
  const lines = given.pipe(new WholeLines(limit))
  // As they are passed on: a reader that waits gets several at once.
  lines.on('data', (piece: Buffer) => found.push(String(piece)))
  await finished(lines)
  return found
}

const PIECES = fc.array(fc.stringMatching(/^[ab\n]{1,5}$/), { maxLength: 20 })

it('passes on every byte in order, and no line in parts', () =>
  fc.assert(
    fc.asyncProperty(PIECES, async (pieces) => {
      const found = await passed(pieces, 1000)
      expect(found.join('')).toBe(pieces.join(''))
      expect(found.slice(0, -1).filter((text) => !text.endsWith('\n'))).toEqual([])
    }),
  ))

it('holds no more than its limit of a line, and what came with it', () =>
  fc.assert(
    fc.asyncProperty(PIECES, async (pieces) => {
      const found = await passed(pieces, 7)
      expect(found.join('')).toBe(pieces.join(''))
      for (const text of found) expect((text.split('\n').at(-1) ?? '').length).toBeLessThanOrEqual(7 + 5)
    }),
  ))

it('joins the pieces of a long line once', async () => {
  const pieces = Array.from({ length: 300 }, () => 'x'.repeat(1000))
  expect(await passed([...pieces, '\n'], 2 ** 20)).toEqual([`${pieces.join('')}\n`])
})
