import { RelayError } from '../base/errors.js'
import { endOfString, parseJson } from './json.js'

/** A request has fewer header lines than that: Node takes 16 KiB of them. */
const MAX_MEMBERS = 10_000

/**
 * The members of a JSON object, by name, each as its text without white space around it: numbers as they are spelled,
 * keys in their order. Of a repeated name the last counts, as for JSON.parse.
 * @throws RelayError `invalid_event` for what is not a JSON object (as `parseJson` reads JSON: at most 1,000 deep), or
 * has more than 10,000 members.
 */
export function members(json: string): ReadonlyMap<string, string> {
  const value = parseJson(Buffer.from(json))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid('not an object')
  const found = new Map<string, string>()
  for (const [name, text] of topLevel(json)) {
    found.set(name, text)
    if (found.size > MAX_MEMBERS) throw invalid('an object with too many members')
  }
  return found
}

/** Of a JSON object, of which it is known that it is one. */
function* topLevel(json: string): Generator<[name: string, text: string]> {
  let depth = 0
  let start = 0
  let name: string | undefined
  for (let at = 0; at < json.length; at++) {
    const char = json[at] ?? ''
    if (char === '"') at = endOfString(json, at)
    else if (char === '{' || char === '[') {
      if (++depth === 1) start = at + 1
    } else if (char === '}' || char === ']') depth--
    if (depth === 1 && char === ':') {
      name = String(JSON.parse(json.slice(start, at)))
      start = at + 1
    }
    if (name === undefined || !(depth === 1 ? char === ',' : depth === 0)) continue
    yield [name, json.slice(start, at).trim()]
    name = undefined
    start = at + 1
  }
}

function invalid(what: string): RelayError {
  return new RelayError('invalid_event', 'Invalid event', { cause: new Error(`the message is ${what}`) })
}
