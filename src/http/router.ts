import { type Context, Hono } from 'hono'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { discardBody } from './discard.js'
import type { HttpEnv } from './env.js'
import { errorResponse } from './respond.js'

/** What every application at the edge needs to know. */
export interface RouterParts {
  readonly hostAllowed: (host: string | undefined) => boolean
  readonly log: Log
}

/**
 * An application without routes yet that keeps the edge's promises for those it is given: the Host check comes before
 * everything, every failure is `{"error": …}`, an unknown path 404, a known one with another method 405 with
 * `Allow`, and a refused request's body is read before the answer is sent.
 */
export function createRouter({ hostAllowed, log }: RouterParts): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>()
  const answer = async (error: unknown, c: Context<HttpEnv>, headers = {}): Promise<Response> => {
    if (c.env?.incoming) await discardBody(c.env)
    return errorResponse(error, log, headers, `${c.req.method} ${c.req.path}`)
  }
  app.onError((error, c) => answer(error, c))
  app.notFound((c) => {
    const allow = allowedMethods(app, c.req.path)
    if (allow.length === 0) return answer(new RelayError('not_found', 'Not found'), c)
    const refused = new RelayError('method_not_allowed', 'Method not allowed')
    return answer(refused, c, { Allow: allow.join(', ') })
  })
  // Not async and nothing after next(): this runs for every request.
  app.use((c, next) => {
    // In-process there is no Host header, only the address that was called.
    const host = c.env?.incoming ? c.req.header('host') : new URL(c.req.url).host
    // RFC 9112 section 3.2: more than one Host, which arrive joined by a comma, is a broken request.
    if (host === undefined || host.includes(',')) throw new RelayError('bad_request', 'Bad request')
    if (!hostAllowed(host)) throw new RelayError('forbidden', 'Forbidden host')
    return next()
  })
  return app
}

/** The methods that the routing table has for a path; GET brings HEAD. */
function allowedMethods(app: Hono<HttpEnv>, path: string): string[] {
  const methods = new Set(app.routes.map(({ method }) => method))
  const allowed = [...methods].filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method && method !== 'ALL'),
  )
  return allowed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
}
