import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { createCached, awaitWithin } from '../base/wait.js'
import { toRelayError } from '../base/errors.js'
import { type Log, createLogThrottle } from '../base/log.js'
import { isCodeHost } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import { type Route, shortNames } from '../dispatch/routes.js'
import type { Activity } from '../events/status.js'
import type { FetchHandler } from '../http/listen.js'
import { createRouter, requireForwardedHost } from '../http/router.js'
import type { Journal, JournalObserver } from '../journal/journal.js'
import type { RefusedKind, RefusedList } from '../webhook/refused.js'

/** Sources of the metrics, read at each request. */
export interface MetricsParts {
  readonly journal: Pick<Journal, 'counts'>
  readonly refusals: { readonly list: Pick<RefusedList, 'counts'> }
  readonly instance: { activity(): Pick<Activity, 'tunnels'> }
  /** Rejects while the instance cannot accept deliveries. */
  readonly ready: () => Promise<void>
  /** Check of the Host header, stricter than the service's own. */
  readonly hostAllowed: (host: string | undefined) => boolean
  readonly clock: Clock
  readonly log: Log
}

/** Metrics of the running instance, for Prometheus. */
export interface Metrics {
  /** Counts what the journal records from now on. */
  readonly observer: JournalObserver
  /** Makes what answers GET /metrics. */
  serve(parts: MetricsParts): { readonly fetch: FetchHandler }
}

/** Buckets in seconds, from a commit in memory to the time limit of storage, 4 s. */
const STORAGE_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 4]
/**
 * Buckets in seconds, from a response on this machine to the time limits of an address, 30 s, and of a command, 10 min.
 */
const ATTEMPT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600]
/** Time limit of storage in milliseconds. Prometheus gives up after 10 s; later results are left out. */
const LIMIT_MS = 2000
/** Age in milliseconds up to which read queues are reused. */
const CACHE_MS = 5000
/** Reasons of a refusal, which count 0 until they occur. */
const NONE: Readonly<Record<RefusedKind, number>> = {
  no_signature: 0,
  invalid_signature: 0,
  invalid_event: 0,
  too_large: 0,
  wrong_path: 0,
}

/** Creates the metrics. Loads prom-client with this file. `routes`: the current ones. */
export function createMetrics(routes: () => readonly Route[]): Metrics {
  const register = new Registry()
  collectDefaultMetrics({ register })
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
  readonly register: Registry
  readonly metrics: ReturnType<typeof createAll>
  readonly labelOf: (id: string) => string
  readonly routes: () => readonly Route[]
}

function serve(parts: MetricsParts, measured: Measured): { readonly fetch: FetchHandler } {
  const { refusals, instance, ready } = parts
  const { register, metrics, labelOf, routes } = measured
  const { forwards, connected } = metrics
  const readQueues = createQueueReader(parts, measured)
  // Concurrent requests share one response.
  const text = createCached(0, async () => {
    // Prometheus does not see an increase from nothing, so values that have not occurred yet are 0.
    for (const target of new Set(routes().map(({ id }) => labelOf(id))))
      for (const status of ['succeeded', 'failed']) forwards.inc({ target, status }, 0)
    connected.reset()
    // The code host's tunnel has no label.
    for (const { source, state } of instance.activity().tunnels)
      connected.set(isCodeHost(source) ? {} : { source }, Number(state === 'connected'))
    metrics.refused.reset()
    for (const [reason, count] of Object.entries({ ...NONE, ...refusals.list.counts() }))
      metrics.refused.inc({ reason }, count)
    const isReady = ready().then(
      () => 1,
      () => 0,
    )
    await readQueues()
    metrics.ready.set(await isReady)
    return register.metrics()
  })
  const app = createRouter(parts)
  app.use(requireForwardedHost(parts.hostAllowed))
  app.get('/metrics', async (c) => c.body(await text(), 200, { 'Content-Type': register.contentType }))
  return { fetch: app.fetch }
}

/** Returns a function that updates the metrics of the queues. It does not reject. */
function createQueueReader(
  { journal, clock, log }: MetricsParts,
  { metrics: { waiting, oldest }, labelOf, routes }: Measured,
): () => Promise<void> {
  const throttle = createLogThrottle(log)
  const counts = createCached(CACHE_MS, () => journal.counts())
  return async () => {
    const found = await awaitWithin(LIMIT_MS, counts()).catch((error: unknown) => {
      const why = toRelayError(error).message
      throttle('queues', () => log.warn(`/metrics has no queues: ${why}`))
      return undefined
    })
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
function createAll(register: Registry) {
  const registers = [register]
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers })
  const histogram = <Label extends string>(name: string, help: string, label: Label, buckets: number[]) =>
    new Histogram({ name, help, labelNames: [label], buckets, registers })
  const deliveries = counter(
    'relay_deliveries_total',
    'Genuine deliveries. unavailable: answered 503, since storage failed.',
    'result',
    'via',
  )
  for (const result of ['stored', 'duplicate', 'unavailable']) deliveries.inc({ result, via: 'http' }, 0)
  return {
    deliveries,
    forwards: counter(
      'relay_forwards_total',
      'Forwards that have ended, each after one attempt or several.',
      'target',
      'status',
    ),
    attempts: histogram(
      'relay_attempt_duration_seconds',
      'How long each attempt to forward took, until the answer or its failure.',
      'target',
      ATTEMPT_BUCKETS,
    ),
    storage: histogram(
      'relay_storage_duration_seconds',
      'How long storing a delivery or recording an attempt took until it was on disk, or failed.',
      'operation',
      STORAGE_BUCKETS,
    ),
    ready: gauge('relay_ready', '1 while deliveries can be taken, as GET /ready says; otherwise 0.'),
    connected: gauge(
      'relay_tunnel_connected',
      '1 while the tunnel is connected, otherwise 0. Absent without a tunnel. That of a source has its name.',
      'source',
    ),
    refused: counter('relay_deliveries_refused_total', 'Requests that were refused.', 'reason'),
    waiting: gauge(
      'relay_queue_deliveries',
      'Deliveries that wait for the target, or are being sent to it.',
      'target',
    ),
    oldest: gauge(
      'relay_queue_oldest_seconds',
      'How long the oldest of them has waited; 0 if none waits.',
      'target',
    ),
  }
}

/** Most labels. A user has a handful of targets, but reloaded settings can name others again and again. */
const MAX_LABELS = 100
/** Label of all targets beyond {@link MAX_LABELS}. */
const OTHERS = 'others'
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
  const labels = new Map<string, string>()
  const create = (id: string): string => {
    if (labels.size >= MAX_LABELS) return OTHERS
    const name = routes().find((route) => route.id === id)?.name
    // Alone, a target has its shortest name.
    const short = shortNames([{ id, ...(name !== undefined && { name }) }]).get(id) ?? ''
    const base = SHORT.test(short) ? short : UNNAMED
    const used = new Set(labels.values())
    let label = base
    for (let count = 2; used.has(label); count++) label = `${base}-${count}`
    labels.set(id, label)
    return label
  }
  const labelOf = (id: string): string => labels.get(id) ?? create(id)
  // Assigned in the order of the routes, so that labels are the same after a restart.
  for (const { id } of routes()) labelOf(id)
  return labelOf
}
