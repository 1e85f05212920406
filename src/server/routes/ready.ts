import { Hono } from 'hono'
import { silentLog } from '../../base/log.js'
import type { HttpEnv } from '../../http/body.js'
import { errorResponse } from '../../http/router.js'

/**
 * Rejects with a RelayError that has status 503 while the instance cannot take deliveries. Cheap, and bounded in time. `watched`: a
 * load balancer asks, which needs time to notice when the instance stops.
 */
export type ReadyCheck = (options?: { readonly watched: boolean }) => Promise<void>

export interface ReadyParts {
  readonly ready: ReadyCheck
}

export const READY_PATH = '/ready'

/**
 * GET /ready: `{"status":"ready"}`, or 503 while deliveries cannot be taken: for a load balancer. It asks all the time, so its
 * requests leave no line in the log.
 */
export function readyRoutes({ ready }: ReadyParts) {
  return new Hono<HttpEnv>().get(READY_PATH, async (c) => {
    try {
      await ready({ watched: true })
      return c.json({ status: 'ready' }, 200)
    } catch (error) {
      return errorResponse(error, silentLog)
    }
  })
}
