import { Disposal } from '../base/disposal.js'
import type { Settings } from '../base/settings.js'
import { createDispatcher, type DispatcherOptions, type TargetStatus } from '../dispatch/dispatcher.js'
import type { Route } from '../dispatch/route.js'
import type { Delivery, Receipt } from '../journal/delivery.js'
import type { Relay } from '../relay.js'
import { attemptSize, deliverySize } from './growth.js'
import { type Maintenance, type MaintenanceParts, startMaintenance } from './maintenance.js'
import type { Ownership } from './ownership.js'

/** Forwards the journal's deliveries, and keeps the journal within its limits. */
export interface Forwarding extends AsyncDisposable {
  /** Forwards a delivery that was just stored. */
  take(delivery: Delivery, receipt: Receipt): void
  /** Starts with what waits in the journal. To be called once. @throws RelayError `storage` */
  start(): Promise<void>
  replaceRoutes(routes: readonly Route[]): void
  status(): readonly TargetStatus[]
}

export interface ForwardingOptions
  extends
    Pick<DispatcherOptions, 'env' | 'log' | 'onAttempt' | 'onTarget'>,
    Pick<MaintenanceParts, 'clock' | 'ages'> {
  readonly ownership: Ownership
}

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
    async start() {
      await dispatcher.start()
      const parts = { ...options, database, journal, retention: settings, lost: ownership.lost }
      maintenance = closing.use(startMaintenance(parts))
    },
    status: () => dispatcher.status(),
    replaceRoutes: (routes) => dispatcher.replaceRoutes(routes),
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  }
}
