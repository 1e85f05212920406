import { type Context, Hono } from 'hono'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { discardBody } from './discard.js'
import type { HttpEnv } from './env.js'
import { errorResponse } from './respond.js'

/** Parts of every application that listens. */
export interface RouterParts {
  readonly hostAllowed: (host: string | undefined) => boolean
  readonly log: Log
  /** Called with a request that matches no route, and the status of its answer. Returns a detail for the log. */
  readonly onUnrouted?: (c: Context<HttpEnv>, status: number) => string | undefined
}

/**
 * An application without routes. For the routes added to it, the Host check comes first, every error is `{"error": …}`, an
 * unknown path is 404, another method on a known path is 405 with `Allow`, and the body of a refused request is read
 * before the answer is sent.
 */
export function createRouter({ hostAllowed, log, onUnrouted }: RouterParts): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>()
  const answer = async (error: unknown, c: Context<HttpEnv>, headers = {}): Promise<Response> => {
    if (c.env?.incoming) await discardBody(c.env)
    return errorResponse(error, log, headers, `${c.req.method} ${c.req.path}`)
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
  // Not async, and nothing after next(): it runs for every request.
  app.use((c, next) => {
    // A request made in-process has no Host header, only its address.
    const host = c.env?.incoming ? c.req.header('host') : new URL(c.req.url).host
    // RFC 9112 section 3.2: several Host headers, joined by a comma here, are a bad request.
    if (host === undefined || host.includes(',')) throw new RelayError('bad_request', 'Bad request')
    if (!hostAllowed(host)) throw new RelayError('forbidden', 'Forbidden host')
    return next()
  })
  return app
}

/** The methods that the routing table has for a path; GET implies HEAD. */
function allowedMethods(app: Hono<HttpEnv>, path: string): string[] {
  const methods = new Set(app.routes.map(({ method }) => method))
  const allowed = [...methods].filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method && method !== 'ALL'),
  )
  return allowed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
}
