import { array, assert, constantFrom, integer, nat, option, property, tuple, uint8Array } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AnswerReader } from '../../src/base/answer-reader.js'

const MOST = 256 * 1024

/** With the text that it gave. */
class TestReader extends AnswerReader {
  readonly #pieces: Buffer[] = []

  constructor() {
    super((content) => this.#pieces.push(Buffer.from(content)), MOST)
  }

  get text(): Buffer {
    return Buffer.concat(this.#pieces)
  }
}

/** The reader that was given the answer in these pieces, all in the same memory. */
function readerOf(...pieces: readonly (string | Uint8Array)[]): TestReader {
  const reader = new TestReader()
  const memory = Buffer.alloc(Math.max(...pieces.map((piece) => Buffer.from(piece).length)))
  for (const piece of pieces) {
    const bytes = Buffer.from(piece)
    bytes.copy(memory)
    reader.read(memory.subarray(0, bytes.length))
  }
  return reader
}

function shown(reader: TestReader) {
  const { head, isComplete, keepsOpen, text } = reader
  return { status: head?.status, isComplete, keepsOpen, text: text.toString() }
}

const ok = (rest: string): string => `HTTP/1.1 200 OK\r\n${rest}`

/** A text as it may be sent: with its length, or in chunks with extensions and trailers. */
const sent = tuple(
  uint8Array({ maxLength: 300 }),
  option(array(integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 })),
  constantFrom('', ';a=b', ' ;x="y"'),
  constantFrom('', 'X-T: 1\r\n', 'X-T: 1\r\nX-U: 2\r\n'),
).map(([text, sizes, extension, trailers]) => ({
  text: Buffer.from(text),
  bytes: sizes
    ? Buffer.concat([
        Buffer.from('Transfer-Encoding: chunked\r\n\r\n'),
        ...chunks(Buffer.from(text), sizes, extension),
        Buffer.from(`0${extension}\r\n${trailers}\r\n`),
      ])
    : Buffer.concat([Buffer.from(`Content-Length: ${text.length}\r\n\r\n`), text]),
}))

function chunks(text: Buffer, sizes: readonly number[], extension: string): Buffer[] {
  const made: Buffer[] = []
  for (let at = 0, i = 0; at < text.length; i++) {
    const content = text.subarray(at, (at += sizes[i % sizes.length] ?? 1))
    const size = content.length.toString(16)
    made.push(Buffer.from(`${size}${extension}\r\n`), content, Buffer.from('\r\n'))
  }
  return made
}

/** The bytes cut at these places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = places.map((place) => place % (bytes.length + 1)).toSorted((one, other) => one - other)
  return [0, ...at].map((from, i) => bytes.subarray(from, at[i] ?? bytes.length))
}

describe('an answer', () => {
  it('is read whole and exactly, in whatever pieces it comes', () => {
    assert(
      property(sent, array(nat(), { maxLength: 12 }), ({ text, bytes }, places) => {
        const early = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'
        const all = Buffer.concat([Buffer.from(`${early}HTTP/1.1 201 Made\r\nX-A: b\r\n`), bytes])
        const reader = readerOf(...cut(all, places))
        expect(reader.head?.status).toBe(201)
        expect(reader.head?.headers.get('x-a')).toBe('b')
        expect([reader.isComplete, reader.keepsOpen]).toEqual([true, true])
        expect(reader.text.equals(text)).toBe(true)
        expect(readerOf(...cut(all.subarray(0, -1), places)).isComplete).toBe(false)
      }),
    )
  })

  it.each([
    ['Content-Length: 2\r\n\r\nok', { isComplete: true, keepsOpen: true, text: 'ok' }],
    ['Content-Length: 2, 2\r\n\r\nok', { isComplete: true, keepsOpen: true, text: 'ok' }],
    ['Content-Length: 2\r\n\r\nok?', { isComplete: true, keepsOpen: false, text: 'ok' }],
    ['Content-Length: 2\r\nConnection: x, Close\r\n\r\nok', { keepsOpen: false, text: 'ok' }],
    ['Content-Length: 2\r\nKeep-Alive: timeout=5\r\n\r\nok', { keepsOpen: true }],
    ['Content-Length: 2\r\nKeep-Alive: timeout=2\r\n\r\nok', { keepsOpen: false }],
    [
      'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      { isComplete: true, keepsOpen: false },
    ],
    ['Transfer-Encoding: gzip\r\n\r\nall', { isComplete: false, keepsOpen: false, text: 'all' }],
    ['\r\nuntil the end', { isComplete: false, keepsOpen: false, text: 'until the end' }],
    ['X-Long: a\r\n  b\r\nContent-Length: 0\r\n\r\n', { isComplete: true, keepsOpen: true }],
  ])('with %j', (rest, expected) => {
    expect(shown(readerOf(ok(rest)))).toMatchObject({ status: 200, ...expected })
  })

  it.each([204, 304])('%i has no text', (status) => {
    const reader = readerOf(`HTTP/1.1 ${status} \r\nContent-Length: 5\r\n\r\n`)
    expect(shown(reader)).toEqual({ status, isComplete: true, keepsOpen: true, text: '' })
  })

  it('of HTTP/1.0 ends with its connection', () => {
    expect(shown(readerOf('HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'))).toMatchObject({
      isComplete: true,
      keepsOpen: false,
    })
  })

  it('that is long is read up to a limit', () => {
    const piece = 'x'.repeat(MOST / 4)
    const reader = readerOf(ok('Content-Length: 999999999\r\n\r\n'), piece, piece, piece, piece)
    expect(reader.isComplete).toBe(false)
    reader.read(Buffer.from('x'))
    expect([reader.isComplete, reader.keepsOpen]).toEqual([true, false])
  })

  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['another version', 'HTTP/2 200\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a change of protocol', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['a header without a colon', ok('no colon\r\n\r\n')],
    ['a header with a bad name', ok('Bad Name: 1\r\n\r\n')],
    ['a length that is none', ok('Content-Length: -1\r\n\r\n')],
    ['two lengths', ok('Content-Length: 1, 2\r\n\r\n')],
    ['a chunk without a size', ok('Transfer-Encoding: chunked\r\n\r\nx\r\n')],
    ['half of a line end', ok('Transfer-Encoding: chunked\r\n\r\n1\nx\r\n')],
    ['a chunk longer than it says', ok('Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n')],
    ['a long extension', ok(`Transfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(20_000)}`)],
    ['many trailers', ok(`Transfer-Encoding: chunked\r\n\r\n0\r\n${'X: y\r\n'.repeat(4000)}`)],
    ['a long header', ok(`X: ${'x'.repeat(20_000)}`)],
  ])('is refused with %s', (_, text) => {
    expect(() => readerOf(text)).toThrow(/not HTTP|protocol|too long/)
  })
})
