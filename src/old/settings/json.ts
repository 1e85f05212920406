import type { Stats } from 'node:fs'
import { RelayError } from '../../base/errors.js'
import { isObject } from '../../json/parse.js'
import { lineOf } from '../../json/text.js'
import { readSmallFile } from './small-file.js'

/**
 * The JSON object in a regular file of at most 1 MiB; undefined when there is no such file. `accept` is that of
 * {@link readSmallFile}.
 * @throws RelayError `settings` naming the file, and the line of a syntax error.
 */
export function readJsonObject(
  file: string,
  accept?: (opened: Stats) => void,
): Readonly<Record<string, unknown>> | undefined {
  const text = readSmallFile(file, {}, accept)?.replace(/^\uFEFF/, '')
  if (text === undefined) return undefined
  const value = parse(text, file)
  if (isObject(value)) return value
  throw new RelayError('settings', `${file}: must be one JSON object, { … }`)
}

function parse(text: string, file: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // The parser's own message quotes the text, and names the position only in some cases.
    throw new RelayError('settings', `${file}, line ${lineOf(text)}: not JSON`, { cause })
  }
}
