import { Hono } from 'hono'
import type { FetchHandler } from '../../http/listen.js'
import type { HttpEnv } from '../../http/body.js'

export interface MetricsRouteParts {
  /** Answers requests for the metrics. Undefined: they are off. */
  readonly metrics?: { readonly fetch: FetchHandler } | undefined
}

/** `/metrics`: what is measured, which answers for itself; 404, as for an unknown path, while that is off. */
export function metricsRoutes({ metrics }: MetricsRouteParts) {
  const app = new Hono<HttpEnv>()
  return metrics ? app.all('/metrics', (c) => metrics.fetch(c.req.raw, c.env)) : app
}
