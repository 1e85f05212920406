import { type Command, hubCommands } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { Disposal } from '../base/lifetime.js'
import { type Log, silentLog } from '../base/log.js'
import { TIME_LIMITS, type Seams } from '../base/seams.js'
import type { Settings } from '../base/settings.js'
import { systemClock } from '../base/time.js'
import { hostCheck } from '../http/host-check.js'
import { type Certificate, listen, type Listener } from '../http/listen.js'
import { namesElsewhere, ownHostCheck } from '../http/reached.js'
import { errorResponse } from '../http/router.js'
import { createHubApp } from '../hub/app.js'
import { Hub } from '../hub/hub.js'
import type { HubMetrics } from '../metrics/hub-metrics.js'
import { lockProfile } from '../instance/profile.js'
import { Journal } from '../journal/journal.js'
import { type Database, openDatabase } from '../store/open.js'
import { Duties, type TurnWork } from './duties.js'
import { markHub, saveHubPlace } from './hub-profile.js'
import { startMaintenance } from './maintenance.js'
import { Readiness } from './readiness.js'

/** Settings of a hub. */
export interface HubSettings extends Pick<
  Settings,
  | 'profile'
  | 'folder'
  | 'store'
  | 'host'
  | 'port'
  | 'allowedHosts'
  | 'publicUrl'
  | 'metrics'
  | 'inspectHosts'
  | 'maxBody'
  | 'keep'
  | 'keepMax'
> {
  /** Serves HTTPS with it. Default: HTTP, for a proxy in front. */
  readonly certificate?: Certificate | undefined
}

export interface HubOptions {
  readonly log?: Log | undefined
  readonly seams?: Seams | undefined
}

/** A hub that runs. Disposing of it lets requests in flight finish, then releases port and profile. */
export interface StartedHub extends AsyncDisposable, Pick<Listener, 'url' | 'useCertificate'> {
  readonly hub: Hub
}

/**
 * Starts a hub: listens, takes the profile, opens its data.
 * @throws RelayError `unavailable` if the port is in use or the profile is being served, `storage` if its data cannot be
 * opened, `settings` for a profile of `relay serve`, or a certificate that cannot be used
 */
export async function startHub(settings: HubSettings, options: HubOptions = {}): Promise<StartedHub> {
  await using closing = new Disposal()
  const { log = silentLog, seams = {} } = options
  const { clock = systemClock } = seams
  const { host, port, maxBody, certificate } = settings
  const { stop: grace, ...limits } = { ...TIME_LIMITS, ...seams.limits }
  const readiness = new Readiness(log)
  const stopping = new AbortController()
  // Listens first, as relay serve does. Requests wait until the data is open.
  const listening = { host, port, log, maxBody, certificate, limits: { ...limits, grace } }
  const listener = await listen(readiness.fetch, listening)
  const closeListener = async (): Promise<void> => {
    readiness.open(() => errorResponse(new RelayError('unavailable', 'The hub is stopping'), silentLog))
    stopping.abort()
    await listener.close()
  }
  const metrics = settings.metrics ? await createMetrics() : undefined
  const { hub, database } = await openHub(closing, settings, { ...options, metrics }).catch(
    async (error: unknown) => {
      await closeListener()
      throw error
    },
  )
  closing.defer(closeListener)
  const { url } = listener
  await saveHubPlace(database, settings.publicUrl ?? url)
  const { allowedHosts, inspectHosts = [] } = settings
  const ready = (): Promise<void> => readiness.check({ watched: true })
  const ownParts = { hub, ready, log, clock, hostAllowed: ownHostCheck(settings) }
  const app = createHubApp({
    hub,
    log,
    hostAllowed: hostCheck({
      host,
      allowed: [...namesElsewhere({ ...settings, allowedHosts }), ...inspectHosts],
    }),
    ready,
    metrics: metrics?.serve(ownParts),
    stopped: stopping.signal,
  })
  readiness.open(app.fetch)
  readiness.start(hub.journal)
  closing.defer(() => readiness.stop())
  const owner = closing.move()
  return {
    hub,
    url,
    useCertificate: (next) => listener.useCertificate(next),
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
}

/** Loaded only where they are on, as prom-client is with them. */
async function createMetrics(): Promise<HubMetrics> {
  return (await import('../metrics/hub-metrics.js')).createHubMetrics()
}

/** Takes the profile and opens its data. `closing` gets what must be closed, in order. */
async function openHub(
  closing: Disposal,
  { folder, store: kind, profile, maxBody, keep, keepMax }: HubSettings,
  { log = silentLog, seams = {}, metrics }: HubOptions & { readonly metrics: HubMetrics | undefined },
): Promise<{ readonly hub: Hub; readonly database: Database }> {
  const { clock = systemClock } = seams
  const command = hubCommands(profile)
  if (kind === 'file' || kind === 'keychain') {
    const lock = await lockProfile(folder, () => 'another process')
    closing.defer(async () => lock[Symbol.dispose]())
  }
  const onSlow = (text: string): void => log.info(text)
  const database = closing.use(
    await openDatabase({
      kind,
      folder,
      clock,
      fault: seams.storage,
      onSlow,
      migrate: true,
      startCommand: command('hub'),
    }),
  )
  await markHub(database, { profile, folder, store: typeof kind === 'string' ? kind : kind.toString() })
  const journal = new Journal(database.sql, { clock, observer: metrics?.observer })
  const hub = new Hub({ database, journal, clock, maxBody, onTaken: metrics?.onTaken })
  const duties = new Duties({
    begin: () => sweeping(database, journal, { keep, keepMax, log, command, interval: seams.limits?.sweep }),
    // Only hubs share a profile with a hub.
    routes: 'hub',
    onNotice: () => void hub.look(),
    onTurn: () => {},
    log,
  })
  closing.use(duties)
  if (database.shared) await duties.join(database.shared)
  await duties.run()
  database.removeCopies()
  return { hub, database }
}

/** Work that one of several hubs does: removes what was fetched, and expired records. */
function sweeping(
  database: Database,
  journal: Journal,
  {
    keep,
    keepMax,
    log,
    command,
    interval,
  }: Pick<HubSettings, 'keep' | 'keepMax'> & {
    readonly log: Log
    readonly command: Command
    readonly interval: number | undefined
  },
): TurnWork {
  let maintenance: AsyncDisposable | undefined
  return {
    async start() {
      const warning = (waiting: number): string =>
        `the hub is larger than --keep-max: ${waiting} requests wait for their workstations, and are not removed. ${command('hub list')} shows whose. Once the disk is nearly full, senders get 503`
      maintenance = startMaintenance({
        database,
        journal,
        // A request can hold a token, and nobody may post another one.
        retention: { keep, keepMax, emptiesNewest: true },
        log,
        warning,
        ...(interval !== undefined && { interval }),
      })
    },
    async [Symbol.asyncDispose]() {
      await maintenance?.[Symbol.asyncDispose]()
    },
  }
}
