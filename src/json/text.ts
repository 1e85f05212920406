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

/** Steps to a value: names of an object's members, and places of a list. */
export type JsonPath = readonly (string | number)[]

/**
 * Replaces the value at a path of names and leaves every other byte unchanged. Returns undefined if the path leads to
 * no text, number or literal. Of repeated names the last counts, as in JSON.parse.
 */
export function replaceScalar(
  text: string,
  path: readonly string[],
  value: string | number,
): string | undefined {
  const [found] = rangesOf(text, [path])
  return found?.isScalar
    ? text.slice(0, found.start) + JSON.stringify(value) + text.slice(found.end)
    : undefined
}

/** Returns the JSON of the value at a path, as written. Of repeated names the last counts, as in JSON.parse. */
export function valueText(text: string, path: JsonPath): string | undefined {
  const [range] = rangesOf(text, [path])
  return range && text.slice(range.start, range.end)
}

/**
 * Replaces the values at these paths by JSON, and leaves every other byte unchanged but the indentation of what is
 * inserted. Returns undefined if one of them leads to nothing. Of repeated names the last counts, as in JSON.parse. No
 * path may lead through another.
 */
export function replaceValues(
  text: string,
  changes: readonly (readonly [path: JsonPath, json: string])[],
): string | undefined {
  const ranges = rangesOf(
    text,
    changes.map(([path]) => path),
  )
  const parts: string[] = []
  let done = 0
  const inOrder = [...ranges.entries()].toSorted(
    ([, one], [, other]) => (one?.start ?? 0) - (other?.start ?? 0),
  )
  for (const [at, range] of inOrder) {
    if (!range) return undefined
    parts.push(text.slice(done, range.start), indented(changes[at]?.[1] ?? '', lineIndent(text, range.start)))
    done = range.end
  }
  return parts.join('') + text.slice(done)
}

/**
 * Adds a member to the end of the object or list at a path, laid out as the one before it, and leaves every other byte
 * unchanged. Returns undefined if the path leads to neither.
 * @param step name of the member, or its place in the list
 * @param unit indentation of one level; empty for JSON in one line
 */
export function addMember(
  text: string,
  path: JsonPath,
  [step, json]: readonly [step: string | number, json: string],
  unit: string,
): string | undefined {
  const [range] = rangesOf(text, [path])
  if (!range || range.isScalar) return undefined
  const own = text.slice(range.start, range.end)
  const { before, colon, end } = lastMember(own)
  const outside = lineIndent(text, range.start)
  const isFirst = end === undefined
  const margin = isFirst && unit !== '' ? `\n${outside}${unit}` : (before ?? '')
  const name = own.startsWith('[') ? '' : JSON.stringify(step) + (colon ?? (unit === '' ? ':' : ': '))
  const added = margin + name + indented(json, margin.slice(margin.lastIndexOf('\n') + 1))
  const changed = isFirst
    ? `${own.charAt(0)}${added}${unit === '' ? '' : `\n${outside}`}${own.slice(-1)}`
    : `${own.slice(0, end)},${added}${own.slice(end)}`
  return text.slice(0, range.start) + changed + text.slice(range.end)
}

/** The last member of an object or a list: the white space before it, what is around its colon, and where it ends. */
function lastMember(container: string): {
  readonly before?: string
  readonly colon?: string
  readonly end?: number
} {
  /** Ends of the last token, of the mark before the member, and of its name. */
  let [last, mark, name]: [number, number, number | undefined] = [1, 1, undefined]
  let [before, colon]: (string | undefined)[] = []
  for (const { start, end, depth } of jsonTokens(container, Infinity)) {
    const token = container.charAt(start)
    if (depth === 0) continue
    if (depth === 1 && token === ',') {
      ;[mark, before, name] = [end, undefined, undefined]
      continue
    }
    before ??= container.slice(mark, start)
    if (depth === 1 && token === ':') name = last
    else if (name !== undefined) {
      colon = container.slice(name, start)
      name = undefined
    }
    last = end
  }
  return before === undefined ? {} : { before, ...(colon !== undefined && { colon }), end: last }
}

/** White space at the start of the line that a place is in. */
function lineIndent(text: string, at: number): string {
  const line = text.slice(text.lastIndexOf('\n', at) + 1, at)
  return /^[ \t]*/.exec(line)?.[0] ?? ''
}

/** Writes JSON of several lines into a line with this indentation. */
function indented(json: string, indent: string): string {
  return indent === '' ? json : json.replaceAll('\n', `\n${indent}`)
}

interface Range {
  readonly start: number
  readonly end: number
  readonly isScalar: boolean
}

/** A value on the way to those that are looked for. */
interface Node {
  readonly children: Map<string, Node>
  range?: Range | undefined
}

/** Finds the values at paths, all at once. */
function rangesOf(text: string, paths: readonly JsonPath[]): readonly (Range | undefined)[] {
  const root: Node = { children: new Map() }
  const ends = paths.map((path) => path.reduce<Node>(childOf, root))
  /** The current value at each depth, if it is on such a way; its place in a list; and where it began. */
  const nodes: (Node | undefined)[] = [root]
  const places: (number | undefined)[] = []
  const starts: number[] = []
  let before = ''
  for (const { start, end, depth } of jsonTokens(text)) {
    const raw = text.slice(start, end)
    const node = nodes[depth]
    const around = nodes[depth - 1]
    if (raw === ':') nodes[depth] = around?.children.get(stringOf(before) ?? '')
    else if (raw === ',') {
      const place = places[depth]
      const next = place === undefined ? undefined : place + 1
      places[depth] = next
      nodes[depth] = next === undefined ? undefined : around?.children.get(String(next))
    } else if (raw === '}' || raw === ']') {
      if (node) node.range = { start: starts[depth] ?? 0, end, isScalar: false }
    } else if (raw === '{' || raw === '[') {
      // If a name is repeated, the earlier value does not count.
      if (node) forget(node)
      starts[depth] = start
      places[depth + 1] = raw === '[' ? 0 : undefined
      nodes[depth + 1] = raw === '[' ? node?.children.get('0') : undefined
    } else if (node) {
      forget(node)
      node.range = { start, end, isScalar: true }
    }
    before = raw
  }
  return ends.map(({ range }) => range)
}

function childOf(node: Node, step: string | number): Node {
  const known = node.children.get(String(step))
  if (known) return known
  const child: Node = { children: new Map() }
  node.children.set(String(step), child)
  return child
}

function forget(node: Node): void {
  node.range = undefined
  for (const child of node.children.values()) forget(child)
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
