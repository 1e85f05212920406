import { Counter, Gauge, type Registry } from 'prom-client'
import { createCached } from '../base/cached.js'
import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { createLogThrottle } from '../base/log-throttle.js'
import { inTime } from '../base/time-limit.js'
import type { Clock } from '../base/time.js'
import type { Route } from '../dispatch/route.js'
import type { Journal } from '../journal/journal.js'
import type { TunnelStatus } from '../tunnel/tunnel.js'
import type { RefusedKind, RefusedList } from '../webhook/refused.js'
import type { TargetLabels } from './target-labels.js'

/** A reason that has not occurred yet counts 0: an increase from nothing is not seen. */
const NONE: Readonly<Record<RefusedKind, number>> = {
  no_signature: 0,
  invalid_signature: 0,
  invalid_event: 0,
  too_large: 0,
  wrong_path: 0,
}

/** What is looked up when the metrics are read. */
export interface StateParts {
  readonly journal: Pick<Journal, 'queues'>
  readonly routes: () => readonly Route[]
  readonly refused: () => Pick<RefusedList, 'counts'>
  /** Undefined without a tunnel. */
  readonly tunnel: () => TunnelStatus | undefined
  /** Rejects while the instance cannot take deliveries. */
  readonly ready: () => Promise<void>
  readonly clock: Clock
  readonly log: Log
}

/** Milliseconds. Prometheus gives up after 10 s; what storage has not answered by then is left out. */
const LIMIT_MS = 2000
/** Milliseconds for which the queues count as read. A million waiting forwards take SQLite 0.23 s (measured). */
const CACHE_MS = 5000

/** Returns a function that brings the metrics of the present state up to date. It does not reject. */
export function stateMetrics(
  parts: StateParts,
  register: Registry,
  labelOf: TargetLabels,
): () => Promise<void> {
  const { journal, ready, tunnel } = parts
  const registers = [register]
  const readiness = new Gauge({
    name: 'relay_ready',
    help: '1 while deliveries can be taken, as GET /ready says; otherwise 0.',
    registers,
  })
  const connected = new Gauge({
    name: 'relay_tunnel_connected',
    help: '1 while the tunnel is connected, otherwise 0. Absent without a tunnel.',
    registers,
  })
  const refused = new Counter({
    name: 'relay_deliveries_refused_total',
    help: 'Requests that were refused.',
    labelNames: ['reason'],
    registers,
  })
  const setQueues = queueMetrics(parts, registers, labelOf)
  const queues = createCached(CACHE_MS, () => journal.queues())
  const throttle = createLogThrottle(parts.log)
  const readQueues = async (): Promise<void> => {
    try {
      setQueues(await inTime(LIMIT_MS, queues()))
    } catch (error) {
      setQueues(undefined)
      const why = toRelayError(error).message
      throttle('queues', () => parts.log.warn(`/metrics has no queues: ${why}`))
    }
  }
  const readReady = async (): Promise<void> => {
    const isReady = await ready().then(
      () => true,
      () => false,
    )
    readiness.set(Number(isReady))
  }
  return async () => {
    const status = tunnel()
    if (status) connected.set(Number(status.state === 'connected'))
    else connected.remove()
    refused.reset()
    for (const [reason, count] of Object.entries({ ...NONE, ...parts.refused().counts() }))
      refused.inc({ reason }, count)
    await Promise.all([readQueues(), readReady()])
  }
}

/** Returns a function that sets what waits for each target; without queues there is nothing to see. */
function queueMetrics(
  { routes, clock }: StateParts,
  registers: Registry[],
  labelOf: TargetLabels,
): (queues: Awaited<ReturnType<Journal['queues']>> | undefined) => void {
  const labelNames = ['target']
  const depth = new Gauge({
    name: 'relay_queue_deliveries',
    help: 'Deliveries that wait for the target, or are being sent to it.',
    labelNames,
    registers,
  })
  const age = new Gauge({
    name: 'relay_queue_oldest_seconds',
    help: 'How long the oldest of them has waited; 0 if none waits.',
    labelNames,
    registers,
  })
  return (queues) => {
    depth.reset()
    age.reset()
    if (!queues) return
    const now = clock()
    const oldest = new Map<string, number>()
    for (const id of new Set([...routes().map((route) => route.id), ...queues.keys()])) {
      const queue = queues.get(id)
      const target = labelOf(id)
      depth.inc({ target }, queue?.waiting ?? 0)
      // Several targets can share the last label.
      oldest.set(target, Math.min(oldest.get(target) ?? now, queue?.oldest ?? now))
    }
    for (const [target, since] of oldest) age.set({ target }, (now - since) / 1000)
  }
}
