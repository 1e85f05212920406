import type { Hono } from 'hono'
import { renew, type RenewParts } from './auth/renew.js'
import type { SignInParts } from './auth/sign-in.js'
import { type Cancellable, createCached } from './base/wait.js'
import { Disposal } from './base/lifetime.js'
import { createLogThrottle, silentLog, type Log } from './base/log.js'
import { systemClock, type Clock } from './base/time.js'
import { LIMITS, type Limits, type Seams } from './base/seams.js'
import type { Settings } from './base/settings.js'
import type { CodeHost } from './codehost/host.js'
import { openHost } from './codehost/hosts.js'
import { liveRoutes, Routing } from './dispatch/routes.js'
import type { HttpEnv } from './http/body.js'
import { hostCheck } from './http/router.js'
import type { Delivery, Plan, Receipt } from './journal/types.js'
import type { Inspector } from './inspector/inspector.js'
import type { Running } from './inspector/parts.js'
import type { Change } from './inspector/live.js'
import { Journal } from './journal/journal.js'
import type { SendOnce } from './net/client.js'
import { createApp, type ReadyCheck } from './server/app.js'
import { type Database, openDatabase } from './store/open.js'
import { type TokenOwner, Tokens } from './tokens/tokens.js'
import { createIntake, type Intake } from './webhook/intake.js'
import { Refusals } from './webhook/refusals.js'
import { type Source, sourceOf, type Sources } from './webhook/signature.js'

export interface RelayOptions {
  readonly log?: Log
  readonly clock?: Clock
  /** What a test replaces. Default: nothing. */
  readonly seams?: Seams | undefined
  /** Called for each delivery once it is in the journal. */
  readonly onDelivery?: (delivery: Delivery, receipt: Receipt) => void
  /** @internal Proves to a caller that this is the instance of its profile; nothing where no instance runs. */
  readonly prove?: (challenge: string) => string | undefined
  /** @internal Rejects while the instance cannot take deliveries. Default: it always can. */
  readonly ready?: ReadyCheck
  /** @internal The profile's data, where the caller has it open; it then also closes it. */
  readonly database?: Database
  /** @internal What the running instance shows of itself; without it nothing is forwarded, and there is no inspector. */
  readonly running?: Running
  /** @internal How the code host is called for the actions. Default: over the network. */
  readonly sendOnce?: SendOnce
}

/** A relay that is put together and answers requests through `app.fetch`, but does not listen. */
export interface Relay extends AsyncDisposable {
  /** @internal */
  readonly limits: Limits
  /** Answers requests as the listening service does, but for what needs a connection; `routes` lists what it answers. */
  readonly app: Pick<Hono<HttpEnv>, 'fetch' | 'request' | 'routes'>
  /** @internal */
  readonly database: Database
  readonly journal: Journal
  /** @internal Which deliveries go where; may be replaced while it runs. */
  readonly routing: Routing
  /** @internal */
  readonly tokens: Tokens
  /** @internal The code host, and every other source of deliveries, by name. */
  readonly sources: Sources
  /** @internal Where deliveries come in that do not come over HTTP. */
  readonly intake: Intake
  /** @internal */
  readonly refusals: Refusals
  /** @internal */
  readonly host: CodeHost
  /** @internal The user's token, renewed if it has to be. @throws RelayError as `renew` */
  readonly owner: (userId: string, options?: Cancellable) => Promise<TokenOwner>
  /** @internal Has open inspectors show what has changed. Does nothing until one was opened. */
  readonly changed: (change: Change) => void
  /** @internal Loads the inspector; undefined where there is none. */
  readonly inspector: (() => Promise<Inspector>) | undefined
  /** @internal Ends the streams of open inspectors, which otherwise stay open as long as their pages. */
  closeInspector(): void
  /** The address it is reached at unless the settings name one; `serve` says once it listens. */
  address: string
}

/**
 * Puts the parts together; how they are joined is read here and nowhere else.
 * @throws RelayError `storage` when the profile's data cannot be opened, `settings` for a provider address that is
 * neither https nor loopback.
 */
export async function createRelay(settings: Settings, options: RelayOptions = {}): Promise<Relay> {
  const { log = silentLog, seams = {}, prove = () => undefined, sendOnce, running, onDelivery } = options
  const { clock = seams.clock ?? systemClock, ready = () => Promise.resolve() } = options
  const limits = { ...LIMITS, ...seams.limits }
  const { provider: name, providerUrl: url, store: kind, profile, folder, maxBody, onDuplicate } = settings
  const host = openHost({ name, url, timeLimit: limits.codeHost, ...(sendOnce && { sendOnce }) })
  await using opened = new Disposal()
  const onSlow = (text: string): void => log.info(text)
  const data = { kind, folder, clock, fault: seams.storage, onSlow }
  const database = options.database ?? opened.use(await openDatabase(data))
  const { store, secrets } = database
  const hostAllowed = hostCheck({ host: settings.host, allowed: allowedHosts(settings) })
  /** For what only this machine may see: loopback names, whatever else the service answers to. */
  const ownHosts = hostCheck({ host: 'localhost', allowed: settings.inspectHosts ?? [] })

  // How deliveries come in, where they are stored, and which targets each is for.
  let live: Inspector | undefined
  const changed = (change: Change): void => live?.changed(change)
  const routing = new Routing(settings.routes)
  const journal = new Journal(database.sql, { onChange: changed, observer: () => metrics?.observer, clock })
  const ofHost: Source = { name, schemeText: name, scheme: host.webhook, secrets: settings.webhookSecrets }
  const all = [ofHost, ...(settings.sources ?? []).map(sourceOf)]
  const sources: Sources = new Map(all.map((source) => [source.name, source]))
  const onRefused = (): void => changed({ type: 'refused' })
  const refusals = new Refusals({ sources, maxBody, onRefused, log, clock })
  const plan = (delivery: Delivery): Plan => ({
    targets: routing.targetsOf(delivery),
    ignoredBy: routing.ignoredBy(delivery),
    onDuplicate,
  })
  const intake = createIntake({ sources, journal, plan, clock, onDelivery })
  // Loads prom-client, which nothing else needs.
  const measure = running && settings.metrics === true ? await import('./metrics/metrics.js') : undefined
  const metrics = measure?.createMetrics(journal, {
    routes: () => routing.routes,
    refused: () => refusals.list,
    tunnels: () => running?.tunnels() ?? [],
    ready,
    hostAllowed: ownHosts,
    clock,
    log,
  })

  // How users sign in, and tokens are renewed.
  const tokens = new Tokens(secrets, clock)
  const publicUrl = (): string => settings.publicUrl ?? relay.address
  const signIn: SignInParts & RenewParts = {
    host,
    client: settings.oauthClient,
    store,
    tokens,
    redirectUri: () => `${publicUrl()}/auth/${name}/callback`,
    tokenTtl: settings.tokenTtl,
    clock,
    log,
    throttle: createLogThrottle(log),
    timeLimit: limits.tokenEndpoint,
  }

  const stop = new AbortController()
  const shared = { host, sources, maxBody, routing, journal, intake, refusals, tokens, clock, log }
  /** Loaded when it is first asked for: without one, relay starts as fast, and takes no more memory. */
  const loadInspector = async (parts: Running): Promise<Inspector> => {
    const { createInspector } = await import('./inspector/inspector.js')
    const own = { profile, url: () => relay.address, store, running: parts, hostAllowed: ownHosts }
    return (live = await createInspector({ ...shared, ...own, stopped: stop.signal }))
  }
  const inspector =
    running && settings.inspect !== false ? createCached(Infinity, () => loadInspector(running)) : undefined
  const app = createApp({
    ...shared,
    signIn,
    hostAllowed,
    baseUrl: () => settings.baseUrl ?? `${publicUrl()}/`,
    prove,
    ready,
    inspector,
    metrics,
    routes: async () => liveRoutes(routing, running?.targets() ?? [], await journal.counts()),
  })
  const owner = opened.move()
  const relay: Relay = {
    ...shared,
    limits,
    app,
    database,
    owner: (userId, cancellable) => renew(signIn, userId, cancellable),
    changed,
    inspector,
    closeInspector: () => stop.abort(),
    address: `http://${settings.host}:${settings.port}`,
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
  return relay
}

function allowedHosts({ allowedHosts, inspectHosts = [], publicUrl }: Settings): readonly string[] {
  const names = [...allowedHosts, ...inspectHosts]
  return publicUrl === undefined ? names : [...names, new URL(publicUrl).hostname]
}
