import { type AnswerHead, parseAnswerHead } from './answer-head.js'
import { Chunked } from './chunked.js'

/** As much as Node itself takes of one. */
const MAX_HEAD = 16 * 1024

const HEAD_END = Buffer.from('\r\n\r\n')
const BEGINNING = Buffer.from('HTTP/1.')
const NOTHING = Buffer.alloc(0)

/** Reads the HTTP/1 answer to one request (RFC 9112) in whatever pieces it comes. */
export class AnswerReader {
  readonly #take: (content: Buffer) => void
  readonly #most: number
  readonly #chunked = new Chunked()
  /** What has come of a head that is not yet whole. */
  #unread = NOTHING
  #head: AnswerHead | undefined
  #length = 0
  #surplus = false

  /** Gives the text to `take`, piece by piece; past `most` bytes it is cut off. */
  constructor(take: (content: Buffer) => void, most: number) {
    this.#take = take
    this.#most = most
  }

  /** That of the answer itself, once it is there; those that tell of one still to come (1xx) are passed over. */
  get head(): AnswerHead | undefined {
    return this.#head
  }

  /** Whether nothing more is to be read of it. */
  get isComplete(): boolean {
    return this.isWhole || this.#length > this.#most
  }

  /** Whether another request can be sent where this answer, which is complete, came from. */
  get keepsOpen(): boolean {
    return this.isWhole && !this.#surplus && this.#head?.keepsOpen === true
  }

  /** Whether all of its text has come, which of one that ends with its connection is not known here. */
  get isWhole(): boolean {
    const framing = this.#head?.framing
    return framing === 'chunked' ? this.#chunked.isComplete : this.#length === framing
  }

  /**
   * Of `piece` nothing is kept here: when `take` keeps nothing, its memory may be used again.
   * @throws Error when it is not an HTTP/1 answer.
   */
  read(piece: Buffer): void {
    const text = this.#head ? piece : this.#readHead(piece)
    if (!this.#head || text.length === 0) return
    const { framing } = this.#head
    const used = framing === 'chunked' ? this.#chunked.read(text, this.#add) : this.#readPlain(text, framing)
    if (used < text.length) this.#surplus = true
  }

  /** What of it comes after the head. */
  #readHead(piece: Buffer): Buffer {
    const bytes = this.#unread.length > 0 ? Buffer.concat([this.#unread, piece]) : piece
    let from = 0
    for (let end = bytes.indexOf(HEAD_END); end !== -1; end = bytes.indexOf(HEAD_END, from)) {
      const head = parseAnswerHead(bytes.toString('latin1', from, end))
      from = end + HEAD_END.length
      if (head.status === 101) throw new Error('it answers in a protocol that it was not asked for')
      if (head.status < 200) continue
      this.#head = head
      this.#unread = NOTHING
      return bytes.subarray(from)
    }
    const unread = bytes.subarray(from)
    const known = Math.min(unread.length, BEGINNING.length)
    if (unread.compare(BEGINNING, 0, known, 0, known) !== 0) throw new Error('what it answers is not HTTP/1')
    if (unread.length > MAX_HEAD) throw new Error('the headers of its answer are too long')
    this.#unread = Buffer.from(unread)
    return NOTHING
  }

  #readPlain(text: Buffer, framing: number | 'close'): number {
    const content = framing === 'close' ? text : text.subarray(0, framing - this.#length)
    this.#add(content)
    return content.length
  }

  readonly #add = (content: Buffer): void => {
    this.#take(content)
    this.#length += content.length
  }
}
