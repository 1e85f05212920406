import { endOfString, MAX_DEPTH } from './text.js'

/**
 * The top-level fields of a JSON object by name. Each value is the text as written, without surrounding white space, and is not
 * checked. If a name is repeated, the last one counts, as in JSON.parse. Reads the text in one pass and creates no values,
 * since it may be tens of megabytes from a stranger.
 * @throws SyntaxError if the text is not an object; RangeError for more than `limit` fields, or for a value of more than
 * 1,000 nested arrays and objects.
 */
export function topLevelFields(text: string, limit: number): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  let count = 0
  let depth = 0
  let start = 0
  let name: string | undefined
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '"') at = endOfString(text, at) - 1
    else if (char === '{' || char === '[') {
      if (++depth === 1) start = at + 1
      // The object itself is not part of its values.
      if (depth > MAX_DEPTH + 1) throw new RangeError(`JSON is nested more than ${MAX_DEPTH} deep`)
    } else if (char === '}' || char === ']') depth--
    if (depth === 1 && char === ':') {
      name = String(JSON.parse(text.slice(start, at)))
      start = at + 1
    }
    if (name === undefined || !(depth === 1 ? char === ',' : depth === 0)) continue
    fields.set(name, text.slice(start, at).trim())
    if (++count > limit) throw new RangeError(`A JSON object has more than ${limit} fields`)
    name = undefined
    start = at + 1
  }
  if (depth !== 0 || !/^\s*\{/.test(text) || !text.trimEnd().endsWith('}'))
    throw new SyntaxError('not an object')
  return fields
}
