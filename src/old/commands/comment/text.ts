import { createReadStream } from 'node:fs'
import path from 'node:path'
import { addAbortSignal } from 'node:stream'
import { RelayError } from '../../../base/errors.js'
import { readBounded } from '../../../base/read-bounded.js'
import type { Context } from '../../context.js'
import { readInput } from '../../input.js'

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
  const input = addAbortSignal(signal, stream)
  const options = { name, tooLarge: 'larger than 1 MiB', signal }
  const bytes = await readInput(() => readBounded(input, MAX_BYTES), options)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new RelayError('usage', `${name} is not UTF-8`, { cause })
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
