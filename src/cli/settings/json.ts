import { readFileSync } from 'node:fs'
import { RelayError } from '../../base/errors.js'

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

/** The line, counted from 1, of the first thing that is not JSON; of the end, when something is missing there. */
export function lineOfError(text: string): number {
  return text.slice(0, endOfJson(text)).split('\n').length
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

/** A sign, a string (perhaps without its end, at the end of the text), or another value, after white space. */
const TOKEN =
  /[ \t\r\n]*(?:([{}[\],:])|"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*("|$)|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-]))/uy

/** What may come next, in the form of the tokens: `v` a value, `s` a string. */
type Wanted = 'v' | 'v]' | 's' | 's}' | ':' | ',]' | ',}' | ''

/** How far the text is JSON. */
function endOfJson(text: string): number {
  const open: string[] = []
  let wanted: Wanted = 'v'
  let end = 0
  for (;;) {
    TOKEN.lastIndex = end
    const found = TOKEN.exec(text)
    const token = found?.[1] ?? (found?.[2] === undefined ? 'v' : 's')
    const next: Wanted | undefined = found ? after(token, wanted, open) : undefined
    if (next === undefined) break
    wanted = next
    end = TOKEN.lastIndex
  }
  return end + (/^\s*/.exec(text.slice(end))?.[0].length ?? 0)
}

/** Undefined when the token may not stand there. */
function after(token: string, wanted: Wanted, open: string[]): Wanted | undefined {
  const innermost = (): Wanted => (open.length === 0 ? '' : open.at(-1) === '{' ? ',}' : ',]')
  if (token === '}' || token === ']') {
    if (!wanted.endsWith(token)) return undefined
    open.pop()
    return innermost()
  }
  if (token === ',' && wanted.startsWith(',')) return wanted === ',}' ? 's' : 'v'
  if (token === ':' && wanted === ':') return 'v'
  if (token === 's' && wanted.startsWith('s')) return ':'
  if (!wanted.startsWith('v')) return undefined
  if (token === '{' || token === '[') {
    open.push(token)
    return token === '{' ? 's}' : 'v]'
  }
  return token === 'v' || token === 's' ? innermost() : undefined
}
