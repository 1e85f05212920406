import { request, type IncomingMessage } from 'node:http'
import type { Cancellable } from './abort.js'

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

/**
 * Asks a server on this machine, over plain HTTP and no proxy, on a connection of its own. Node's fetch could do it too,
 * but loading that takes longer than all else that a short command does (measured).
 * @throws AbortError; an error with a `code` when the connection cannot be made or breaks.
 */
export async function ask(
  url: URL,
  { method, headers, body }: Question,
  { signal }: Cancellable = {},
): Promise<Answer> {
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { agent: false, method, headers, ...(signal && { signal }) }, resolve)
      .on('error', reject)
      .end(body)
  })
  return {
    status: incoming.statusCode ?? 0,
    header: (name) => incoming.headers[name.toLowerCase()]?.toString(),
    text: await textOf(incoming),
  }
}

/** By events: the first asynchronous iterator of a stream costs a short command milliseconds. */
function textOf(incoming: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let size = 0
    incoming
      .on('data', (chunk: Uint8Array) => {
        size += chunk.length
        if (size > MAX_ANSWER) incoming.destroy(new Error('The answer is larger than 1 MiB'))
        else chunks.push(chunk)
      })
      .on('end', () => resolve(Buffer.concat(chunks).toString()))
      .on('error', reject)
  })
}
