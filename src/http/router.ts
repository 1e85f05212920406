import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { type ErrorKind, RelayError, toRelayError } from '../base/errors.js'
import { excerpt, type Log, createLogThrottle, type LogThrottle } from '../base/log.js'
import { discardBody, type HttpEnv } from './body.js'
import type { HostCheck } from './host-check.js'

/** Dependencies of every application that listens. */
export interface RouterParts {
  readonly hostAllowed: HostCheck
  readonly log: Log
  /** Writes a path for the log. Default: without the part behind a source's address, which may be a secret. */
  readonly shownPath?: (path: string) => string
  /** Called with a request that matches no route, and the status of its response. Returns a detail for the log. */
  readonly onUnrouted?: (c: Context<HttpEnv>, status: number) => string | undefined
}

/**
 * Creates an application without routes. It checks the Host before any route, and responds `{"error": …}` to errors,
 * also for 404 and 405.
 */
export function createRouter({
  hostAllowed,
  log,
  onUnrouted,
  shownPath = withoutRest,
}: RouterParts): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>()
  const answer = async (error: unknown, c: Context<HttpEnv>, headers = {}): Promise<Response> => {
    await discardBody(c.env)
    return errorResponse(error, log, headers, `${c.req.method} ${shownPath(c.req.path)}`)
  }
  app.onError((error, c) => answer(error, c))
  app.notFound((c) => {
    const allow = allowedMethods(app, c.req.path)
    const isKnown = allow.length > 0
    const options = { detail: onUnrouted?.(c, isKnown ? 405 : 404) }
    if (!isKnown) return answer(new RelayError('not_found', 'Not found', options), c)
    const refused = new RelayError('method_not_allowed', 'Method not allowed', options)
    return answer(refused, c, { Allow: allow.join(', ') })
  })
  // Neither async nor with code after next(), since it runs for every request.
  app.use((c, next) => {
    // A request made in-process has no Host header, only an address.
    const host = c.env?.incoming ? c.req.header('host') : new URL(c.req.url).host
    // RFC 9112 section 3.2: several Host headers, joined here by a comma, are a bad request.
    if (host === undefined || host.includes(',')) throw new RelayError('bad_request', 'Bad request')
    if (!hostAllowed(host)) throw new RelayError('forbidden', 'Forbidden host')
    return next()
  })
  return app
}

function withoutRest(path: string): string {
  return path.replace(/^(\/webhook\/[^/]*\/).+$/s, '$1…')
}

/** Methods that the routing table has for a path. GET implies HEAD. */
function allowedMethods(app: Hono<HttpEnv>, path: string): string[] {
  const methods = new Set(app.routes.map(({ method }) => method))
  const allowed = [...methods].filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method && method !== 'ALL'),
  )
  return allowed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
}

/**
 * Refuses (`forbidden`) a request whose `X-Forwarded-Host`, set by a proxy in front, names a host that is not allowed.
 */
export function requireForwardedHost(hostAllowed: HostCheck): MiddlewareHandler<HttpEnv> {
  return (c, next) => {
    const asked = c.req.header('x-forwarded-host')
    if (asked !== undefined && !hostAllowed(asked)) throw new RelayError('forbidden', 'Forbidden host')
    return next()
  }
}

/**
 * Responds to a failed request with `{"error": "<clientMessage>"}` and the status of the error's kind. Adds
 * `Retry-After` if the error has one, and `WWW-Authenticate` if a bearer token is required (RFC 6750 section 3). An
 * unexpected error is 500 `Internal error`; its cause goes only to the log. The log line names the `request`.
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

/** Body of every error response. */
export function errorBody(error: RelayError): { error: string } {
  return { error: error.clientMessage }
}

const CHALLENGE = 'Bearer realm="relay"'

function headersOf({ kind, retryAfter }: RelayError): Record<string, string> {
  return {
    ...(retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }),
    ...(kind === 'unauthenticated' ? { 'WWW-Authenticate': CHALLENGE } : {}),
    ...(kind === 'invalid_token' ? { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` } : {}),
  }
}

/**
 * Kinds that are logged at debug level: requests that browsers and scanners make by themselves, and refusals whose
 * reason is logged elsewhere.
 */
const MINOR: ReadonlySet<ErrorKind> = new Set(['not_found', 'method_not_allowed', 'invalid_signature'])

/** One throttle per log, even if several applications write to it. */
const throttles = new WeakMap<Log, LogThrottle>()

function report(error: RelayError, log: Log, request: string): void {
  const { kind, status, message, detail, cause } = error
  // A client that disconnects is no failure.
  if (kind === 'cancelled') return
  const isError = kind === 'internal' || kind === 'storage'
  // A `detail` asks the user to act.
  const isWarning = status >= 500 || detail !== undefined
  const level = isError ? 'error' : isWarning ? 'warn' : MINOR.has(kind) ? 'debug' : 'info'
  const answered = `answered ${status}: ${message}`
  const asked = `${excerpt(request)} was ${answered}`
  const why = detail === undefined ? '' : `: ${detail}`
  const line = asked + (kind === 'storage' && cause instanceof RelayError ? ` (${cause.message})` : why)
  const throttle = throttles.get(log) ?? createLogThrottle(log)
  throttles.set(log, throttle)
  const write = (): void => (level === 'error' ? log.error(line, cause) : log[level](line))
  // Unexpected errors of two requests can have two causes, so each request is logged.
  throttle(kind === 'internal' ? asked : answered, write, level)
}
