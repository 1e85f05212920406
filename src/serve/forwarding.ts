import { sleep } from '../base/abort.js'
import { Disposal } from '../base/disposal.js'
import type { Settings } from '../base/settings.js'
import { SharedStore } from '../base/shared-store.js'
import { createDispatcher, type Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js'
import type { Route } from '../dispatch/route.js'
import type { Delivery, Receipt } from '../journal/delivery.js'
import type { Relay } from '../relay.js'
import { attemptSize, deliverySize } from './growth.js'
import { type Maintenance, type MaintenanceParts, startMaintenance } from './maintenance.js'
import type { Ownership } from './ownership.js'

/** Forwards the journal's deliveries, and keeps the journal within its limits. */
export interface Forwarding extends AsyncDisposable, Pick<Dispatcher, 'status' | 'retryNow'> {
  /** Forwards a delivery that was just stored. */
  take(delivery: Delivery, receipt: Receipt): void
  /** Forwards an entry whose forwards to these targets were just recorded as waiting. */
  forward(n: number, targets: readonly string[]): void
  /** Starts with what waits in the journal. To be called once. @throws RelayError `storage` */
  start(): Promise<void>
  replaceRoutes(routes: readonly Route[]): void
}

export interface ForwardingOptions
  extends
    Pick<DispatcherOptions, 'env' | 'log' | 'onAttempt' | 'onTarget'>,
    Pick<MaintenanceParts, 'clock' | 'ages'> {
  readonly ownership: Ownership
}

/**
 * How often a shared store is searched for deliveries that wait, in milliseconds. A connection that breaks during a commit leaves it
 * unknown whether the delivery was stored.
 */
const SEARCH_MS = 5000

export function createForwarding(
  { database, journal, routing }: Relay,
  settings: Settings,
  { ownership, onAttempt, ...options }: ForwardingOptions,
): Forwarding {
  const { ages } = options
  const closing = new Disposal()
  let maintenance: Maintenance | undefined
  const dispatcher = closing.use(
    createDispatcher({
      ...options,
      journal,
      routes: routing.routes,
      concurrency: settings.concurrency,
      onAttempt(event) {
        onAttempt?.(event)
        maintenance?.added(attemptSize(event.attempt))
      },
      owner: ownership,
      time: { ages: ages.now },
    }),
  )
  return {
    take(delivery, { n, targets }) {
      dispatcher.take(n, targets)
      maintenance?.added(deliverySize(delivery))
    },
    forward: (n, targets) => dispatcher.take(n, targets),
    async start() {
      await dispatcher.start()
      const parts = { ...options, database, journal, retention: settings, lost: ownership.lost }
      maintenance = closing.use(startMaintenance(parts))
      if (settings.store instanceof SharedStore) closing.use(searchRegularly(dispatcher))
    },
    replaceRoutes: (routes) => dispatcher.replaceRoutes(routes),
    status: () => dispatcher.status(),
    retryNow: () => dispatcher.retryNow(),
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  }
}

/** A search that fails is made again at the next time: until then the database is away. */
function searchRegularly(dispatcher: Pick<Dispatcher, 'refresh'>): AsyncDisposable {
  const stop = new AbortController()
  const { signal } = stop
  const searching = (async () => {
    for (;;) {
      await sleep(SEARCH_MS, { signal }).catch(() => {})
      if (signal.aborted) return
      await dispatcher.refresh().catch(() => {})
    }
  })()
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await searching
    },
  }
}
