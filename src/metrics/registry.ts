import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { awaitWithin, createCached } from '../base/wait.js'
import { toRelayError } from '../base/errors.js'
import { type Log, createLogThrottle } from '../base/log.js'
import type { FetchHandler } from '../http/listen.js'
import { createRouter, requireForwardedHost } from '../http/router.js'

/** Values that GET /metrics reads. */
export interface MetricsService {
  /** Rejects while nothing can be stored. */
  readonly ready: () => Promise<void>
  /** Check of the Host header, stricter than the service's own. */
  readonly hostAllowed: (host: string | undefined) => boolean
  readonly log: Log
}

/** Buckets in seconds, from a commit in memory to the time limit of storage, 4 s. */
const STORAGE_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 4]
/** Time limit of storage in milliseconds. Prometheus gives up after 10 s; later results are left out. */
const LIMIT_MS = 2000
/** Age in milliseconds up to which what was read from storage is reused. */
const CACHE_MS = 5000

/** The metrics of a process for Prometheus, with those of Node. Loads prom-client with this file. */
export class MetricRegistry {
  readonly #register = new Registry()

  constructor() {
    collectDefaultMetrics({ register: this.#register })
  }

  counter<Label extends string>(name: string, help: string, ...labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.#register] })
  }

  gauge<Label extends string>(name: string, help: string, ...labelNames: Label[]): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: [this.#register] })
  }

  histogram<Label extends string>(
    name: string,
    help: string,
    label: Label,
    buckets: number[],
  ): Histogram<Label> {
    return new Histogram({ name, help, labelNames: [label], buckets, registers: [this.#register] })
  }

  /** Metric of the time that storage takes. */
  storage(help: string): Histogram<'operation'> {
    return this.histogram('relay_storage_duration_seconds', help, 'operation', STORAGE_BUCKETS)
  }

  /** Makes what answers GET /metrics. `update` sets what is read at each request. */
  serve(
    { ready, hostAllowed, log }: MetricsService,
    update: () => Promise<void>,
  ): { readonly fetch: FetchHandler } {
    const isReady = this.gauge(
      'relay_ready',
      '1 while deliveries can be taken, as GET /ready says; otherwise 0.',
    )
    // Concurrent requests share one response.
    const text = createCached(0, async () => {
      const checked = ready().then(
        () => 1,
        () => 0,
      )
      await update()
      isReady.set(await checked)
      return this.#register.metrics()
    })
    const app = createRouter({ hostAllowed, log })
    app.use(requireForwardedHost(hostAllowed))
    app.get('/metrics', async (c) =>
      c.body(await text(), 200, { 'Content-Type': this.#register.contentType }),
    )
    return { fetch: app.fetch }
  }
}

/** Returns a function that reads from storage for the metrics. It gives undefined, with a warning, if storage fails. */
export function createMetricsReader<Value>(
  what: string,
  log: Log,
  read: () => Promise<Value>,
): () => Promise<Value | undefined> {
  const throttle = createLogThrottle(log)
  const cached = createCached(CACHE_MS, read)
  return () =>
    awaitWithin(LIMIT_MS, cached()).catch((error: unknown) => {
      const why = toRelayError(error).message
      throttle(what, () => log.warn(`/metrics has no ${what}: ${why}`))
      return undefined
    })
}

/** Most labels. A user has a handful of targets or channels, but settings can name others again and again. */
const MAX_LABELS = 100
/** Label of all beyond {@link MAX_LABELS}. */
const OTHERS = 'others'

/**
 * Returns a function from an id to its label, which never changes. Ids that would share a label get numbers.
 * @param labelOf its shortest label
 */
export function createLabels(labelOf: (id: string) => string): (id: string) => string {
  const labels = new Map<string, string>()
  const create = (id: string): string => {
    if (labels.size >= MAX_LABELS) return OTHERS
    const base = labelOf(id)
    const used = new Set(labels.values())
    let label = base
    for (let count = 2; used.has(label); count++) label = `${base}-${count}`
    labels.set(id, label)
    return label
  }
  return (id) => labels.get(id) ?? create(id)
}
