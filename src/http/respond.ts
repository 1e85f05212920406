import { type ErrorKind, RelayError, toRelayError } from '../base/errors.js'
import { excerpt, type Log } from '../base/log.js'
import { createLogThrottle, type LogThrottle } from '../base/log-throttle.js'

/**
 * The answer to a failed request: `{"error": "<message>"}` with the status of the error's kind, `Retry-After` where the error
 * has one, `WWW-Authenticate` where a bearer token is required (RFC 6750 section 3). An unexpected error is 500 `Internal
 * error`; its cause goes only to the log. The log line names the `request`.
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

/** Not logged: a client that disconnects is not a failure. */
const SILENT: ReadonlySet<ErrorKind> = new Set(['cancelled'])

/** Logged at debug level: requests that browsers and scanners make by themselves, and refusals whose reason is logged elsewhere. */
const MINOR: ReadonlySet<ErrorKind> = new Set(['not_found', 'method_not_allowed', 'invalid_signature'])

function report(error: RelayError, log: Log, request: string): void {
  const { kind, status, message, cause } = error
  if (SILENT.has(kind)) return
  const level = levelOf(error)
  const answered = `answered ${status}: ${message}`
  const asked = `${excerpt(request)} was ${answered}`
  const write = (): void => {
    const line = `${asked}${detailOf(error)}`
    if (level === 'error') log.error(line, cause)
    else log[level](line)
  }
  // Unexpected errors of two requests can have two causes, so each request is logged.
  throttleOf(log)(kind === 'internal' ? asked : answered, write, level)
}

/** A `detail` asks the user to act, so it is at least a warning. */
function levelOf({ kind, status, detail }: RelayError): keyof Log {
  if (kind === 'internal' || kind === 'storage') return 'error'
  if (status >= 500 || detail !== undefined) return 'warn'
  return MINOR.has(kind) ? 'debug' : 'info'
}

function detailOf({ kind, detail, cause }: RelayError): string {
  if (kind === 'storage' && cause instanceof RelayError) return ` (${cause.message})`
  return detail === undefined ? '' : `: ${detail}`
}

/** One throttle for each log, even where several applications write to it. */
const throttles = new WeakMap<Log, LogThrottle>()

function throttleOf(log: Log): LogThrottle {
  const throttle = throttles.get(log) ?? createLogThrottle(log)
  throttles.set(log, throttle)
  return throttle
}
