/** The generations of Gitea whose JSON differs. */
export type Generation = '1.15' | 'newest'

/** RepositoryPayload and WikiPayload; all other payloads are indented by two spaces (modules/structs/hook.go). */
const ONE_SPACE_EVENTS: ReadonlySet<string> = new Set(['repository', 'wiki'])

/** json-iterator knows no short escapes of these. */
const LONG_ESCAPES = new Map([
  [String.raw`\b`, String.raw`\u0008`],
  [String.raw`\f`, String.raw`\u000c`],
])

/**
 * An event's JSON as Gitea writes it, without relay's own code, which these texts test.
 *
 * - 1.15: `MarshalIndent` of json-iterator 1.1, which escapes HTML, and copies what `User.MarshalJSON` returns: compact text
 *   (modules/structs/user.go, v1.15.11).
 * - newest: `Marshal` of encoding/json/v2, which escapes no HTML, and then `Indent` of the whole text (modules/json/json.go and
 *   jsonv2.go, main). Versions in between and Forgejo indent like it, and escape like 1.15.
 */
export function goJson(event: string, payload: unknown, generation: Generation): string {
  const indent = ONE_SPACE_EVENTS.has(event) ? ' ' : '  '
  const text = write(payload, indent, '\n', generation === '1.15')
  if (generation === 'newest') return text
  // Each escape as a whole: `\\\\b` is an escaped backslash and no `\\b`.
  const long = text.replace(/\\./g, (escape) => LONG_ESCAPES.get(escape) ?? escape)
  return long.replace(/[<>&\u2028\u2029]/g, escaped)
}

/** `newLine` is a line break and the indentation of the value's parent. */
function write(value: unknown, indent: string, newLine: string, compactUsers: boolean): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const isList = Array.isArray(value)
  const isUser = 'login' in value && 'username' in value
  if (Object.keys(value).length === 0 || (isUser && compactUsers)) return JSON.stringify(value)
  const inner = newLine + indent
  const items = Object.entries(value).map(
    ([name, item]) =>
      `${inner}${isList ? '' : `${JSON.stringify(name)}: `}${write(item, indent, inner, compactUsers)}`,
  )
  return `${isList ? '[' : '{'}${items.join(',')}${newLine}${isList ? ']' : '}'}`
}

function escaped(char: string): string {
  return String.raw`\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}
