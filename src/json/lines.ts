import { tokens } from './tokens.js'

/**
 * The line, counted from 1, of the first wrong token in invalid JSON; the last line if something is missing at the end.
 */
export function lineOfError(text: string): number {
  return lineAt(text, wrongAt(text))
}

/**
 * The line, counted from 1, where the value at `path` begins in well-formed JSON. If it does not exist, the line of its closest
 * existing parent. If a name is repeated, the last one counts, as in JSON.parse.
 */
export function lineOfField(text: string, path: readonly PropertyKey[]): number {
  const place: (string | number)[] = []
  let found = { depth: 0, at: 0 }
  let expectsName = false
  const look = (at: number): void => {
    const fits = place.length <= path.length && place.every((key, i) => key === path[i])
    if (fits && place.length >= found.depth) found = { depth: place.length, at }
  }
  for (const { start, end } of tokens(text)) {
    const first = text.charAt(start)
    const inner = place.at(-1)
    if (place.length === 0) look(start)
    else if (typeof inner === 'number' && !']},'.includes(first)) look(start)
    else if (expectsName && first === '"') place.splice(-1, 1, String(JSON.parse(text.slice(start, end))))
    if (expectsName && first === '"') look(start)
    if (first === '{' || first === '[') place.push(first === '{' ? '' : 0)
    else if (first === '}' || first === ']') place.pop()
    else if (first === ',' && typeof inner === 'number') place.splice(-1, 1, inner + 1)
    expectsName = first === '{' || (first === ',' && typeof inner === 'string')
  }
  return lineAt(text, found.at)
}

function lineAt(text: string, end: number): number {
  return text.slice(0, end).split('\n').length
}

/** The tokens allowed next: `v` a value, `s` a string, or punctuation. */
type Expected = 'v' | 'v]' | 's' | 's}' | ':' | ',]' | ',}' | ''

const SCALAR = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/

/** The index of the first token that is not allowed at its place; the length of the text if it only ends too early. */
function wrongAt(text: string): number {
  const open: string[] = []
  let expected: Expected = 'v'
  try {
    for (const { start, end } of tokens(text)) {
      const kind = kindOf(text.slice(start, end), end === text.length)
      const next: Expected | undefined = kind && after(kind, expected, open)
      if (next === undefined) return start
      expected = next
    }
  } catch {
    // Nested too deep: reported as the end.
  }
  return text.length
}

/** Punctuation itself, `s` for a string, `v` for another value; undefined for anything else. */
function kindOf(token: string, isLast: boolean): string | undefined {
  if ('{}[]:,'.includes(token)) return token
  if (!token.startsWith('"')) return SCALAR.test(token) ? 'v' : undefined
  const whole = isLast && !isClosed(token) ? `${token}"` : token
  return isString(whole) ? 's' : undefined
}

function isClosed(token: string): boolean {
  return token.length > 1 && token.endsWith('"')
}

function isString(token: string): boolean {
  try {
    JSON.parse(token)
    return true
  } catch {
    return false
  }
}

/** What may follow the token; undefined if the token is not allowed here. */
function after(token: string, expected: Expected, open: string[]): Expected | undefined {
  if (token === '}' || token === ']') {
    if (!expected.endsWith(token)) return undefined
    open.pop()
    return inside(open)
  }
  if (token === ',' && expected.startsWith(',')) return expected === ',}' ? 's' : 'v'
  if (token === ':' && expected === ':') return 'v'
  if (token === 's' && expected.startsWith('s')) return ':'
  if (!expected.startsWith('v') || token === ',' || token === ':') return undefined
  if (token !== '{' && token !== '[') return inside(open)
  open.push(token)
  return token === '{' ? 's}' : 'v]'
}

/** What may follow a value here. */
function inside(open: readonly string[]): Expected {
  if (open.length === 0) return ''
  return open.at(-1) === '{' ? ',}' : ',]'
}
