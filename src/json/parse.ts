import { isUtf8 } from 'node:buffer'
import { endOfString, MAX_DEPTH } from './text.js'

/**
 * Parses bytes as JSON, strictly: UTF-8 without a byte order mark, one value of any type with nothing after it, and at most
 * {@link MAX_DEPTH} nested arrays and objects.
 * @throws SyntaxError for anything else. The message quotes none of the text.
 * @see RFC 8259 sections 2 and 8.1
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8')
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's own message quotes the text.
    throw new SyntaxError('not JSON')
  }
  if (depthOf(text) > MAX_DEPTH) throw new SyntaxError('nested too deep')
  return value
}

/** How deep arrays and objects are nested in well-formed JSON; V8's parser accepts any depth. */
export function depthOf(text: string): number {
  let [depth, deepest] = [0, 0]
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '"') at = endOfString(text, at) - 1
    else if (char === '{' || char === '[') deepest = Math.max(deepest, ++depth)
    else if (char === '}' || char === ']') depth--
  }
  return deepest
}

/** Whether a parsed value is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
