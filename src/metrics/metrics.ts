import { collectDefaultMetrics, Registry } from 'prom-client'
import { createCached } from '../base/cached.js'
import type { FetchHandler } from '../http/edge.js'
import { requireForwardedHost } from '../http/forwarded-host.js'
import { createRouter } from '../http/router.js'
import type { Journal, JournalObserver } from '../journal/journal.js'
import { journalMetrics } from './journal-metrics.js'
import { type StateParts, stateMetrics } from './state-metrics.js'
import { createTargetLabels } from './target-labels.js'

export interface MetricsParts extends Omit<StateParts, 'journal'> {
  /** Check of the Host header, stricter than the service's own. */
  readonly hostAllowed: (host: string | undefined) => boolean
}

/** The metrics of the running instance, for Prometheus. */
export interface Metrics {
  /** Counts what the journal records from now on. */
  readonly observer: JournalObserver
  /** Answers GET /metrics. */
  readonly fetch: FetchHandler
}

/** Loads prom-client with this file. */
export function createMetrics(journal: Journal, parts: MetricsParts): Metrics {
  const register = new Registry()
  collectDefaultMetrics({ register })
  const labelOf = createTargetLabels(parts.routes)
  const observer = journalMetrics(parts.routes, { register, labelOf })
  const update = stateMetrics({ ...parts, journal }, register, labelOf)
  // Requests that come at the same time share one answer.
  const text = createCached(0, async () => {
    await update()
    return register.metrics()
  })
  const app = createRouter(parts)
  app.use(requireForwardedHost(parts.hostAllowed))
  app.get('/metrics', async (c) => c.body(await text(), 200, { 'Content-Type': register.contentType }))
  return { observer, fetch: app.fetch }
}
