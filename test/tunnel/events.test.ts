import { once } from 'node:events'
import { createServer } from 'node:http'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { messageText, wholeEvents } from '../../src/tunnel/events.js'
import { describeWith } from '../kit/needs.js'
import { portOf } from '../helpers/scripted-server.js'
import { watchTurns } from '../helpers/turns.js'
import { start } from '../store/programs/start.js'

/** The events from a stream that arrives in these pieces, and the number of dropped events. */
async function readAll(pieces: readonly string[], limit: number): Promise<{ text: string; dropped: number }> {
  let dropped = 0
  const chunks: Uint8Array[] = []
  // oxlint-disable-next-line typescript/require-await
  const stream = (async function* () {
    for (const piece of pieces) yield Buffer.from(piece)
  })()
  for await (const { blocks } of wholeEvents(stream, limit, () => dropped++)) chunks.push(...blocks)
  return { text: Buffer.concat(chunks).toString(), dropped }
}

/** The text, cut at these places. */
function cut(text: string, places: readonly number[]): string[] {
  const at = [0, ...places.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b), text.length]
  return at.slice(1).map((end, i) => text.slice(at[i], end))
}

describe('wholeEvents', () => {
  it('yields every event that is not too large, however the stream is cut', async () => {
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
          expect(await readAll(cut(events.join(''), places), limit)).toEqual({
            text: small.join(''),
            dropped: events.length - small.length,
          })
        },
      ),
      { numRuns: 500 },
    )
  })

  it('does not yield an incomplete event', async () => {
    expect(await readAll(['data: a\n\n', 'data: b\n', 'data: c'], 100)).toEqual({
      text: 'data: a\n\n',
      dropped: 0,
    })
  })
})

describe('an event that never ends', () => {
  it('needs only as much memory as it has bytes, even if they arrive one by one', async () => {
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${'x'.repeat(100_000)}`)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${portOf(server)}/channel`
    await using program = start('tunnel/programs/collect', [url, '20000', '90000'])
    const [early, late] = [Number(await program.line()), Number(await program.line())]
    expect(late - early).toBeLessThan(2_000_000)
    server.closeAllConnections()
    server.close()
  })
})

describeWith('Linux', 'a stream of events that are slow on purpose', () => {
  it.each(['\n', ':\n\n', 'data:\n\n', 'data:\n'])(
    'blocks the event loop for less than 50 ms: %j',
    async (unit) => {
      const chunks = Array.from({ length: 20 }, () => Buffer.from(unit.repeat(65_536 / unit.length)))
      await readAll(unit.repeat(10_000).split(/(?<=\n\n)/), 100)
      using turns = watchTurns()
      for await (const event of wholeEvents(ReadableStream.from(chunks), 10_000_000, () => {}))
        messageText(event)
      expect(turns.longest()).toBeLessThan(50)
    },
  )
})

describe('messageText', () => {
  it.each([
    ['data: {"a":1}\n\n', '{"a":1}'],
    ['id: 7\ndata:x\n\n', 'x'],
    ['data: é😀\r\nid: 1\r\n\r\n', 'é😀'],
    ['data: a\ndata:  b\ndata\ndata:\n\n', 'a\n b\n\n'],
    ['event: message\ndata: a: b\n\n', 'a: b'],
    ['event: ping\nevent\ndata: a\n\n', 'a'],
    ['data\n\n', ''],
    ['event: ping\ndata: {}\n\n', undefined],
    ['data: {}\nevent: ready\n\n', undefined],
    [': a comment\nid: 1\nretry: 5\n\n', undefined],
    ['database: a\nDATA: b\n data: c\n\n', undefined],
    ['\n', undefined],
  ])('of %j is %j', (event, text) => {
    const bytes = new Uint8Array(Buffer.from(event))
    for (const cut of [0, 1, Math.floor(bytes.length / 2)])
      expect(messageText({ blocks: [bytes.slice(0, cut), bytes.slice(cut)], length: bytes.length })).toBe(
        text,
      )
  })
})
