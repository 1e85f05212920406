import { Hono } from 'hono'
import { silentLog } from '../../base/log.js'
import type { HttpEnv } from '../../http/env.js'
import { errorResponse } from '../../http/respond.js'

export interface ReadyParts {
  /** Rejects with a RelayError that has status 503 while the instance cannot take deliveries. Cheap, and bounded in time. */
  readonly ready: () => Promise<void>
}

export const READY_PATH = '/ready'

/**
 * GET /ready: `{"status":"ready"}`, or 503 while deliveries cannot be taken: for a load balancer. It asks all the time, so its
 * requests leave no line in the log.
 */
export function readyRoutes({ ready }: ReadyParts) {
  return new Hono<HttpEnv>().get(READY_PATH, async (c) => {
    try {
      await ready()
      return c.json({ status: 'ready' }, 200)
    } catch (error) {
      return errorResponse(error, silentLog)
    }
  })
}
