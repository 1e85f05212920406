import { isUtf8 } from 'node:buffer'
import { MAX_DEPTH } from './text.js'

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
  if (depthOf(bytes) > MAX_DEPTH) throw new SyntaxError('nested too deep')
  return value
}

const [QUOTE, BRACKET, BACKSLASH, BRACE] = [0x22, 0x5b, 0x5c, 0x7b]

/** How deep arrays and objects are nested in well-formed JSON; V8's parser accepts any depth. */
function depthOf(json: Uint8Array): number {
  let [depth, deepest] = [0, 0]
  let isInString = false
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === QUOTE) isInString = !isInString
    else if (byte === BACKSLASH) at++
    else if (isInString) continue
    else if (byte === BRACE || byte === BRACKET) deepest = Math.max(deepest, ++depth)
    // The code of the closing one is two higher.
    else if (byte === BRACE + 2 || byte === BRACKET + 2) depth--
  }
  return deepest
}

/** Whether a parsed value is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
