const STEP = '  '

/**
 * The lines of a JSON text, indented. Numbers and strings stay as they were written: `JSON.parse` would round
 * 12345678901234567890, and decode what a sender had escaped.
 * @param text well-formed JSON
 */
export function prettyJson(text: string): string[] {
  const lines: string[] = []
  let line = ''
  let depth = 0
  const newLine = (change: number): void => {
    lines.push(line)
    depth += change
    line = STEP.repeat(depth)
  }
  let opened = false
  for (const token of tokens(text)) {
    const closes = token === '}' || token === ']'
    if (closes ? !opened : opened) newLine(closes ? -1 : 1)
    line += token === ':' ? ': ' : token
    opened = token === '{' || token === '['
    if (token === ',') newLine(0)
  }
  return [...lines, line]
}

const SPACE = /[ \t\r\n]+/y
/** Not strings: a pattern for those takes a stack as deep as they are long. */
const WORD = /[{}[\]:,]|[^\s"{}[\]:,]+/y

function* tokens(text: string): Generator<string> {
  for (let at = 0; at < text.length;) {
    SPACE.lastIndex = WORD.lastIndex = at
    const [token] = SPACE.exec(text) ?? WORD.exec(text) ?? [text.slice(at, endOfString(text, at))]
    at += token.length
    if (token.trim() !== '') yield token
  }
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
  return text.length
}
