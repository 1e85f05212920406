import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context, MiddlewareHandler } from 'hono'
import { sleep } from '../base/abort.js'
import { discardBody, type HttpEnv } from '../http/body.js'
import type { Faults, Operation } from './faults.js'

/** Middleware that applies the fault set for the route's operation or repository. */
export function injectFault(faults: Faults, operation: Operation): MiddlewareHandler<HttpEnv> {
  return async function injectFault(c, next) {
    const { owner, repo } = c.req.param() as { owner?: string; repo?: string }
    const fault = faults.take(operation, owner && repo && `${owner}/${repo}`)
    switch (fault?.kind) {
      case undefined:
        return next()
      case 'answer':
        await discardBody(c.env)
        for (const [name, value] of Object.entries(fault.headers ?? {})) c.header(name, value)
        return c.body(fault.body, fault.status)
      case 'slow':
        await pause(c, fault.ms)
        return next()
      case 'late':
        await next()
        return pause(c, fault.ms)
      case 'reset':
        return reset(c)
      case 'reset-after':
        await next()
        c.res = reset(c)
        return undefined
    }
  }

  /** Until the client disconnects, or the sandbox closes. */
  function pause(c: Context<HttpEnv>, ms: number): Promise<void> {
    return sleep(ms, { signal: AbortSignal.any([c.req.raw.signal, faults.signal]) })
  }
}

/** Resets the client's connection. An in-process call, which has none, fails like a bug. */
function reset(c: Context<HttpEnv>): Response {
  c.env.incoming.socket.resetAndDestroy()
  return RESPONSE_ALREADY_SENT
}
