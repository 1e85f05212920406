import { type ErrorKind, type RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'

/**
 * The answer to a failure: `{"error": "<message>"}` and nothing else, with the status of its kind, `Retry-After`
 * where it knows when to come back, `WWW-Authenticate` where a bearer token is wanted (RFC 6750 section 3).
 * What was not expected answers 500 `Internal error`; its cause goes to the log alone.
 */
export function errorResponse(thrown: unknown, log: Log, headers: Record<string, string> = {}): Response {
  const error = toRelayError(thrown)
  report(error, log)
  return Response.json(errorBody(error), {
    status: error.status,
    headers: { ...headersOf(error), ...headers },
  })
}

/** The body of every error. */
export function errorBody(error: RelayError): { error: string } {
  return { error: error.message }
}

function headersOf({ kind, retryAfter }: RelayError): Record<string, string> {
  return {
    ...(retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }),
    ...(kind === 'unauthenticated' ? { 'WWW-Authenticate': 'Bearer realm="relay"' } : {}),
  }
}

/** The client went away: nobody failed, and nobody reads the answer. */
const SILENT: ReadonlySet<ErrorKind> = new Set(['cancelled'])

function report(error: RelayError, log: Log): void {
  if (error.status < 500 || SILENT.has(error.kind)) return
  if (error.kind === 'internal') log.error(error.message, error.cause)
  else log.warn(error.message)
}
