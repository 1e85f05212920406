import type { ServerResponse } from 'node:http'
import { type ErrorKind, RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'

/**
 * The answer to a failure: `{"error": "<message>"}` and nothing else, with the status of its kind, `Retry-After`
 * where it knows when to come back, `WWW-Authenticate` where a bearer token is wanted (RFC 6750 section 3).
 * What was not expected answers 500 `Internal error`; its cause goes to the log alone. The log says which `request` was refused.
 */
export function errorResponse(
  thrown: unknown,
  log: Log,
  headers: Record<string, string> = {},
  request = 'a request',
): Response {
  const error = toRelayError(thrown)
  report(error, log, request)
  return Response.json(errorBody(error), {
    status: error.status,
    headers: { ...headersOf(error), ...headers },
  })
}

/** Answers 200 with JSON on Node's own response to the request of this `id`. */
export function sendJson(outgoing: ServerResponse, id: string, value: object): void {
  send(outgoing, id, 200, value)
}

/** {@link errorResponse} on Node's own response to the request of this `id`. */
export function sendError(
  outgoing: ServerResponse,
  id: string,
  thrown: unknown,
  log: Log,
  request: string,
): void {
  const error = toRelayError(thrown)
  report(error, log, request)
  send(outgoing, id, error.status, errorBody(error), headersOf(error))
}

/**
 * All headers at once: Node checks and keeps each one that is set before. With the length: Node sends the text in chunks
 * otherwise, which is more to write and to read.
 */
function send(outgoing: ServerResponse, id: string, status: number, value: object, more = {}): void {
  const json = JSON.stringify(value)
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(json),
    'X-Request-Id': id,
    ...more,
  }
  outgoing.writeHead(status, headers).end(json)
}

/** The body of every error. */
export function errorBody(error: RelayError): { error: string } {
  return { error: error.message }
}

const CHALLENGE = 'Bearer realm="relay"'

function headersOf({ kind, retryAfter }: RelayError): Record<string, string> {
  return {
    ...(retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }),
    ...(kind === 'unauthenticated' ? { 'WWW-Authenticate': CHALLENGE } : {}),
    ...(kind === 'invalid_token' ? { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` } : {}),
  }
}

/** The client went away: nobody failed, and nobody reads the answer. */
const SILENT: ReadonlySet<ErrorKind> = new Set(['cancelled'])

/** What a browser or a scanner asks for in passing, not what somebody waits for; and what is told with its reason. */
const ASIDE: ReadonlySet<ErrorKind> = new Set(['not_found', 'method_not_allowed', 'invalid_signature'])

function report(error: RelayError, log: Log, request: string): void {
  const { kind, status, message, cause } = error
  if (SILENT.has(kind)) return
  const line = `${request} was answered ${status}: ${message}`
  if (kind === 'internal') log.error(line, cause)
  else if (kind === 'storage')
    log.error(cause instanceof RelayError ? `${line} (${cause.message})` : line, cause)
  else if (status >= 500) log.warn(line)
  else if (ASIDE.has(kind)) log.debug(line)
  else log.info(line)
}
