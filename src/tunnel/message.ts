import { RelayError } from '../base/errors.js'
import type { Header } from '../journal/delivery.js'
import { members } from '../webhook/members.js'
import type { Remains } from '../webhook/restore.js'
import { sentHeaders } from './headers.js'

/** A request, as far as a tunnel's message still tells of it. Where it was sent to is not among that. */
export interface Message {
  readonly headers: readonly Header[]
  readonly remains: Remains
}

/** Members of a message that are no headers: the request's body, and what the server adds. */
const NOT_HEADERS = new Set(['body', 'bodyB', 'query', 'timestamp'])
/** Characters of names and values: what Node takes of them over HTTP. */
const MAX_HEADERS = 16_384

/**
 * Reads the text of a message: an object with a member for each header and the parsed `body`, or, as gosmee has it, the
 * bytes in `bodyB`. Undefined for what is no request, like a greeting.
 * @throws RelayError `invalid_event` for what is no JSON, or has headers beyond what HTTP takes.
 */
export function readMessage(text: string): Message | undefined {
  if (!text.startsWith('{')) return undefined
  const found = members(text)
  const json = found.get('body')
  const encoded: unknown = JSON.parse(found.get('bodyB') ?? 'null')
  if (json === undefined && typeof encoded !== 'string') return undefined
  const headers = sentHeaders([...found].flatMap(([name, value]) => headerLines(name, value)))
  if (headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0) > MAX_HEADERS)
    throw new RelayError('invalid_event', 'Invalid event')
  const raw = typeof encoded === 'string' ? Buffer.from(encoded, 'base64') : undefined
  return { headers, remains: { json, raw } }
}

function headerLines(name: string, json: string): Header[] {
  if (NOT_HEADERS.has(name) || !/^["[]/.test(json)) return []
  const values = [JSON.parse(json) as unknown].flat()
  return values.flatMap((value): Header[] => (typeof value === 'string' ? [[name, value]] : []))
}
