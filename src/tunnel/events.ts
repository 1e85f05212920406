import { createTurns } from '../base/turns.js'

/** The bytes of one event, including its empty line, in blocks. Each block has a buffer of its own. */
export interface RawEvent {
  readonly blocks: readonly Uint8Array<ArrayBuffer>[]
  /** Bytes of all blocks. */
  readonly length: number
}

/**
 * Bytes. Larger messages are read in a worker thread, since a message may be slow on purpose. At this size, the slowest
 * step takes some 10 ms.
 */
export const MAX_INLINE = 32_768
const NEWLINE = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const COLON = 0x3a
/** Bytes of a block. A large event takes at most this much beyond its own size. */
const BLOCK_SIZE = 65_536

/**
 * The complete events of an event stream, without those larger than `limit` bytes. Copies incomplete events, since a
 * chunk may be a single byte that takes some 450 as an object. A chunk may also hold thousands of events, so it yields to
 * the event loop between them.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
export async function* wholeEvents(
  stream: AsyncIterable<Uint8Array>,
  limit: number,
  onTooLarge: () => void,
): AsyncGenerator<RawEvent> {
  let event = new EventBuffer(limit)
  const end = { lineIsEmpty: true }
  const turn = createTurns()
  for await (const chunk of stream) {
    let from = 0
    while (from < chunk.length) {
      const next = turn()
      if (next) await next
      const past = endOfEvent(chunk, from, end)
      const piece = chunk.subarray(from, past)
      from += piece.length
      // Nearly every event is complete in one chunk.
      if (past !== undefined && event.length === 0 && piece.length <= limit) {
        yield { blocks: [new Uint8Array(piece)], length: piece.length }
        continue
      }
      event.add(piece)
      if (past === undefined) continue
      if (event.length > limit) onTooLarge()
      else yield event.take()
      event = new EventBuffer(limit)
    }
  }
}

/** Collects bytes in blocks. Beyond `limit` it only counts them. */
class EventBuffer {
  readonly #limit: number
  #blocks: Uint8Array<ArrayBuffer>[] = []
  /** Bytes of the last block in use. */
  #used = BLOCK_SIZE
  length = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  add(bytes: Uint8Array): void {
    this.length += bytes.length
    if (this.length > this.#limit) this.#blocks = []
    else for (let at = 0; at < bytes.length;) at += this.#fill(bytes.subarray(at))
  }

  /** Cuts the unused end off the last block, so that a small event does not hold a whole block. */
  take(): RawEvent {
    const last = this.#blocks.splice(-1).map((block) => block.slice(0, this.#used))
    return { blocks: [...this.#blocks, ...last], length: this.length }
  }

  #fill(bytes: Uint8Array): number {
    if (this.#used === BLOCK_SIZE) {
      this.#blocks.push(new Uint8Array(BLOCK_SIZE))
      this.#used = 0
    }
    const piece = bytes.subarray(0, BLOCK_SIZE - this.#used)
    this.#blocks.at(-1)?.set(piece, this.#used)
    this.#used += piece.length
    return piece.length
  }
}

const DATA = 'data'
const EVENT = 'event'
/** Bytes within which servers write an event's id and type: before its data. */
const MAX_START = 512

const BEFORE_DATA = {
  id: /^(?:(?!data)[a-z]*:.*\n)*?id: ?([^\0\r\n]*)\r?\n/,
  event: /^(?:(?!data)[a-z]*:.*\n)*?event: ?([^\0\r\n]*)\r?\n/,
}

/** The id or the type of an event, if it stands before the data. */
export function fieldBeforeData({ blocks: [block] }: RawEvent, name: 'id' | 'event'): string | undefined {
  const start = block && Buffer.from(block.buffer, block.byteOffset, Math.min(block.length, MAX_START))
  return BEFORE_DATA[name].exec(start?.toString('latin1') ?? '')?.[1]
}

/**
 * The text of a message: the event's `data`. Undefined for an event that is not a message, like a ping. Lines end in LF
 * or CRLF. Takes a small multiple of the event's size in memory, however many lines it has.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export function messageText({ blocks }: RawEvent): string | undefined {
  const bytes = Buffer.concat(blocks)
  let type = ''
  /** Bytes of `data` so far. They overwrite the lines that were already read. */
  let length = 0
  for (let start = 0; start < bytes.length;) {
    const found = bytes.indexOf(NEWLINE, start)
    const newline = found === -1 ? bytes.length : found
    const stop = bytes[newline - 1] === RETURN ? newline - 1 : newline
    const [field, value] = fieldOf(bytes.subarray(start, stop))
    if (field === EVENT) type = value.toString()
    if (field === DATA) {
      length += value.copy(bytes, length)
      bytes[length++] = NEWLINE
    }
    start = newline + 1
  }
  if (length === 0 || !(type === '' || type === 'message')) return undefined
  return bytes.toString('utf8', 0, length - 1)
}

/** Name and value of a line. The name is undefined unless it is `data` or `event`. */
function fieldOf(line: Buffer): readonly [name: string | undefined, value: Buffer] {
  const name = [DATA, EVENT].find(
    (known) =>
      line.toString('latin1', 0, known.length) === known && [COLON, undefined].includes(line[known.length]),
  )
  const start = (name?.length ?? 0) + 1
  return [name, line.subarray(line[start] === SPACE ? start + 1 : start)]
}

/** The index after the empty line that ends an event. `end` carries state from chunk to chunk. */
function endOfEvent(chunk: Uint8Array, from: number, end: { lineIsEmpty: boolean }): number | undefined {
  for (let at = from; ; at++) {
    const newline = chunk.indexOf(NEWLINE, at)
    const stop = newline === -1 ? chunk.length : newline
    if (stop > at && !(stop === at + 1 && chunk[at] === RETURN)) end.lineIsEmpty = false
    if (newline === -1) return undefined
    if (end.lineIsEmpty) return newline + 1
    end.lineIsEmpty = true
    at = newline
  }
}
