/** Formatted JSON text. */
export interface Pretty {
  readonly text: string
  /** Position in `text` of each opening bracket, with that of the closing one. Empty pairs are left out. */
  readonly pairs: ReadonlyMap<number, number>
}

/** Depth below which text is not formatted: its indentation would be much longer than the text. */
const MAX_DEPTH = 1000

/**
 * Formats JSON with one value a line, indented by two spaces. It changes white space only: parsing would lose large
 * numbers, escapes, repeated names and the order of numeric names. Invalid JSON is formatted somehow.
 */
export function pretty(json: string): Pretty {
  const pairs = new Map<number, number>()
  const opened: number[] = []
  const breaks: string[] = []
  const breakLine = (): string => (breaks[opened.length] ??= `\n${'  '.repeat(opened.length)}`)
  let text = ''
  let isFirst = false
  for (let at = 0; at < json.length;) {
    const char = json.charAt(at)
    const end = endOf(json, at, char)
    if (char === ',') text += `,${breakLine()}`
    else if (char === ':') text += ': '
    else if (char === ']' || char === '}') {
      const start = opened.pop()
      if (!isFirst) text += breakLine()
      if (!isFirst && start !== undefined) pairs.set(start, text.length)
      text += char
      isFirst = false
    } else if (!isSpace(char)) {
      const isOpening = char === '[' || char === '{'
      if (isFirst) text += breakLine()
      if (isOpening && opened.push(text.length) > MAX_DEPTH) return { text: json, pairs: new Map() }
      text += json.slice(at, end)
      isFirst = isOpening
    }
    at = end
  }
  return { text, pairs }
}

/** Removes the white space between the values of JSON text, and changes nothing else. */
export function compact(json: string): string {
  let text = ''
  for (let at = 0; at < json.length;) {
    const char = json.charAt(at)
    const end = endOf(json, at, char)
    if (!isSpace(char)) text += json.slice(at, end)
    at = end
  }
  return text
}

function isSpace(char: string): boolean {
  return char === ' ' || char === '\n' || char === '\r' || char === '\t'
}

const DELIMITER = /[\s{}[\]:,"]/g

/** Returns the index after the token that begins at `start`. */
function endOf(text: string, start: number, char: string): number {
  if (char === '"') return endOfString(text, start)
  if (isSpace(char) || ',:[]{}'.includes(char)) return start + 1
  DELIMITER.lastIndex = start + 1
  return DELIMITER.exec(text)?.index ?? text.length
}

/**
 * Returns the index after the closing quote of the string that begins at `start`. A regular expression overflows the
 * stack on 25 MB.
 */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0
    while (text.charAt(quote - 1 - slashes) === '\\') slashes++
    if (slashes % 2 === 0) return quote + 1
  }
  return text.length
}

/** Returns the JSON path at a position of formatted text: `issue.labels[0].name`. Empty for the whole value. */
export function pathAt({ text, pairs }: Pretty, place: number): string {
  let path = ''
  let [open, index] = [0, 0]
  let start = text.indexOf('\n') + 1
  while (start <= place && place < (pairs.get(open) ?? 0)) {
    // A member or an element: its first line, and the end of its last one.
    const last = text.indexOf('\n', start) - 1
    const close = pairs.get(last)
    const end = text.indexOf('\n', close ?? last)
    if (place > end) [index, start] = [index + 1, end + 1]
    else {
      path += text.charAt(open) === '[' ? `[${index}]` : nameAt(text, start)
      if (close === undefined) break
      ;[open, index, start] = [last, 0, last + 2]
    }
  }
  return path.replace(/^\./, '')
}

/** Formats the name in a line as a step of a path: `.name` or `["a name"]`. */
function nameAt(text: string, lineStart: number): string {
  const start = text.indexOf('"', lineStart)
  const quoted = text.slice(start, endOfString(text, start))
  const name = quoted.slice(1, -1)
  return /^[A-Za-z_$][\w$-]*$/.test(name) ? `.${name}` : `[${quoted}]`
}
