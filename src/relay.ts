import { logAccounts } from './auth/accounts.js'
import { isolateCallbacks } from './base/callbacks.js'
import {
  callback,
  checkArgument,
  checkMembers,
  type Checks,
  logger,
  must,
  optional,
  seams as seamsCheck,
  type Words,
} from './base/checks.js'
import { RelayError } from './base/errors.js'
import { StopGate } from './base/stop-gate.js'
import { Disposal } from './base/lifetime.js'
import { inOwnWords } from './base/own-words.js'
import { type Log, silentLog } from './base/log.js'
import { TIME_LIMITS, type Seams } from './base/seams.js'
import type { Settings } from './base/settings.js'
import { systemClock, type Clock } from './base/time.js'
import { openCore, servicePartsOf, signInAt } from './core.js'
import { Events } from './events/events.js'
import { errorResponse } from './http/router.js'
import { acquireProfile } from './instance/running.js'
import { JournalQueries } from './journal/read.js'
import { fieldsOf } from './json/parse.js'
import type { Delivery, Receipt } from './journal/types.js'
import { checkSettings } from './senders/check-settings.js'
import { createApp } from './server/app.js'
import { openDatabase } from './store/open.js'
import type { Sql } from './store/sql.js'

export interface RelayOptions {
  readonly log?: Log
  readonly clock?: Clock
  /** Replacements for tests. Default: none. */
  readonly seams?: Seams | undefined
  /** Called for each delivery once it is in the journal, before its sender gets the response. */
  readonly onDelivery?: (delivery: Delivery, receipt: Receipt) => void
}

export const RELAY_OPTIONS: Checks<RelayOptions> = {
  log: optional(logger),
  clock: optional(callback),
  seams: optional(seamsCheck),
  onDelivery: optional(callback),
}
/** Words for the options of the library's functions. */
export const OPTION_WORDS: Words = {
  kind: 'usage',
  whole: 'The options',
  unknown: 'there is no option',
  member: 'the option',
}
/** Error of a call that comes too late. */
export const STOPPED = 'The relay was stopped'

/** A fetch-style application, in types that need no framework's declarations. */
export interface FetchApp {
  readonly fetch: (request: Request) => Promise<Response>
  readonly routes: readonly { readonly method: string; readonly path: string }[]
}

/** A relay that handles requests through `app.fetch`, but does not listen. */
export interface Relay extends AsyncDisposable {
  /** Handles requests as the listening service does, except those that need a connection. `routes` lists its routes. */
  readonly app: FetchApp
  /** The deliveries, read-only: an entry comes only from a verified request. */
  readonly journal: JournalQueries
}

/**
 * Makes a relay that does not listen and forwards nothing: its deliveries have no targets. It owns the profile until it
 * is disposed of. Sign-ins and pages use `settings.publicUrl`, the address at which the program that calls `app.fetch`
 * is reached. Default: `http://<host>:<port>` of the settings.
 * @throws RelayError `unavailable` if another relay has the profile, `storage` if its data cannot be opened, `settings`
 * for an invalid setting, `usage` for an invalid option
 */
export async function createRelay(settings: Settings, options: RelayOptions = {}): Promise<Relay> {
  checkSettings(settings)
  checkMembers(options, RELAY_OPTIONS, OPTION_WORDS)
  return inOwnWords(() => openRelay(settings, options))
}

async function openRelay(settings: Settings, options: RelayOptions): Promise<Relay> {
  const {
    log = silentLog,
    seams,
    onDelivery,
    clock = seams?.clock ?? systemClock,
  } = isolateCallbacks(options)
  await using opened = new Disposal()
  const taken = await acquireProfile(settings, 'folder')
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
  const address = `http://${host}:${port}`
  const app = createApp({
    ...servicePartsOf(core, address, signInAt(core, address)),
    ready: () => Promise.resolve(),
    instance: undefined,
    inspector: undefined,
    metrics: undefined,
  })
  isMade = true
  const owner = opened.move()
  const gate = new StopGate(STOPPED, async () => owner[Symbol.asyncDispose]())
  return new RelayView(app, journalOf(database.sql, clock, gate), gate)
}

/** The part of Hono's application that {@link FetchApp} shows. */
type ServedApp = Pick<FetchApp, 'routes'> & {
  readonly fetch: (request: Request) => Response | Promise<Response>
}

const isRequest = must("a Request; for one of Node's server, use handler", (value) => {
  const { url, method, headers } = fieldsOf(value)
  // Those of Node's server are an object.
  return (
    typeof url === 'string' && typeof method === 'string' && typeof fieldsOf(headers)['get'] === 'function'
  )
})

/** @throws RelayError `usage` for what is no `Request`, from whichever realm or package */
export function checkRequest(value: unknown): void {
  checkArgument('fetch: the request', value, isRequest)
}

/** Makes the journal that a program gets. While its relay stops, it can still be read. */
export function journalOf(sql: Pick<Sql, 'query'>, clock: Clock, gate: StopGate): JournalQueries {
  const query: Sql['query'] = async (text, values) => {
    try {
      return await sql.query(text, values)
    } catch (error) {
      if (error instanceof RelayError && error.kind === 'storage') gate.check()
      throw error
    }
  }
  return new JournalQueries({ query }, clock)
}

/** The public part of a relay, enforced at run time. */
export class RelayView implements Relay {
  readonly app: FetchApp
  readonly journal: JournalQueries
  readonly #gate: StopGate

  /** @param gate stops everything that the relay opened */
  constructor(app: ServedApp, journal: JournalQueries, gate: StopGate) {
    this.app = {
      fetch: async (request) => {
        checkRequest(request)
        try {
          gate.check()
        } catch (error) {
          return errorResponse(error, silentLog)
        }
        return app.fetch(request)
      },
      get routes() {
        return app.routes
      },
    }
    this.journal = journal
    this.#gate = gate
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gate.stop()
  }
}
