import { shownSource } from '../base/source-names.js'
import type { Clock } from '../base/time.js'
import { type Route, shortNames } from '../dispatch/routes.js'
import type { Activity } from '../events/status.js'
import type { FetchHandler } from '../http/listen.js'
import type { Journal, JournalObserver } from '../journal/journal.js'
import type { RefusedKind, RefusedList } from '../webhook/refused.js'
import { createLabels, createMetricsReader, MetricRegistry, type MetricsService } from './registry.js'

/** Sources of the metrics, read at each request. */
export interface MetricsParts extends MetricsService {
  readonly journal: Pick<Journal, 'counts'>
  readonly refusals: { readonly list: RefusedList }
  readonly instance: { activity(): Activity }
  readonly clock: Clock
}

/** Metrics of the running instance, for Prometheus. */
export interface Metrics {
  /** Counts what the journal records from now on. */
  readonly observer: JournalObserver
  /** Makes what answers GET /metrics. */
  serve(parts: MetricsParts): { readonly fetch: FetchHandler }
}

/**
 * Buckets in seconds, from a response on this machine to the time limits of an address, 30 s, and of a command, 10 min.
 */
const ATTEMPT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600]
/** Reasons of a refusal, which count 0 until they occur. */
const NONE: Readonly<Record<RefusedKind, number>> = {
  no_signature: 0,
  invalid_signature: 0,
  invalid_event: 0,
  too_large: 0,
  wrong_path: 0,
}

/** Creates the metrics. Loads prom-client. `routes`: the current ones. */
export function createMetrics(routes: () => readonly Route[]): Metrics {
  const register = new MetricRegistry()
  const metrics = createAll(register)
  const labelOf = createTargetLabels(routes)
  return {
    serve: (parts) => serve(parts, { register, metrics, labelOf, routes }),
    observer: {
      stored({ restored }, result, seconds) {
        metrics.storage.observe({ operation: 'store' }, seconds)
        metrics.deliveries.inc({ result, via: restored ? 'tunnel' : 'http' })
      },
      recorded({ target, ms }, seconds) {
        metrics.storage.observe({ operation: 'record' }, seconds)
        metrics.attempts.observe({ target: labelOf(target) }, ms / 1000)
      },
      ended: (target, status) => metrics.forwards.inc({ target: labelOf(target), status }),
    },
  }
}

interface Measured {
  readonly register: MetricRegistry
  readonly metrics: ReturnType<typeof createAll>
  readonly labelOf: (id: string) => string
  readonly routes: () => readonly Route[]
}

function serve(parts: MetricsParts, measured: Measured): { readonly fetch: FetchHandler } {
  const { refusals, instance } = parts
  const { register, metrics, labelOf, routes } = measured
  const { forwards, connected } = metrics
  const readQueues = createQueueReader(parts, measured)
  return register.serve(parts, async () => {
    // Prometheus does not see an increase from nothing, so values that have not occurred yet are 0.
    for (const target of new Set(routes().map(({ id }) => labelOf(id))))
      for (const status of ['succeeded', 'failed']) forwards.inc({ target, status }, 0)
    connected.reset()
    // The code host's tunnel has no label.
    for (const { source, state } of instance.activity().tunnels)
      connected.set(shownSource(source) === undefined ? {} : { source }, Number(state === 'connected'))
    metrics.refused.reset()
    for (const [reason, count] of Object.entries({ ...NONE, ...refusals.list.counts() }))
      metrics.refused.inc({ reason }, count)
    await readQueues()
  })
}

/** Returns a function that updates the metrics of the queues. It does not reject. */
function createQueueReader(
  { journal, clock, log }: MetricsParts,
  { metrics: { waiting, oldest }, labelOf, routes }: Measured,
): () => Promise<void> {
  const counts = createMetricsReader('queues', log, () => journal.counts())
  return async () => {
    const found = await counts()
    waiting.reset()
    oldest.reset()
    if (!found) return
    const now = clock()
    const since = new Map<string, number>()
    const queues = [...found].filter(([, each]) => each.waiting > 0).map(([id]) => id)
    for (const id of new Set([...routes().map((route) => route.id), ...queues])) {
      const target = labelOf(id)
      waiting.inc({ target }, found.get(id)?.waiting ?? 0)
      // Several targets can share the last label.
      since.set(target, Math.min(since.get(target) ?? now, found.get(id)?.oldest ?? now))
    }
    for (const [target, at] of since) oldest.set({ target }, (now - at) / 1000)
  }
}

/** Creates all metrics except Node's own. */
function createAll(register: MetricRegistry) {
  const deliveries = register.counter(
    'relay_deliveries_total',
    'Genuine deliveries. unavailable: answered 503, since storage failed.',
    'result',
    'via',
  )
  for (const result of ['stored', 'duplicate', 'unavailable']) deliveries.inc({ result, via: 'http' }, 0)
  return {
    deliveries,
    forwards: register.counter(
      'relay_forwards_total',
      'Forwards that have ended, each after one attempt or several.',
      'target',
      'status',
    ),
    attempts: register.histogram(
      'relay_attempt_duration_seconds',
      'How long each attempt to forward took, until the answer or its failure.',
      'target',
      ATTEMPT_BUCKETS,
    ),
    storage: register.storage(
      'How long storing a delivery or recording an attempt took until it was on disk, or failed.',
    ),
    connected: register.gauge(
      'relay_tunnel_connected',
      '1 while the tunnel is connected, otherwise 0. Absent without a tunnel. That of a source has its name.',
      'source',
    ),
    refused: register.counter('relay_deliveries_refused_total', 'Requests that were refused.', 'reason'),
    waiting: register.gauge(
      'relay_queue_deliveries',
      'Deliveries that wait for the target, or are being sent to it.',
      'target',
    ),
    oldest: register.gauge(
      'relay_queue_oldest_seconds',
      'How long the oldest of them has waited; 0 if none waits.',
      'target',
    ),
  }
}

/**
 * Syntax of a label: a name, a host and port, or the name of a program. A command that begins with anything else could
 * reveal a secret.
 */
const SHORT = /^[\w.:[\]-]{1,64}$/
const UNNAMED = 'command'

/**
 * Returns a function from a target's id to its label, which never changes: the name of its route, else host and port,
 * else the name of the command's program. Labels contain no path, query, password or arguments. Targets that would
 * share a label get numbers.
 */
function createTargetLabels(routes: () => readonly Route[]): (id: string) => string {
  const labelOf = createLabels((id) => {
    const name = routes().find((route) => route.id === id)?.name
    // Alone, a target has its shortest name.
    const short = shortNames([{ id, ...(name !== undefined && { name }) }]).get(id) ?? ''
    return SHORT.test(short) ? short : UNNAMED
  })
  // Assigned in the order of the routes, so that labels are the same after a restart.
  for (const { id } of routes()) labelOf(id)
  return labelOf
}
