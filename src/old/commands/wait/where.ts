import { RelayError } from '../../../base/errors.js'
import { createPattern } from './pattern.js'

/** A condition on a payload. */
export type Where = (payload: unknown) => boolean

type Path = readonly (string | number)[]

/** Far longer than any useful expression. */
const MAX_LENGTH = 1000

const NAME = String.raw`[^\s.[\]=!~"']+`
const FIRST = new RegExp(String.raw`(${NAME})|\[(\d{1,15})\]`, 'y')
const NEXT = new RegExp(String.raw`\.(${NAME})|\[(\d{1,15})\]`, 'y')
const OPERATOR = /\s*(==|!=|~)\s*/y
/** A JSON string; after `~`, backslashes belong to the pattern. */
const STRING = /^"(?:[^"\\]|\\.)*"$/s
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i

/**
 * Parses `path==literal`, `path!=literal` or `path~pattern`. A path is names joined by dots, and `[0]`. A literal in quotes
 * is text; without quotes it matches text, a number, `true`, `false` or `null` of that form. A missing field is `null`.
 * A pattern is a regular expression, tested on text, numbers, `true` and `false`.
 * @throws RelayError `usage` that says what was expected, and where. The condition throws like {@link createPattern}'s.
 */
export function parseWhere(given: string): Where {
  const text = given.trim()
  if (text.length > MAX_LENGTH)
    throw new RelayError('usage', `--where: is longer than ${MAX_LENGTH} characters`)
  const { path, end } = readPath(text)
  OPERATOR.lastIndex = end
  const [all = '', operator] = OPERATOR.exec(text) ?? []
  if (operator === undefined) throw expected('==, != or ~', text, end)
  const at = end + all.length
  if (at === text.length) throw expected(operator === '~' ? 'a pattern' : 'a value', text, at)
  const test = operator === '~' ? readPattern(text, at) : readLiteral(text, at)
  return operator === '!='
    ? (payload) => !test(valueAt(payload, path))
    : (payload) => test(valueAt(payload, path))
}

function readPath(text: string): { readonly path: Path; readonly end: number } {
  const path: (string | number)[] = []
  for (let end = 0; ;) {
    const step = end === 0 ? FIRST : NEXT
    step.lastIndex = end
    const [all, name, index] = step.exec(text) ?? []
    if (all === undefined) {
      if (end === 0) throw expected('a name or [0]', text, end)
      if (text[end] === '.') throw expected('a name', text, end + 1)
      if (text[end] === '[') throw expected('a number and ]', text, end + 1)
      return { path, end }
    }
    path.push(name ?? Number(index))
    end += all.length
  }
}

function valueAt(payload: unknown, path: Path): unknown {
  return path.reduce((value, step) => {
    if (typeof value !== 'object' || value === null) return null
    if (Array.isArray(value) !== (typeof step === 'number')) return null
    return Object.getOwnPropertyDescriptor(value, step)?.value ?? null
  }, payload)
}

function readLiteral(text: string, at: number): (value: unknown) => boolean {
  const literal = text.slice(at)
  const quoted = unquoted(text, at, (string) => JSON.parse(string))
  if (quoted !== undefined) return (value) => value === quoted
  return (value) => {
    if (typeof value === 'number') return NUMBER.test(literal) && Number(literal) === value
    return isScalar(value) && String(value) === literal
  }
}

function readPattern(text: string, at: number): (value: unknown) => boolean {
  const source = unquoted(text, at, (string) => string.slice(1, -1).replaceAll(String.raw`\"`, '"'))
  try {
    const test = createPattern(source ?? text.slice(at))
    return (value) => value !== null && isScalar(value) && test(String(value))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.replace(/^.*: /s, '') : ''
    throw expected(`a regular expression (${why})`, text, at)
  }
}

/** The quoted text at the end; undefined when that does not start with a quote. */
function unquoted(text: string, at: number, read: (string: string) => string): string | undefined {
  const rest = text.slice(at)
  const quote = rest[0] ?? ''
  if (!['"', "'"].includes(quote)) return undefined
  if (rest.length < 2 || !rest.endsWith(quote)) throw expected(`${quote} at the end`, text, text.length)
  if (quote === "'") return rest.slice(1, -1)
  try {
    if (STRING.test(rest)) return read(rest)
  } catch {
    // Reported below.
  }
  throw expected('one JSON string', text, at)
}

function isScalar(value: unknown): value is string | number | boolean | null {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

function expected(what: string, text: string, at: number): RelayError {
  const place = at < text.length ? `at character ${at + 1}, before ${text.slice(at)}` : 'at the end'
  return new RelayError('usage', `--where ${text}: expected ${what} ${place}`)
}
