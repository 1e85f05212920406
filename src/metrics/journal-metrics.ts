import { Counter, Histogram, type Registry } from 'prom-client'
import type { Delivery } from '../journal/types.js'
import type { Route } from '../dispatch/route.js'
import type { JournalObserver } from '../journal/journal.js'
import type { TargetLabels } from './target-labels.js'

/** Seconds: from a commit in memory to the limit of a call, 4 s. */
const STORAGE_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 4]
/** Seconds: from an answer of this machine to the limits of an address, 30 s, and of a command, 10 min. */
const ATTEMPT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600]

interface Labelled {
  readonly register: Registry
  readonly labelOf: TargetLabels
}

/**
 * Counts what is recorded in the journal: nothing happens to a delivery that the journal does not learn of. What has not happened yet counts
 * 0, since an increase from nothing is not seen.
 */
export function journalMetrics(
  routes: () => readonly Route[],
  { register, labelOf }: Labelled,
): JournalObserver {
  const deliveries = deliveryCounter(register)
  const forwards = forwardCounter(routes, { register, labelOf })
  const { attempts, storage } = histograms(register)
  return {
    stored(delivery, result, seconds) {
      storage.observe({ operation: 'store' }, seconds)
      deliveries.inc({ result, via: viaOf(delivery) })
    },
    recorded({ target, ms }, seconds) {
      storage.observe({ operation: 'record' }, seconds)
      attempts.observe({ target: labelOf(target) }, ms / 1000)
    },
    ended: (target, status) => forwards.inc({ target: labelOf(target), status }),
  }
}

function deliveryCounter(register: Registry): Counter<'result' | 'via'> {
  const deliveries = new Counter({
    name: 'relay_deliveries_total',
    help: 'Genuine deliveries. unavailable: answered 503, since storage failed.',
    labelNames: ['result', 'via'],
    registers: [register],
  })
  for (const result of ['stored', 'duplicate', 'unavailable']) deliveries.inc({ result, via: 'http' }, 0)
  return deliveries
}

function forwardCounter(
  routes: () => readonly Route[],
  { register, labelOf }: Labelled,
): Counter<'target' | 'status'> {
  return new Counter({
    name: 'relay_forwards_total',
    help: 'Forwards that have ended, each after one attempt or several.',
    labelNames: ['target', 'status'],
    registers: [register],
    collect() {
      for (const { id } of routes())
        for (const status of ['succeeded', 'failed']) this.inc({ target: labelOf(id), status }, 0)
    },
  })
}

function histograms(register: Registry) {
  const attempts = new Histogram({
    name: 'relay_attempt_duration_seconds',
    help: 'How long each attempt to forward took, until the answer or its failure.',
    labelNames: ['target'],
    buckets: ATTEMPT_BUCKETS,
    registers: [register],
  })
  const storage = new Histogram({
    name: 'relay_storage_duration_seconds',
    help: 'How long storing a delivery or recording an attempt took until it was on disk, or failed.',
    labelNames: ['operation'],
    buckets: STORAGE_BUCKETS,
    registers: [register],
  })
  return { attempts, storage }
}

function viaOf({ restored }: Delivery): 'http' | 'tunnel' {
  return restored ? 'tunnel' : 'http'
}
