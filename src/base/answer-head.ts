/** The head of an HTTP/1 answer: its status line and headers. */
export interface AnswerHead {
  readonly status: number
  /** The value by lower-case name; of several lines, all of them with commas between (RFC 9110 section 5.3). */
  readonly headers: ReadonlyMap<string, string>
  /** How the end of the text is known: after so many bytes, by the chunked coding, or by the connection's end. */
  readonly framing: number | 'chunked' | 'close'
  /** Whether the connection stays open for another request. */
  readonly keepsOpen: boolean
}

const STATUS_LINE = /^HTTP\/1\.(\d) ([1-9]\d\d)(?: |$)/
const NAME = /^[!#$%&'*+.^_`|~\w-]+$/
/** A line that goes on with the next one, as was once allowed (RFC 9112 section 5.2). */
const FOLD = /\r\n[ \t]+/g

let last: { readonly text: string; readonly head: AnswerHead } | undefined

/**
 * Reads a head without the empty line that ends it. One like the last is not read again: within a second, a program's answers
 * mostly begin the same.
 * @throws Error when it is none, or says two things about where the text ends.
 */
export function parseAnswerHead(text: string): AnswerHead {
  if (last?.text !== text) last = { text, head: readHead(text) }
  return last.head
}

function readHead(text: string): AnswerHead {
  const [first = '', ...lines] = text.replace(FOLD, ' ').split('\r\n')
  const [, minor, digits] = STATUS_LINE.exec(first) ?? []
  if (digits === undefined) throw new Error('what it answers is not HTTP/1')
  const status = Number(digits)
  const headers = readHeaders(lines)
  const length = headers.get('content-length')
  const framing = framingOf(status, length, headers.get('transfer-encoding'))
  // A length beside another framing: who speaks so may mean either.
  const isClear = framing !== 'close' && (framing !== 'chunked' || length === undefined)
  return { status, headers, framing, keepsOpen: minor !== '0' && isClear && !saysClose(headers) }
}

function readHeaders(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon))
    if (!NAME.test(name)) throw new Error('what it answers is not HTTP/1: a line is no header')
    const key = name.toLowerCase()
    const before = headers.get(key)
    const value = line.slice(colon + 1).trim()
    headers.set(key, before === undefined ? value : `${before}, ${value}`)
  }
  return headers
}

/** @see https://www.rfc-editor.org/rfc/rfc9112#section-6.3 */
function framingOf(
  status: number,
  length: string | undefined,
  coding: string | undefined,
): AnswerHead['framing'] {
  if (status < 200 || status === 204 || status === 304) return 0
  if (coding !== undefined) return /(?:^|,)[ \t]*chunked$/i.test(coding) ? 'chunked' : 'close'
  if (length === undefined) return 'close'
  const [given = '', ...others] = length.split(',').map((each) => each.trim())
  if (!/^\d{1,15}$/.test(given) || others.some((other) => other !== given))
    throw new Error('what it answers is not HTTP/1: no telling how long it is')
  return Number(given)
}

/** Also when it is to be closed so soon that the next request might cross with that: within two seconds. */
function saysClose(headers: ReadonlyMap<string, string>): boolean {
  const seconds = /\btimeout=(\d+)/i.exec(headers.get('keep-alive') ?? '')?.[1]
  return (
    /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(headers.get('connection') ?? '') ||
    Number(seconds ?? Infinity) <= 2
  )
}
