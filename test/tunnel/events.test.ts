import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { wholeEvents } from '../../src/tunnel/events.js'

/** What passes of a stream that comes in these pieces, and how many events were dropped. */
async function passed(pieces: readonly string[], limit: number): Promise<{ text: string; dropped: number }> {
  let dropped = 0
  const chunks: Uint8Array[] = []
  // oxlint-disable-next-line typescript/require-await
  const stream = (async function* () {
    for (const piece of pieces) yield Buffer.from(piece)
  })()
  for await (const chunk of wholeEvents(stream, limit, () => dropped++)) chunks.push(chunk)
  return { text: Buffer.concat(chunks).toString(), dropped }
}

/** The text, cut at these places. */
function cut(text: string, places: readonly number[]): string[] {
  const at = [0, ...places.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b), text.length]
  return at.slice(1).map((end, i) => text.slice(at[i], end))
}

describe('wholeEvents', () => {
  it('passes on every event that is not too large, however the stream is cut', async () => {
    const line = fc.string({ unit: fc.constantFrom('a', ':', ' ', 'd'), minLength: 1, maxLength: 6 })
    const event = fc
      .tuple(fc.array(line, { minLength: 1, maxLength: 3 }), fc.constantFrom('\n', '\r\n'))
      .map(([lines, end]) => lines.map((one) => one + end).join('') + end)
    await fc.assert(
      fc.asyncProperty(
        fc.array(event, { maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 8 }),
        fc.integer({ min: 1, max: 25 }),
        async (events, places, limit) => {
          const small = events.filter((one) => one.length <= limit)
          expect(await passed(cut(events.join(''), places), limit)).toEqual({
            text: small.join(''),
            dropped: events.length - small.length,
          })
        },
      ),
      { numRuns: 500 },
    )
  })

  it('holds back what has no end yet', async () => {
    expect(await passed(['data: a\n\n', 'data: b\n', 'data: c'], 100)).toEqual({
      text: 'data: a\n\n',
      dropped: 0,
    })
  })
})
