import { RelayError } from '../base/errors.js'
import { type Header, passedOn, spelledHeader } from '../http/headers.js'
import { topLevelFields } from '../json/fields.js'
import type { TunnelBody } from '../webhook/restore/restore.js'

/** A request as a tunnel's message describes it. Method, path and query are not read. */
export interface Message {
  readonly headers: readonly Header[]
  readonly body: TunnelBody
}

/** Far more fields than a request has: Node accepts 16 KiB of headers. */
const MAX_FIELDS = 10_000
/** Fields of a message that are not headers: the request's body, and fields that the server adds. */
const NOT_HEADERS = new Set(['body', 'bodyB', 'query', 'timestamp'])
/** Characters of header names and values: Node's limit over HTTP. */
const MAX_HEADERS = 16_384
/** Characters that a message may hold besides the body: its headers. JSON may write each character as six. */
export const MAX_AROUND_BODY = 131_072

/**
 * Reads the text of a message: an object with a field for each header and the parsed `body`. gosmee sends the exact bytes
 * instead, as base64 in `bodyB`. Undefined for a message that is not a request, like a greeting.
 * @throws RelayError `invalid_event` if the text is not JSON, or has more headers than HTTP accepts.
 */
export function readMessage(text: string): Message | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return toMessage(topLevelFields(text, MAX_FIELDS))
  } catch (error) {
    // The message of a SyntaxError may quote the text.
    const cause = error instanceof RangeError ? error : new Error('the message is not JSON', { cause: error })
    throw new RelayError('invalid_event', 'Invalid event', { cause })
  }
}

/** @throws SyntaxError for a field that is not JSON; RangeError for more headers than HTTP accepts. */
function toMessage(fields: ReadonlyMap<string, string>): Message | undefined {
  const json = fields.get('body')
  const encoded = fields.get('bodyB')
  const raw = encoded?.startsWith('"') ? Buffer.from(String(JSON.parse(encoded)), 'base64') : undefined
  if (json === undefined && !raw) return undefined
  const lines = [...fields].filter(([name, value]) => !NOT_HEADERS.has(name) && /^["[]/.test(value))
  if (lengthOf(lines) > MAX_AROUND_BODY) throw new RangeError('more headers than fit')
  const headers = sentHeaders(lines.flatMap(([name, value]) => headerLines(name, value)))
  if (lengthOf(headers) > MAX_HEADERS) throw new RangeError('more headers than HTTP accepts')
  return { headers, body: { json, raw } }
}

function lengthOf(lines: readonly Header[]): number {
  return lines.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
}

function headerLines(name: string, json: string): Header[] {
  const values = [JSON.parse(json) as unknown].flat()
  return values.flatMap((value): Header[] => (typeof value === 'string' ? [[name, value]] : []))
}

/**
 * Headers that proxies in front of a tunnel's server add: standard ones, and those of hosting providers (Cloudflare,
 * Azure, AWS, Heroku, Render, Fly).
 */
const PROXY_HEADERS =
  /^(?:forwarded|via|x-forwarded-.*|x-original-.*|x-real-ip|x-client-ip|x-cluster-client-ip|client-ip|true-client-ip|x-scheme|x-request-(?:id|start)|cf-.*|cdn-loop|x-arr-.*|x-azure-.*|x-appservice-.*|x-waws-.*|x-site-deployment-id|was-default-hostname|disguised-host|max-forwards|x-amz(?:n|-cf)-.*|x-envoy-.*|connect-time|total-route-time|rndr-id|render-proxy-ttl|fly-.*|traceparent|tracestate)$/
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
/** The values that Node accepts over HTTP: latin1 without control characters. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * The headers that the code host sent. Removes proxies' headers and those that HTTP could not carry, and restores the
 * names' case, which the server lost.
 */
function sentHeaders(lines: readonly Header[]): Header[] {
  const sent = lines.filter(
    ([name, value]) => NAME.test(name) && VALUE.test(value) && !PROXY_HEADERS.test(name),
  )
  return passedOn(sent).map(([name, value]) => [spelledHeader(name), value])
}
