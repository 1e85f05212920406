import { isUtf8 } from 'node:buffer'
import { endOfString, MAX_DEPTH } from './tokens.js'

/**
 * Parses bytes as JSON, strictly: UTF-8 without a byte order mark, one value of any type with nothing after it, and at most 1,000
 * nested arrays and objects.
 * @throws SyntaxError for anything else. The message quotes none of the text.
 * @see RFC 8259 sections 2 and 8.1
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8')
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  const value = parse(text)
  if (!isShallow(text)) throw new SyntaxError('nested too deep')
  return value
}

/** Whether {@link parseJson} accepts the text. */
export function isJson(text: string): boolean {
  try {
    parse(text)
    return isShallow(text)
  } catch {
    return false
  }
}

/** Whether a parsed value is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Checks the depth of well-formed JSON; V8's parser accepts any. */
function isShallow(text: string): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '"') at = endOfString(text, at) - 1
    else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') depth--
    if (depth > MAX_DEPTH) return false
  }
  return true
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the text.
    throw new SyntaxError('not JSON')
  }
}
