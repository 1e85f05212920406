import type { MiddlewareHandler } from 'hono'
import { RelayError } from '../base/errors.js'
import type { HttpEnv } from './env.js'

/**
 * Refuses requests for other names than `hostAllowed` accepts, where a proxy in front has put its own name in their place.
 * @throws RelayError `forbidden`
 */
export function requireForwardedHost(hostAllowed: (host: string) => boolean): MiddlewareHandler<HttpEnv> {
  return (c, next) => {
    const asked = c.req.header('x-forwarded-host')
    if (asked !== undefined && !hostAllowed(asked)) throw new RelayError('forbidden', 'Forbidden host')
    return next()
  }
}
