import type { Incoming } from './fetch.js'

/** Several times the largest answer of the calls we make (a pull request with both repositories, about 60 KiB). */
const MOST_BYTES = 4 * 1_048_576

/**
 * The body as text. Nothing beyond 4 MiB is read.
 * @throws Error when the answer is larger, or whatever broke the connection.
 */
export async function readText({ body }: Pick<Incoming, 'body'>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop by an error cancels the stream, which closes the connection.
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > MOST_BYTES) throw new AnswerTooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The provider's answer is larger than anything it can sensibly say. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'
}

/**
 * The JSON value in `text`; undefined when there is none. Of several documents, one per line, the last one counts:
 * Gitea 1.15 answers a merge conflict with two of them, and the error is the second.
 */
export function parseJson(text: string): unknown {
  return parsed(text) ?? parsed(text.trimEnd().split('\n').at(-1) ?? '')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
