import { createReadStream } from 'node:fs'
import path from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import { RelayError } from '../base/errors.js'
import type { Context } from './context.js'

/** 1 MiB: many times the longest comment a code host takes. */
const MAX_BYTES = 1_048_576

/** Where a command's text may come from; `-` is standard input in both. */
export interface TextSource {
  readonly argument?: string | undefined
  readonly file?: string | undefined
}

/**
 * The text a person gave: as argument, in a file, or on standard input. It is not changed, but for a byte order mark.
 * @throws RelayError `usage`: none, two, blank, not UTF-8 or not readable; `too_large` beyond 1 MiB; `cancelled`.
 */
export async function readText(context: Context, { argument, file }: TextSource): Promise<string> {
  if (argument !== undefined && file !== undefined)
    throw new RelayError('usage', 'The text is given twice: as argument and with --body-file')
  const source = argument ?? file
  if (source === undefined) throw noText(context)
  const text = source === argument && source !== '-' ? source : await read(context, source)
  if (!/\S/.test(text)) throw new RelayError('usage', 'The text is empty')
  return text
}

async function read({ stdin, cwd, signal }: Context, source: string): Promise<string> {
  const [name, stream] =
    source === '-'
      ? ['standard input', stdin]
      : [`--body-file: ${source}`, createReadStream(path.resolve(cwd, source))]
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(
      await readBytes(name, addAbortSignal(signal, stream)),
    )
  } catch (cause) {
    if (cause instanceof RelayError || signal.aborted) throw cause
    const why = cause instanceof TypeError ? 'is not UTF-8' : `cannot be read (${codeOf(cause)})`
    throw new RelayError('usage', `${name} ${why}`, { cause })
  }
}

async function readBytes(name: string, stream: Readable): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  const read: AsyncIterable<Uint8Array> = stream
  for await (const chunk of read) {
    size += chunk.length
    if (size > MAX_BYTES) throw new RelayError('too_large', `${name} is larger than 1 MiB`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function noText({ stdin }: Context): RelayError {
  return new RelayError(
    'usage',
    stdin.isTTY === true
      ? 'No text: give it as argument, with --body-file, or - to type it here'
      : 'No text: give it as argument, with --body-file, or - to take what is piped in',
  )
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
}
