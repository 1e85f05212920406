import { isHolding, isNameOfSecret, isNaming, isSecretName, isSecretParameter } from './names.js'
import { type TextRange, type Span, trimRange } from './span.js'

/**
 * A name of up to four words, perhaps quoted, with the separator before its value. Each repetition has a limit, since a
 * stranger wrote the text.
 */
const NAME =
  /(?<![\p{L}\p{N}_.])([\p{L}\p{N}_%$[\]][\p{L}\p{N}_.%$[\]-]{0,63}(?:[ \t][\p{L}\p{N}_.-]{1,32}){0,3})(\\{0,7}["'`][\])]?|)[ \t\r\n]{0,8}(=>|:=|<-|:(?![:=]|\/\/)|=(?![=~>])|\|(?!\|)|[,(](?=[ \t]{0,4}\\{0,7}["'`]))/gu
const OPENING = /[ \t]{0,8}("""|'''|\\{0,7}["'`])/y
const BRACKET = /[ \t]{0,8}[{[]/y
const BEFORE_NAME = /^[ \t>*#|/-]*(?:(?:export|set|let|const|var|env) )?["'`:@]?$/i
/** Most characters before a name on its line that are examined. */
const MAX_BEFORE = 64
const BLOCK = /^[|>][-+\d]{0,3}(?:[ \t]+#.*)?$/
/** End of an element, which also ends a text in it. */
const IN_TAG = /<(?:\/|br\b)/i
/** Most lines between a value and the line that names it. */
const MAX_APART = 8

interface Named {
  readonly name: string
  /** First position at which the value may begin. */
  readonly at: number
  /**
   * Character that ends the value before the line does: the quote around name and value, or the punctuation after a
   * JSON value.
   */
  readonly until: RegExp | undefined
  /** Column of the name if it begins its line. In `- name: x`, the column after the dash. */
  readonly column: number | undefined
  readonly isItem: boolean
}

/**
 * Finds values that a name before `:` or `=` identifies as secret, in lines of settings, YAML, headers, JSON within
 * text, and sentences.
 */
export function* secretsInLines(text: string): Generator<Span> {
  if (!/[:=|,(<]/.test(text)) return
  const reader = new Reader(text)
  let held: { readonly value: TextRange; readonly line: number; readonly column: number } | undefined
  let named: { readonly until: number; readonly column: number } | undefined
  const names = new RegExp(NAME)
  let line = 0
  let counted = 0
  for (let match = names.exec(text); match; match = names.exec(text)) {
    for (; counted < match.index; counted++) if (text.charCodeAt(counted) === 0x0a) line++
    const of = namedBy(text, match)
    const { name, column } = of
    if (of.isItem) held = named = undefined
    const isNear = named !== undefined && line <= named.until && named.column === column
    const isSecret = isSecretOf(text, match.index, name) || (isNear && isHolding(name))
    if (isSecret) {
      const value = valueOf(text, of, reader)
      if (!value) continue
      yield value
      names.lastIndex = Math.max(names.lastIndex, value.end)
      continue
    }
    if (column === undefined) continue
    // Without the lines below, which have names of their own.
    const value = reader.after(of.at) ?? trimRange(text, { start: of.at, end: reader.lineEnd(of.at) })
    if (isHolding(name)) {
      if (value) held = { value, line, column }
    } else if (isNaming(name)) {
      if (!value || !isNameOfSecret(unquoted(text.slice(value.start, value.end)))) continue
      named = { until: line + MAX_APART, column }
      if (held && held.line >= line - MAX_APART && held.column === column) yield held.value
    }
  }
}

function isSecretOf(text: string, at: number, name: string): boolean {
  if (isSecretName(name) || (name.includes(' ') && name.split(' ').some(isSecretName))) return true
  return /[?&]/.test(text.charAt(at - 1)) && isSecretParameter(name)
}

const unquoted = (text: string): string => text.replaceAll(/^["']|["',]$/g, '')

function namedBy(
  text: string,
  { 0: all, 1: name = '', 2: quote = '', 3: mark = '', index }: RegExpExecArray,
): Named {
  const before = text.slice(Math.max(0, index - MAX_BEFORE), index)
  const start = before.lastIndexOf('\n')
  const prefix = before.slice(start + 1)
  const isFirst = (start !== -1 || index <= MAX_BEFORE) && BEFORE_NAME.test(prefix)
  const open = /["'`]$/.exec(prefix)?.[0]
  return {
    name,
    at: index + all.length,
    until: isFirst && !quote && !open ? undefined : endAfter(mark, prefix, quote, open),
    column: isFirst ? prefix.length : undefined,
    isItem: isFirst && /^[ \t]*- /.test(prefix),
  }
}

/**
 * End of a value in the middle of a line. A parameter of an address ends earlier; text after a colon has no end there.
 */
function endAfter(mark: string, prefix: string, quote: string, open: string | undefined): RegExp | undefined {
  if (quote !== '') return /[,}\]]/
  if (open !== undefined) return new RegExp(open)
  if (mark !== '=') return undefined
  return /[&?]$/.test(prefix) ? /[\s"'`<>&#]/ : /[\s"'`<>]/
}

/**
 * Range of a name's value: within its quotes or brackets, to the end of its line, or the more deeply indented lines
 * below.
 */
function valueOf(text: string, { at, until, column }: Named, reader: Reader): TextRange | undefined {
  const inQuotes = reader.after(at)
  if (inQuotes) return until ? inQuotes : withWordsAfter(text, inQuotes, reader)
  const inBrackets = reader.brackets(at)
  if (inBrackets) return inBrackets
  const lineEnd = reader.lineEnd(at)
  const start = trimRange(text, { start: at, end: lineEnd })?.start ?? lineEnd
  const end = text.slice(start, lineEnd).search(until ?? IN_TAG)
  if (until || end !== -1) return trimRange(text, { start, end: end === -1 ? lineEnd : start + end })
  const first = trimRange(text, { start, end: lineEnd })
  if (column === undefined) return first ?? nextLine(text, lineEnd)
  const isBlock = first !== undefined && BLOCK.test(text.slice(first.start, first.end))
  const below = linesBelow(text, lineEnd, column, first === undefined)
  if (first && (!isBlock || below)) return { start: first.start, end: below?.end ?? first.end }
  return below ?? first ?? nextLine(text, lineEnd)
}

/** Extends a quoted value by the words after it on its line, unless they are a comment. */
function withWordsAfter(text: string, { start, end }: TextRange, reader: Reader): TextRange {
  const lineEnd = reader.lineEnd(end)
  const rest = text.slice(end, lineEnd)
  return /^\\?["'`]{1,3}[ \t]{1,8}[^\s#/]/.test(rest)
    ? { start, end: end + rest.trimEnd().length }
    : { start, end }
}

/** Following lines that are indented more deeply than a column, or its list. */
function linesBelow(text: string, from: number, column: number, mayBeList: boolean): TextRange | undefined {
  let end: number | undefined
  let isContinued = text.charAt(from - 1) === '\\'
  for (let at = from + 1; at < text.length;) {
    const lineEnd = endOfLine(text, at)
    const content = text.slice(at, lineEnd)
    const indent = content.search(/[^ \t\r]/)
    const isItem = mayBeList && indent === column && content.startsWith('- ', indent)
    if (indent !== -1 && indent <= column && !isItem && !isContinued) break
    if (indent !== -1) end = lineEnd
    isContinued = content.endsWith('\\')
    at = lineEnd + 1
  }
  return end === undefined ? undefined : trimRange(text, { start: from, end })
}

/** Next line that is not empty, unless it has a name of its own. */
function nextLine(text: string, from: number): TextRange | undefined {
  const start = from + (/^\s{0,8}/.exec(text.slice(from, from + 8))?.[0].length ?? 0)
  const line = trimRange(text, { start, end: endOfLine(text, start) })
  return line && /^["']?[\w.-]{1,64}["']?\s?[:=]/.test(text.slice(line.start, line.end)) ? undefined : line
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from)
  return end === -1 ? text.length : end
}

/**
 * Finds the ends of lines, quotes and brackets. Remembers them, and quotes that are never closed, so that each is
 * searched once.
 */
class Reader {
  readonly #text: string
  readonly #last = new Map<string, number>()
  #line: TextRange = { start: 0, end: -1 }

  constructor(text: string) {
    this.#text = text
  }

  lineEnd(at: number): number {
    if (at < this.#line.start || at > this.#line.end)
      this.#line = { start: at, end: endOfLine(this.#text, at) }
    return this.#line.end
  }

  /** Content of the quotes that begin at a position. */
  after(at: number): TextRange | undefined {
    OPENING.lastIndex = at
    const [all = '', quote = ''] = OPENING.exec(this.#text) ?? []
    if (quote === '') return undefined
    const start = at + all.length
    const last = this.#last.get(quote) ?? this.#text.lastIndexOf(quote)
    this.#last.set(quote, last)
    let end = last < start ? -1 : this.#text.indexOf(quote, start)
    // A backslash before a plain quote keeps it open.
    while (end !== -1 && quote.length === 1 && isEscaped(this.#text, end, start))
      end = this.#text.indexOf(quote, end + 1)
    return end === -1 ? undefined : trimRange(this.#text, { start, end })
  }

  /** Content of the brackets that begin at a position, including them. Without an end, the rest of the text. */
  brackets(at: number): TextRange | undefined {
    BRACKET.lastIndex = at
    if (!BRACKET.test(this.#text)) return undefined
    const start = BRACKET.lastIndex - 1
    let depth = 0
    for (let i = start; i < this.#text.length; i++) {
      const char = this.#text.charAt(i)
      if (char === '{' || char === '[') depth++
      else if ((char === '}' || char === ']') && --depth === 0) return { start, end: i + 1 }
    }
    return { start, end: this.#text.length }
  }
}

function isEscaped(text: string, at: number, from: number): boolean {
  let start = at
  while (start > from && text.charAt(start - 1) === '\\') start--
  return (at - start) % 2 === 1
}
