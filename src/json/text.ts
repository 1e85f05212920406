/** Deepest accepted nesting: deeper than any payload, and shallow enough for programs that read JSON recursively. */
export const MAX_DEPTH = 1000

/** A token of JSON text: punctuation (`{ } [ ] : ,`), a string with its quotes, or a number or literal. */
export interface Token {
  readonly start: number
  /** Index after its last character. */
  readonly end: number
  /** Number of arrays and objects around it. A bracket does not count its own. */
  readonly depth: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const WHITE_SPACE = /[ \t\r\n]*/y
const SCALAR = /[^ \t\r\n{}[\]:,"]+/y

/** True if the text ends inside an array or an object. */
export function isCutOff(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '"') at = endOfString(text, at) - 1
    else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') depth--
  }
  return depth > 0
}

/**
 * Yields the tokens of JSON text in order, without white space. Text keeps what values lose: large numbers, escapes,
 * repeated names and the order of numeric names. Neither the order of the tokens nor the syntax of numbers, literals
 * and strings is checked.
 * @throws RangeError for more than `maxDepth` nested arrays and objects.
 * @see RFC 8259 section 2
 */
export function* jsonTokens(text: string, maxDepth = MAX_DEPTH): Generator<Token, undefined> {
  let depth = 0
  for (let start = skip(WHITE_SPACE, text, 0); start < text.length;) {
    const first = text.charAt(start)
    const end = endOfToken(text, start, first)
    if (first === '}' || first === ']') depth--
    yield { start, end, depth }
    if (first === '{' || first === '[') depth++
    if (depth > maxDepth) throw new RangeError(`JSON is nested more than ${maxDepth} deep`)
    start = skip(WHITE_SPACE, text, end)
  }
}

function endOfToken(text: string, start: number, first: string): number {
  if (first === '"') return endOfString(text, start)
  return '{}[]:,'.includes(first) ? start + 1 : skip(SCALAR, text, start)
}

/**
 * Returns the index after the closing quote of the string that begins at `start`, or the text's length if there is
 * none.
 */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at + 1
    if (code === BACKSLASH) at++
  }
  return text.length
}

function skip(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.test(text) ? pattern.lastIndex : from
}

/**
 * Formats well-formed JSON with one value per line, indented by two spaces. Changes only white space, so repeated names
 * stay. Text that is nested too deep is returned unchanged.
 */
export function indentJson(json: string): string {
  const parts: string[] = []
  let previous = ''
  for (const { start, end, depth } of jsonTokens(json, Infinity)) {
    if (depth > MAX_DEPTH) return json
    const token = json.slice(start, end)
    const isEnd = token === '}' || token === ']'
    const isFirst = previous === '{' || previous === '['
    if (previous === ',' || (isFirst && !isEnd) || (isEnd && !isFirst)) parts.push('\n', '  '.repeat(depth))
    parts.push(token === ':' ? ': ' : token)
    previous = token
  }
  return parts.join('')
}

/**
 * Replaces the value at a path of names and leaves every other byte unchanged. Returns undefined if the path leads to
 * no text, number or literal. Of repeated names the last counts, as in JSON.parse.
 */
export function replaceScalar(
  text: string,
  path: readonly string[],
  value: string | number,
): string | undefined {
  /** Name before the current value, at each depth. */
  const names: (string | undefined)[] = []
  let before = ''
  let found: Token | undefined
  for (const token of jsonTokens(text)) {
    const raw = text.slice(token.start, token.end)
    const isOpening = raw === '{' || raw === '['
    if (before === ':' && token.depth === path.length && path.every((name, i) => names[i + 1] === name))
      found = isOpening ? undefined : token
    if (isOpening) names[token.depth + 1] = undefined
    else if (raw === ':') names[token.depth] = stringOf(before)
    before = raw
  }
  return found && text.slice(0, found.start) + JSON.stringify(value) + text.slice(found.end)
}

const SCALAR_VALUE = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/

/**
 * Returns the line, counted from 1, of the member or item at `path`. If it is missing, the line of its closest existing
 * parent; of repeated names the last counts, as in JSON.parse. In malformed text, the line of the first wrong token, or
 * the last line if the text ends too early.
 */
export function lineOf(text: string, path: readonly PropertyKey[] = []): number {
  const rest = jsonTokens(text)
  let token = rest.next().value
  let found = token?.start ?? text.length
  let foundDepth = 0
  const raw = (): string => text.slice(token?.start, token?.end)
  const next = (): true => {
    token = rest.next().value
    return true
  }
  const passes = (mark: string): boolean => token !== undefined && raw() === mark && next()
  /** Follows the path into the value around `key`. Returns true if it leads on to `key`. */
  const leads = (key: PropertyKey, depth: number, at = text.length): boolean => {
    if (path[depth] !== key) return false
    if (depth >= foundDepth) [found, foundDepth] = [at, depth]
    return true
  }
  const members = (depth: number, isOn: boolean): boolean => {
    do {
      const [at, name] = [token?.start, stringOf(raw())]
      if (name === undefined || !next() || !passes(':')) return false
      if (!value(depth + 1, isOn && leads(name, depth, at))) return false
    } while (passes(','))
    return passes('}')
  }
  const items = (depth: number, isOn: boolean): boolean => {
    let place = 0
    do if (!value(depth + 1, isOn && leads(place++, depth, token?.start))) return false
    while (passes(','))
    return passes(']')
  }
  /** Consumes one value. Returns false at the first wrong token. */
  const value = (depth: number, isOn: boolean): boolean => {
    if (passes('{')) return passes('}') || members(depth, isOn)
    if (passes('[')) return passes(']') || items(depth, isOn)
    return (stringOf(raw()) !== undefined || SCALAR_VALUE.test(raw())) && next()
  }
  let isWellFormed = false
  try {
    isWellFormed = value(0, true) && token === undefined
  } catch {
    // Text that is nested too deep is malformed.
  }
  return text.slice(0, isWellFormed ? found : (token?.start ?? text.length)).split('\n').length
}

function stringOf(raw: string): string | undefined {
  if (!raw.startsWith('"')) return undefined
  try {
    return String(JSON.parse(raw))
  } catch {
    return undefined
  }
}
