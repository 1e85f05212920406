import type { Random } from '../base/backoff.js'
import { Disposal } from '../base/disposal.js'
import type { Settings } from '../base/settings.js'
import type { AttemptEvent } from '../dispatch/attempt.js'
import { createDispatcher, type Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js'
import type { Owner } from '../dispatch/owner.js'
import type { Route } from '../dispatch/route.js'
import type { Delivery, Receipt } from '../journal/delivery.js'
import type { Relay } from '../relay.js'
import { SWEEP_DUTY } from './duties.js'
import { attemptSize, deliverySize } from './growth.js'
import { type Maintenance, type MaintenanceParts, startMaintenance } from './maintenance.js'
import type { Ownership } from './ownership.js'
import { createSharedDispatcher } from './shared-forwarding.js'

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
  readonly random?: Random | undefined
  readonly ownership: Ownership
}

export function createForwarding(
  { database, journal, routing, limits }: Relay,
  settings: Settings,
  { ownership, onAttempt, random = Math.random, ...options }: ForwardingOptions,
): Forwarding {
  const { ages } = options
  const closing = new Disposal()
  let maintenance: Maintenance | undefined
  const { membership } = ownership
  const common = {
    ...options,
    journal,
    routes: routing.routes,
    concurrency: settings.concurrency,
    onAttempt(event: AttemptEvent) {
      onAttempt?.(event)
      maintenance?.added(attemptSize(event.attempt))
    },
    time: { ages: ages.now, random },
    limits,
  }
  const dispatcher = closing.use(
    membership
      ? createSharedDispatcher({ ...common, membership })
      : createDispatcher({ ...common, owner: ownership }),
  )
  const upkeep = { ...options, database, journal, retention: settings, interval: limits.sweep }
  const sweep = {
    name: SWEEP_DUTY,
    what: 'removing old deliveries',
    async start({ lost }: Owner) {
      return (maintenance = startMaintenance({ ...upkeep, lost }))
    },
  }
  return {
    take(delivery, { n, targets }) {
      dispatcher.take(n, targets)
      maintenance?.added(deliverySize(delivery))
    },
    forward: (n, targets) => dispatcher.take(n, targets),
    async start() {
      await dispatcher.start()
      closing.use(await ownership.duties.run(sweep))
      const added = membership?.subscribe({
        onNotice: (notice) => notice.kind === 'journal' && maintenance?.added(notice.bytes),
        onListening: () => {},
      })
      closing.defer(async () => added?.[Symbol.dispose]())
    },
    replaceRoutes: (routes) => dispatcher.replaceRoutes(routes),
    status: () => dispatcher.status(),
    retryNow: () => dispatcher.retryNow(),
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  }
}
