import { tokens } from '../../../json/tokens.js'

/** JSON with one value a line. Only white space changes: numbers and escapes stay as written, which JSON.parse would alter. */
export function layOutJson(json: string): string {
  const parts: string[] = []
  let previous = ''
  for (const { start, end, depth } of tokens(json)) {
    const token = json.slice(start, end)
    const isEnd = token === '}' || token === ']'
    const isFirst = previous === '{' || previous === '['
    if (previous === ',' || (isFirst && !isEnd) || (isEnd && !isFirst)) parts.push('\n', '  '.repeat(depth))
    parts.push(token === ':' ? ': ' : token)
    previous = token
  }
  return parts.join('')
}
