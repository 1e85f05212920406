import { connect, type Socket } from 'node:net'
import { onAbort, type Cancellable } from './abort.js'
import { AnswerReader } from './answer-reader.js'

export interface Question {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

export interface Answer {
  readonly status: number
  /** A header's value, whatever the case of its name. */
  readonly header: (name: string) => string | undefined
  readonly text: string
}

/** Sends one request, once, and takes the whole answer. Follows no redirect. */
export type Ask = (url: URL, question: Question, options?: Cancellable) => Promise<Answer>

/** 1 MiB: a thousand times the longest answer that relay gives. */
const MAX_ANSWER = 1_048_576

/** What would end a header's line, or is no character of one. */
const NOT_IN_HEADER = /[^\t\x20-\x7e\x80-\xff]/

/**
 * Asks a server on this machine, over plain HTTP and no proxy, on a connection of its own. Without Node's fetch and http: to load
 * and first use them takes longer than all else that a short command does, and 3 ms longer than this (measured).
 * @throws AbortError; an error with a `code` when the connection cannot be made or breaks.
 */
export async function ask(url: URL, question: Question, { signal }: Cancellable = {}): Promise<Answer> {
  if (signal?.aborted) throw aborted(signal)
  const request = requestOf(url, question)
  const socket = connect({ host: hostOf(url), port: Number(url.port || 80), noDelay: true })
  const ignore = signal && onAbort(signal, () => socket.destroy(aborted(signal)))
  try {
    socket.write(request)
    return await answerFrom(socket)
  } finally {
    ignore?.()
    socket.destroy()
  }
}

function requestOf(url: URL, { method, headers, body }: Question): Buffer {
  const own = { Host: url.host, Connection: 'close' }
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  let head = `${method} ${url.pathname}${url.search} HTTP/1.1\r\n`
  for (const [name, value] of Object.entries({ ...own, ...headers, ...length })) {
    if (NOT_IN_HEADER.test(value)) throw new Error(`The header ${name} cannot be sent`)
    head += `${name}: ${value}\r\n`
  }
  return Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), Buffer.from(body ?? '')])
}

/** An IPv6 address without its brackets. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

function answerFrom(socket: Socket): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const pieces: Uint8Array[] = []
    let size = 0
    const take = (content: Uint8Array): void => {
      size += content.length
      if (size > MAX_ANSWER) throw new Error('The answer is larger than 1 MiB')
      pieces.push(content)
    }
    const reader = new AnswerReader(take, MAX_ANSWER)
    const settle = (): void => {
      const { head } = reader
      if (head)
        resolve({
          status: head.status,
          header: (name) => head.headers.get(name.toLowerCase()),
          text: Buffer.concat(pieces).toString(),
        })
    }
    socket
      .on('data', (piece) => {
        try {
          reader.read(piece)
          if (reader.isWhole) settle()
        } catch (error) {
          reject(error)
        }
      })
      .on('end', () => {
        if (reader.head?.framing === 'close') settle()
      })
      .on('error', reject)
      // Without effect where it is settled.
      .on('close', () => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' })))
  })
}

/** As Node's own functions throw it. */
function aborted({ reason }: AbortSignal): Error {
  return Object.assign(new Error('The operation was aborted', { cause: reason }), {
    name: 'AbortError',
    code: 'ABORT_ERR',
  })
}
