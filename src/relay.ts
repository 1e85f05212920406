import type { Hono } from 'hono'
import { logAccounts } from './auth/accounts.js'
import { isolateCallbacks } from './base/callbacks.js'
import { Disposal } from './base/lifetime.js'
import { type Log, silentLog } from './base/log.js'
import { TIME_LIMITS, type Seams } from './base/seams.js'
import type { Settings } from './base/settings.js'
import { systemClock, type Clock } from './base/time.js'
import { openCore, servicePartsOf, signInAt } from './core.js'
import { Events } from './events/events.js'
import type { HttpEnv } from './http/body.js'
import { acquireProfile } from './instance/running.js'
import { JournalQueries } from './journal/read.js'
import type { Delivery, Receipt } from './journal/types.js'
import { createApp, ReplaceableApp } from './server/app.js'
import { openDatabase } from './store/open.js'

export interface RelayOptions {
  readonly log?: Log
  readonly clock?: Clock
  /** Replacements for tests. Default: none. */
  readonly seams?: Seams | undefined
  /** Called for each delivery once it is in the journal, before its sender gets the response. */
  readonly onDelivery?: (delivery: Delivery, receipt: Receipt) => void
}

/** A relay that handles requests through `app.fetch`, but does not listen. */
export interface Relay extends AsyncDisposable {
  /** Handles requests as the listening service does, except those that need a connection. `routes` lists its routes. */
  readonly app: Pick<Hono<HttpEnv>, 'fetch' | 'request' | 'routes'>
  /** The deliveries, read-only: an entry comes only from a verified request. */
  readonly journal: JournalQueries
  /** Address of the relay unless the settings have a public one. Set it when the port is known. */
  address: string
}

/**
 * Makes a relay that does not listen and forwards nothing: its deliveries have no targets. It owns the profile until it
 * is disposed of.
 * @throws RelayError `unavailable` if another relay has the profile, `storage` if its data cannot be opened, `settings`
 * for a provider address that is neither https nor loopback
 */
export async function createRelay(settings: Settings, options: RelayOptions = {}): Promise<Relay> {
  const {
    log = silentLog,
    seams,
    onDelivery,
    clock = seams?.clock ?? systemClock,
  } = isolateCallbacks(options)
  await using opened = new Disposal()
  const taken = await acquireProfile(settings)
  opened.defer(async () => taken?.[Symbol.dispose]())
  let isMade = false
  opened.defer(async () => {
    if (!isMade) await taken?.discard()
  })
  const { store: kind, folder, host, port } = settings
  const onSlow = (text: string): void => log.info(text)
  const data = { kind, folder, clock, fault: seams?.storage, onSlow, migrate: true }
  const database = opened.use(await openDatabase(data))
  const reportAccount = logAccounts(log)
  const events = new Events((event) => {
    if (event.type === 'delivery') onDelivery?.(event.delivery, event.receipt)
    else if (event.type === 'account') reportAccount(event.account)
  })
  const limits = { ...TIME_LIMITS, ...seams?.limits }
  const place = { profile: settings.profile, sandbox: false, isNamed: false }
  const core = await openCore(settings, { database, limits, clock, log, events, place, forwards: false })
  const appAt = (address: string): ReturnType<typeof createApp> =>
    createApp({
      ...servicePartsOf(core, address, signInAt(core, address)),
      ready: () => Promise.resolve(),
      instance: undefined,
      inspector: undefined,
      metrics: undefined,
    })
  const address = `http://${host}:${port}`
  const app = new ReplaceableApp(appAt(address))
  isMade = true
  return new RelayView({
    address,
    app,
    journal: new JournalQueries(database.sql, clock),
    onAddress: (other) => app.replace(appAt(other)),
    owner: opened.move(),
  })
}

export interface RelayViewParts {
  readonly address: string
  readonly app: Relay['app']
  readonly journal: JournalQueries
  /** Called with each new address, whose application `app` then is. */
  readonly onAddress: (address: string) => void
  /** Disposes of everything that the relay opened. */
  readonly owner: AsyncDisposable
}

/** The public part of a relay, enforced at run time. A new address makes a new application. */
export class RelayView implements Relay {
  readonly app: Relay['app']
  readonly journal: JournalQueries
  readonly #parts: RelayViewParts
  #address: string

  constructor(parts: RelayViewParts) {
    this.app = parts.app
    this.journal = parts.journal
    this.#parts = parts
    this.#address = parts.address
  }

  get address(): string {
    return this.#address
  }

  set address(address) {
    this.#parts.onAddress(address)
    this.#address = address
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.owner[Symbol.asyncDispose]()
  }
}
