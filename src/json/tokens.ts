/** Deeper than any payload, and shallow enough for programs that read JSON recursively. */
export const MAX_DEPTH = 1000

/** A token of JSON text: punctuation (`{ } [ ] : ,`), a string with its quotes, or a number or literal. */
export interface Token {
  readonly start: number
  /** Past its last character. */
  readonly end: number
  /** Number of arrays and objects around it. Their own brackets are outside. */
  readonly depth: number
}

const PUNCTUATION = '{}[]:,'
const WHITE_SPACE = /[ \t\r\n]*/y
const SCALAR = /[^ \t\r\n{}[\]:,"]+/y

/**
 * The tokens of JSON text, in order, without white space. Checks neither their order nor how numbers, literals and strings are
 * written, so invalid JSON yields tokens too.
 *
 * Reads text instead of values because parsing loses large numbers, escapes, repeated names and the order of numeric names.
 * @throws RangeError for more than {@link MAX_DEPTH} nested arrays and objects.
 * @see RFC 8259 section 2
 */
export function* tokens(text: string): Generator<Token> {
  let depth = 0
  for (let start = skip(WHITE_SPACE, text, 0); start < text.length;) {
    const first = text.charAt(start)
    const end = endOfToken(text, start, first)
    if (first === '}' || first === ']') depth--
    yield { start, end, depth }
    if (first === '{' || first === '[') depth++
    if (depth > MAX_DEPTH) throw new RangeError(`JSON is nested more than ${MAX_DEPTH} deep`)
    start = skip(WHITE_SPACE, text, end)
  }
}

function endOfToken(text: string, start: number, first: string): number {
  if (first === '"') return endOfString(text, start)
  return PUNCTUATION.includes(first) ? start + 1 : skip(SCALAR, text, start)
}

/** The index after the closing quote of the string that begins at `start`; the length of the text if it has none. */
export function endOfString(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1)
  while (quote !== -1 && isEscaped(text, quote)) quote = text.indexOf('"', quote + 1)
  return quote === -1 ? text.length : quote + 1
}

/** Whether the character follows an odd number of backslashes. */
function isEscaped(text: string, at: number): boolean {
  let first = at
  while (text.charAt(first - 1) === '\\') first--
  return (at - first) % 2 === 1
}

function skip(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.test(text) ? pattern.lastIndex : from
}
