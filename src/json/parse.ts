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
  if (isTooDeep(value)) throw new SyntaxError('nested too deep')
  return value
}

/**
 * Whether a parsed value has more than {@link MAX_DEPTH} nested arrays and objects: V8's parser accepts any depth. The value is gone
 * through, since to go through the text takes as long as parsing it.
 */
export function isTooDeep(value: unknown): boolean {
  return isDeeper(value, MAX_DEPTH)
}

function isDeeper(value: unknown, levels: number): boolean {
  const isArray = Array.isArray(value)
  if (!isArray && !isObject(value)) return false
  if (levels === 0) return true
  if (isArray) return value.some((each) => isDeeper(each, levels - 1))
  // No copy of the members, as `Object.values` makes one.
  for (const name in value) if (isDeeper(value[name], levels - 1)) return true
  return false
}

/** Whether a parsed value is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The member at a path of names joined by dots; undefined if there is none; JSON has no other undefined. */
export function memberOf(payload: unknown, path: string): unknown {
  return path.split('.').reduce(ownMember, payload)
}

/** An object's own member: a payload may be any JSON value, and name one `__proto__`. */
export function ownMember(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.getOwnPropertyDescriptor(value, key)?.value
}
