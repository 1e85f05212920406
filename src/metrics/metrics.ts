import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { createCached, inTime } from '../base/wait.js'
import { toRelayError } from '../base/errors.js'
import { type Log, createLogThrottle } from '../base/log.js'
import type { Clock } from '../base/time.js'
import { type Route, shortNames } from '../dispatch/routes.js'
import type { FetchHandler } from '../http/listen.js'
import { createRouter, requireForwardedHost } from '../http/router.js'
import type { Journal, JournalObserver } from '../journal/journal.js'
import type { TunnelStatus } from '../tunnel/tunnel.js'
import type { RefusedKind, RefusedList } from '../webhook/refused.js'

export interface MetricsParts {
  readonly routes: () => readonly Route[]
  readonly refused: () => Pick<RefusedList, 'counts'>
  /** Undefined without a tunnel. */
  readonly tunnel: () => TunnelStatus | undefined
  /** Rejects while the instance cannot take deliveries. */
  readonly ready: () => Promise<void>
  /** Check of the Host header, stricter than the service's own. */
  readonly hostAllowed: (host: string | undefined) => boolean
  readonly clock: Clock
  readonly log: Log
}

/** The metrics of the running instance, for Prometheus. */
export interface Metrics {
  /** Counts what the journal records from now on. */
  readonly observer: JournalObserver
  /** Answers GET /metrics. */
  readonly fetch: FetchHandler
}

/** Loads prom-client with this file. */
export function createMetrics(journal: Pick<Journal, 'queues'>, parts: MetricsParts): Metrics {
  const register = new Registry()
  collectDefaultMetrics({ register })
  const labelOf = createTargetLabels(parts.routes)
  const events = eventMetrics(register)
  const update = createUpdate(journal, parts, stateMetrics(register), labelOf)
  // Requests that come at the same time share one answer.
  const text = createCached(0, async () => {
    for (const target of new Set(parts.routes().map(({ id }) => labelOf(id))))
      for (const status of ['succeeded', 'failed']) events.forwards.inc({ target, status }, 0)
    await update()
    return register.metrics()
  })
  const app = createRouter(parts)
  app.use(requireForwardedHost(parts.hostAllowed))
  app.get('/metrics', async (c) => c.body(await text(), 200, { 'Content-Type': register.contentType }))
  return { observer: createObserver(events, labelOf), fetch: app.fetch }
}

/** Seconds: from a commit in memory to the limit of a call, 4 s. */
const STORAGE_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 4]
/** Seconds: from an answer of this machine to the limits of an address, 30 s, and of a command, 10 min. */
const ATTEMPT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600]

/** What the journal records: nothing happens to a delivery that it does not learn of. */
function eventMetrics(register: Registry) {
  const registers = [register]
  const deliveries = new Counter({
    name: 'relay_deliveries_total',
    help: 'Genuine deliveries. unavailable: answered 503, since storage failed.',
    labelNames: ['result', 'via'],
    registers,
  })
  // An increase from nothing is not seen, so what has not happened yet counts 0.
  for (const result of ['stored', 'duplicate', 'unavailable']) deliveries.inc({ result, via: 'http' }, 0)
  return {
    deliveries,
    forwards: new Counter({
      name: 'relay_forwards_total',
      help: 'Forwards that have ended, each after one attempt or several.',
      labelNames: ['target', 'status'],
      registers,
    }),
    attempts: new Histogram({
      name: 'relay_attempt_duration_seconds',
      help: 'How long each attempt to forward took, until the answer or its failure.',
      labelNames: ['target'],
      buckets: ATTEMPT_BUCKETS,
      registers,
    }),
    storage: new Histogram({
      name: 'relay_storage_duration_seconds',
      help: 'How long storing a delivery or recording an attempt took until it was on disk, or failed.',
      labelNames: ['operation'],
      buckets: STORAGE_BUCKETS,
      registers,
    }),
  }
}

function createObserver(
  { deliveries, forwards, attempts, storage }: ReturnType<typeof eventMetrics>,
  labelOf: TargetLabels,
): JournalObserver {
  return {
    stored({ restored }, result, seconds) {
      storage.observe({ operation: 'store' }, seconds)
      deliveries.inc({ result, via: restored ? 'tunnel' : 'http' })
    },
    recorded({ target, ms }, seconds) {
      storage.observe({ operation: 'record' }, seconds)
      attempts.observe({ target: labelOf(target) }, ms / 1000)
    },
    ended: (target, status) => forwards.inc({ target: labelOf(target), status }),
  }
}

/** What is looked up when the metrics are asked for. */
function stateMetrics(register: Registry) {
  const registers = [register]
  const labelNames = ['target']
  return {
    ready: new Gauge({
      name: 'relay_ready',
      help: '1 while deliveries can be taken, as GET /ready says; otherwise 0.',
      registers,
    }),
    connected: new Gauge({
      name: 'relay_tunnel_connected',
      help: '1 while the tunnel is connected, otherwise 0. Absent without a tunnel.',
      registers,
    }),
    refused: new Counter({
      name: 'relay_deliveries_refused_total',
      help: 'Requests that were refused.',
      labelNames: ['reason'],
      registers,
    }),
    depth: new Gauge({
      name: 'relay_queue_deliveries',
      help: 'Deliveries that wait for the target, or are being sent to it.',
      labelNames,
      registers,
    }),
    age: new Gauge({
      name: 'relay_queue_oldest_seconds',
      help: 'How long the oldest of them has waited; 0 if none waits.',
      labelNames,
      registers,
    }),
  }
}

/** Milliseconds. Prometheus gives up after 10 s; what storage has not answered by then is left out. */
const LIMIT_MS = 2000
/** Milliseconds for which the queues count as read. A million waiting forwards take SQLite 0.23 s (measured). */
const CACHE_MS = 5000

/** Each reason of a refusal, which counts 0 until it occurs. */
const NONE: Readonly<Record<RefusedKind, number>> = {
  no_signature: 0,
  invalid_signature: 0,
  invalid_event: 0,
  too_large: 0,
  wrong_path: 0,
}

/** Returns a function that brings the metrics of the present state up to date. It does not reject. */
function createUpdate(
  journal: Pick<Journal, 'queues'>,
  { routes, refused, tunnel, ready, clock, log }: MetricsParts,
  metrics: ReturnType<typeof stateMetrics>,
  labelOf: TargetLabels,
): () => Promise<void> {
  const queues = createCached(CACHE_MS, () => journal.queues())
  const throttle = createLogThrottle(log)
  const { depth, age } = metrics
  const readQueues = async (): Promise<void> => {
    const found = await inTime(LIMIT_MS, queues()).catch((error: unknown) => {
      const why = toRelayError(error).message
      throttle('queues', () => log.warn(`/metrics has no queues: ${why}`))
      return undefined
    })
    depth.reset()
    age.reset()
    if (!found) return
    const now = clock()
    const oldest = new Map<string, number>()
    for (const id of new Set([...routes().map((route) => route.id), ...found.keys()])) {
      const queue = found.get(id)
      const target = labelOf(id)
      depth.inc({ target }, queue?.waiting ?? 0)
      // Several targets can share the last label.
      oldest.set(target, Math.min(oldest.get(target) ?? now, queue?.oldest ?? now))
    }
    for (const [target, since] of oldest) age.set({ target }, (now - since) / 1000)
  }
  const readReady = (): Promise<void> =>
    ready().then(
      () => metrics.ready.set(1),
      () => metrics.ready.set(0),
    )
  return async () => {
    const status = tunnel()
    if (status) metrics.connected.set(Number(status.state === 'connected'))
    else metrics.connected.remove()
    metrics.refused.reset()
    for (const [reason, count] of Object.entries({ ...NONE, ...refused().counts() }))
      metrics.refused.inc({ reason }, count)
    await Promise.all([readQueues(), readReady()])
  }
}

/** Gives each target its label. The same id always gets the same one. */
type TargetLabels = (id: string) => string

/** A user has a handful of targets; reloaded settings can name others again and again. */
const MAX_LABELS = 100
/** The label of all targets beyond {@link MAX_LABELS}. */
const OTHERS = 'others'
/** A name, a host and port, or the name of a program. A command that begins with anything else could show what is secret in it. */
const SHORT = /^[\w.:[\]-]{1,64}$/
const UNNAMED = 'command'

/**
 * Labels of targets: the name that the route gives, else host and port, else the name of the command's program; never a path, a
 * query, a password or arguments. Where several targets would share a label, the later ones get a number.
 */
function createTargetLabels(routes: () => readonly Route[]): TargetLabels {
  const labels = new Map<string, string>()
  const used = new Set<string>()
  const create = (id: string): string => {
    if (labels.size >= MAX_LABELS) return OTHERS
    const name = routes().find((route) => route.id === id)?.name
    // Named alone, a target has its shortest name.
    const short = shortNames([{ id, ...(name !== undefined && { name }) }]).get(id) ?? ''
    const base = SHORT.test(short) ? short : UNNAMED
    let label = base
    for (let count = 2; used.has(label); count++) label = `${base}-${count}`
    used.add(label)
    labels.set(id, label)
    return label
  }
  const labelOf: TargetLabels = (id) => labels.get(id) ?? create(id)
  // In the order of the routes, so that they have the same after a restart.
  for (const { id } of routes()) labelOf(id)
  return labelOf
}
