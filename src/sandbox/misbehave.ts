import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context, MiddlewareHandler } from 'hono'
import { sleep } from '../base/abort.js'
import { discardBody } from '../http/discard.js'
import type { HttpEnv } from '../http/env.js'
import type { Faults, Operation } from './faults.js'

/** Lets a route meet the fault that is set for its operation or its repository. */
export function misbehave(faults: Faults, operation: Operation): MiddlewareHandler<HttpEnv> {
  return async function misbehave(c, next) {
    const { owner, repo } = c.req.param() as { owner?: string; repo?: string }
    const fault = faults.take(operation, owner && repo && `${owner}/${repo}`)
    switch (fault?.kind) {
      case undefined:
        return next()
      case 'answer':
        if (c.env?.incoming) await discardBody(c.env)
        for (const [name, value] of Object.entries(fault.headers ?? {})) c.header(name, value)
        return c.body(fault.body, fault.status)
      case 'slow':
        await sleep(fault.ms, { signal: AbortSignal.any([c.req.raw.signal, faults.signal]) })
        return next()
      case 'reset':
        return reset(c)
      case 'reset-after':
        await next()
        c.res = reset(c)
        return undefined
    }
  }
}

/** Resets the connection under the client. Called without one, in-process, it fails as a bug would. */
function reset(c: Context<HttpEnv>): Response {
  c.env.incoming.socket.resetAndDestroy()
  return RESPONSE_ALREADY_SENT
}
