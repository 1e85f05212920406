import { readFileSync } from 'node:fs'
import { RelayError } from '../../base/errors.js'
import { lineOfError } from '../../base/json-line.js'

/**
 * The JSON object in a file; undefined when there is no such file.
 * @throws RelayError `settings` naming the file, and the line where it stops being JSON.
 */
export function readJsonObject(file: string): Readonly<Record<string, unknown>> | undefined {
  const text = readText(file)?.replace(/^\uFEFF/, '')
  if (text === undefined) return undefined
  const value = parse(text, file)
  if (isObject(value)) return value
  throw new RelayError('settings', `${file}: must hold one JSON object, { … }`)
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw new RelayError('settings', `${file} cannot be read`, { cause })
  }
}

function parse(text: string, file: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // The parser's own message quotes the text, and says the position in some cases only.
    throw new RelayError('settings', `${file}, line ${lineOfError(text)}: not JSON`, { cause })
  }
}
