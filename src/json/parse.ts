import { isUtf8 } from 'node:buffer'
import { endOfString, type JsonPath, MAX_DEPTH } from './text.js'

const [QUOTE, BRACKET, END_BRACKET, BRACE, END_BRACE] = [0x22, 0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Parses bytes or text as strict JSON: UTF-8 without a byte order mark, one value of any type with nothing after it,
 * and at most {@link MAX_DEPTH} nested and {@link MAX_CONTAINERS} arrays and objects. All text from outside is parsed
 * here.
 * @throws SyntaxError for anything else. The message quotes none of the text.
 * @see RFC 8259 sections 2 and 8.1
 */
export function parseJson(json: Uint8Array | string): unknown {
  if (typeof json !== 'string' && !isUtf8(json)) throw new SyntaxError('not UTF-8')
  const text =
    typeof json === 'string' ? json : Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString()
  const excess = excessOf(text)
  if (excess !== undefined) throw new SyntaxError(excess)
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the text.
    throw new SyntaxError('not JSON')
  }
}

/** Error message of {@link parseJson} for text that is nested too deep. */
export const TOO_DEEP = 'nested too deep'

/**
 * Most arrays and objects: the number that fits into 1 MiB, the default limit of a body. For more, V8's time grows
 * faster than their number.
 */
const MAX_CONTAINERS = 349_525

/**
 * Explains why text is too expensive to parse: more than {@link MAX_DEPTH} nested arrays and objects, or more than
 * {@link MAX_CONTAINERS} in all. Returns undefined if it is not. Checked before parsing, because V8 accepts any depth
 * and number: it takes ten times as long for 1 MB of brackets as for other text, and seconds and a gigabyte for 25 MB.
 */
export function excessOf(text: string): string | undefined {
  let [depth, containers] = [0, 0]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at) - 1
    else if (code === BRACKET || code === BRACE) {
      if (++depth > MAX_DEPTH) return TOO_DEEP
      if (++containers > MAX_CONTAINERS) return 'more than 349,525 arrays and objects'
    } else if (code === END_BRACKET || code === END_BRACE) depth--
  }
  return undefined
}

/** True for a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the members of a value from outside; none if it is no object. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {}
}

/** Returns the member at a path of names joined by dots. Undefined means missing, since JSON has no undefined. */
export function memberOf(payload: unknown, path: string): unknown {
  return path.split('.').reduce(ownMember, payload)
}

/** Returns an object's own member. A payload may be any JSON value, and have a member called `__proto__`. */
export function ownMember(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined
}

/** True for a name of the payload itself, `$` or `payload`, unless the payload has such a member. */
export function isRootName(payload: unknown, name: string | number | undefined): boolean {
  return (name === '$' || name === 'payload') && ownMember(payload, name) === undefined
}

/** Removes the name of the payload itself from a path, `$.` or `payload.`, unless the payload has such a member. */
export function withoutRoot(payload: unknown, path: JsonPath): JsonPath {
  const [first, ...rest] = path
  return rest.length > 0 && isRootName(payload, first) ? rest : path
}
