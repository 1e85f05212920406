import { createReadStream } from 'node:fs'
import path from 'node:path'
import { addAbortSignal } from 'node:stream'
import { errorCode } from '../../../base/errno.js'
import { RelayError } from '../../../base/errors.js'
import { readBounded, TooManyBytes } from '../../../base/read-bounded.js'
import type { Context } from '../../context.js'

/** 1 MiB: many times the longest comment that a code host accepts. */
const MAX_BYTES = 1_048_576

/** Where the text of a command can come from; `-` is standard input in both. */
export interface TextSource {
  readonly argument?: string | undefined
  readonly file?: string | undefined
}

/**
 * The text of the argument, a file, or standard input, without its byte order mark.
 * @throws RelayError `usage` for no text, two texts, or one that is blank, not UTF-8 or not readable; `too_large` beyond 1 MiB;
 * `cancelled`.
 * @param empty the message for a blank text.
 */
export async function readText(
  context: Context,
  { argument, file }: TextSource,
  empty = 'The text is empty',
): Promise<string> {
  if (argument !== undefined && file !== undefined)
    throw new RelayError('usage', 'The text is given twice: as an argument and with --body-file')
  const source = argument ?? file
  if (source === undefined) throw noText(context)
  const text = source === argument && source !== '-' ? source : await read(context, source)
  if (!/\S/.test(text)) throw new RelayError('usage', empty)
  return text
}

async function read({ stdin, cwd, signal }: Context, source: string): Promise<string> {
  const [name, stream] =
    source === '-'
      ? ['standard input', stdin]
      : [`--body-file: ${source}`, createReadStream(path.resolve(cwd, source))]
  try {
    const bytes = await readBounded(addAbortSignal(signal, stream), MAX_BYTES)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    if (signal.aborted) throw cause
    if (cause instanceof TooManyBytes) throw new RelayError('too_large', `${name} is larger than 1 MiB`)
    const why =
      cause instanceof TypeError ? 'is not UTF-8' : `cannot be read (${errorCode(cause) ?? 'unknown reason'})`
    throw new RelayError('usage', `${name} ${why}`, { cause })
  }
}

function noText({ stdin }: Context): RelayError {
  return new RelayError(
    'usage',
    stdin.isTTY === true
      ? 'No text given. Give it as an argument, with --body-file, or - to type it here'
      : 'No text given. Give it as an argument, with --body-file, or - to read standard input',
  )
}
