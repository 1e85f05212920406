/** JSON text laid out to be read. */
export interface Pretty {
  readonly text: string
  /** The place in `text` of each bracket that opens something, and of the one that closes it. Empty ones are left out. */
  readonly pairs: ReadonlyMap<number, number>
}

/** Deeper text stays as it is: its indentation would be much longer than the text. */
const MAX_DEPTH = 1000

/** Strings that are joined at once: one list of them all takes several times the memory of the text. */
const BATCH = 20_000

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * One value a line, indented by two spaces. Changes white space only: parsing would lose large numbers, escapes, repeated names and
 * the order of numeric names. Text that is no JSON is laid out somehow.
 */
export function pretty(json: string): Pretty {
  const pairs = new Map<number, number>()
  const opened: number[] = []
  const text = new Joined()
  const breaks: string[] = []
  const breakLine = (): string => (breaks[opened.length] ??= `\n${'  '.repeat(opened.length)}`)
  let isFirst = false
  for (let at = 0; at < json.length;) {
    const code = json.charCodeAt(at)
    if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) at++
    else if (code === COMMA) {
      text.add(`,${breakLine()}`)
      at++
    } else if (code === COLON) {
      text.add(': ')
      at++
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      const start = opened.pop()
      if (!isFirst) {
        text.add(breakLine())
        if (start !== undefined) pairs.set(start, text.length)
      }
      text.add(json.charAt(at++))
      isFirst = false
    } else {
      if (isFirst) text.add(breakLine())
      isFirst = code === OPEN_LIST || code === OPEN_OBJECT
      if (isFirst && opened.push(text.length) > MAX_DEPTH) return { text: json, pairs: new Map() }
      const end = isFirst ? at + 1 : code === QUOTE ? endOfString(json, at) : endOfScalar(json, at)
      text.add(json.slice(at, end))
      at = end
    }
  }
  return { text: text.toString(), pairs }
}

/** A long text that is made of short ones. */
class Joined {
  length = 0
  readonly #chunks: string[] = []
  #parts: string[] = []

  add(part: string): void {
    this.length += part.length
    if (this.#parts.push(part) < BATCH) return
    this.#chunks.push(this.#parts.join(''))
    this.#parts = []
  }

  toString(): string {
    return [...this.#chunks, ...this.#parts].join('')
  }
}

/** Past the closing quote of the string that begins at `start`. A regular expression overflows the stack on 25 MB. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0
    while (text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote + 1
  }
  return text.length
}

const DELIMITER = /[\s{}[\]:,"]/g

function endOfScalar(text: string, start: number): number {
  DELIMITER.lastIndex = start + 1
  return DELIMITER.exec(text)?.index ?? text.length
}

/** Where in the JSON a place of the laid out text is: `issue.labels[0].name`. Empty for the whole value. */
export function pathAt({ text, pairs }: Pretty, place: number): string {
  let path = ''
  let open: number | undefined = 0
  while (open !== undefined) {
    const child = childAt(text, pairs, open, place)
    if (!child) break
    path += text.charAt(open) === '[' ? `[${child.index}]` : step(nameAt(text, child.start))
    open = child.open
  }
  return path.replace(/^\./, '')
}

/** The member or element of what opens at `open` that has `place` in its lines: where it begins, and where it opens in turn. */
function childAt(text: string, pairs: Pretty['pairs'], open: number, place: number) {
  const close = pairs.get(open)
  if (close === undefined || place <= open || place >= close) return undefined
  let index = 0
  for (let start = text.indexOf('\n', open) + 1; start < close; index++) {
    const last = text.indexOf('\n', start) - 1
    const inner = pairs.get(last)
    const end = inner === undefined ? last + 1 : text.indexOf('\n', inner)
    if (place < start) return undefined
    if (place <= end) return { index, start, open: inner === undefined ? undefined : last }
    start = end + 1
  }
  return undefined
}

/** The name, with its quotes, in a line of the text. */
function nameAt(text: string, lineStart: number): string {
  const start = text.indexOf('"', lineStart)
  return text.slice(start, endOfString(text, start))
}

function step(quoted: string): string {
  const name = quoted.slice(1, -1)
  return /^[A-Za-z_$][\w$-]*$/.test(name) ? `.${name}` : `[${quoted}]`
}
