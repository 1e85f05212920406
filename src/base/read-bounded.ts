/** A body or an input is larger than its limit, which the message names. The message contains none of the content. */
export class TooManyBytes extends Error {
  override readonly name = 'TooManyBytes'

  constructor(limit: number) {
    super(`more than ${limit} bytes`)
  }
}

/**
 * Reads a whole stream: a response body, standard input or a file.
 * @param limit in bytes; reading stops there, which closes the stream's connection.
 * @throws TooManyBytes beyond the limit; the stream's own error.
 */
export async function readBounded(stream: AsyncIterable<Uint8Array>, limit: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.byteLength
    if (size > limit) throw new TooManyBytes(limit)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
