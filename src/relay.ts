import type { Hono } from 'hono'
import { type AccountChange, logAccounts } from './auth/accounts.js'
import { renewToken } from './auth/renew.js'
import type { SignInParts } from './auth/sign-in.js'
import { SignInLimiter } from './auth/starts.js'
import { type Command, commandsOf, type CommandPlace } from './base/command-line.js'
import { isolateCallbacks } from './base/callbacks.js'
import { type Cancellable, createCached } from './base/wait.js'
import { Disposal } from './base/lifetime.js'
import { createLogThrottle, silentLog, type Log } from './base/log.js'
import { systemClock, type Clock } from './base/time.js'
import { TIME_LIMITS, type Limits, type Seams } from './base/seams.js'
import type { Settings } from './base/settings.js'
import type { CodeHost } from './codehost/host.js'
import { openHost } from './codehost/hosts.js'
import { liveRoutes, Routing } from './dispatch/routes.js'
import type { HttpEnv } from './http/body.js'
import { type HostCheck, hostCheck } from './http/router.js'
import type { Delivery, Plan, Receipt } from './journal/types.js'
import type { Inspector } from './inspector/inspector.js'
import type { Running } from './inspector/parts.js'
import type { Change } from './inspector/live.js'
import { Journal } from './journal/journal.js'
import { JournalQueries } from './journal/read.js'
import { takeProfile } from './instance/running.js'
import type { SendOnce } from './net/client.js'
import type { InstanceStatus, Topic } from './instance/protocol.js'
import { createApp } from './server/app.js'
import { ChangeStreams } from './server/changes.js'
import type { ReadyCheck } from './server/parts.js'
import { type Database, openDatabase } from './store/open.js'
import { type TokenOwner, Tokens } from './tokens/tokens.js'
import { createIntake, type Intake } from './webhook/intake.js'
import { Refusals } from './webhook/refusals.js'
import { type Source, createSource, type Sources } from './webhook/signature.js'

export interface RelayOptions {
  readonly log?: Log
  readonly clock?: Clock
  /** What a test replaces. Default: nothing. */
  readonly seams?: Seams | undefined
  /** Called for each delivery once it is in the journal, before its sender gets the answer. */
  readonly onDelivery?: (delivery: Delivery, receipt: Receipt) => void
}

/** @internal What the running instance gives besides. */
export interface PartOptions extends RelayOptions {
  /** Called for each sign-in and revocation over HTTP. */
  readonly onAccount?: ((change: AccountChange) => void) | undefined
  /** Proves to a caller that this is the instance of its profile; nothing where no instance runs. */
  readonly prove?: (challenge: string) => string | undefined
  /** What the running instance says of itself to other commands. */
  readonly status?: () => InstanceStatus
  /** Rejects while the instance cannot take deliveries. Default: it always can. */
  readonly ready?: ReadyCheck
  /** The profile's data, where the caller has it open; it then also closes it. */
  readonly database?: Database
  /** What the running instance shows of itself; without it nothing is forwarded, and there is no inspector. */
  readonly running?: Running
  /** What the commands that it names have to be written for. Default: the profile, wherever no other runs. */
  readonly place?: CommandPlace
  /** How the code host is called for the actions. Default: over the network. */
  readonly sendOnce?: SendOnce
}

/** A relay that is put together and answers requests through `app.fetch`, but does not listen. */
export interface Relay extends AsyncDisposable {
  /** Answers requests as the listening service does, but for what needs a connection; `routes` lists what it answers. */
  readonly app: Pick<Hono<HttpEnv>, 'fetch' | 'request' | 'routes'>
  /** The deliveries. It only reads: an entry comes from a request that was verified, and from nothing else. */
  readonly journal: JournalQueries
  /** The address it is reached at unless the settings name one; `serve` says once it listens. */
  address: string
}

/** @internal The parts of a relay, for those that run it. */
export interface RelayParts extends Pick<Relay, 'app' | 'address'>, AsyncDisposable {
  readonly limits: Limits
  readonly database: Database
  readonly journal: Journal
  readonly clock: Clock
  /** Which deliveries go where; may be replaced while it runs. */
  readonly routing: Routing
  readonly tokens: Tokens
  /** The code host, and every other source of deliveries, by name. */
  readonly sources: Sources
  /** Where deliveries come in that do not come over HTTP. */
  readonly intake: Intake
  readonly refusals: Refusals
  readonly host: CodeHost
  /** The user's token, renewed if it has to be. @throws RelayError as `renewToken` */
  readonly owner: (userId: string, options?: Cancellable) => Promise<TokenOwner>
  /** Has open inspectors show what has changed. Does nothing until one was opened. */
  readonly changed: (change: Change) => void
  /** Completes the commands that it names. */
  readonly command: Command
  /** Loads the inspector; undefined where there is none. */
  readonly inspector: (() => Promise<Inspector>) | undefined
  /** Ends the streams of open inspectors, which otherwise stay open as long as their pages. */
  closeInspector(): void
}

/**
 * Makes a relay that does not listen, and forwards nothing: its deliveries have no targets. It has the profile until it is disposed of.
 * @throws RelayError `unavailable` when another relay has the profile, `storage` when its data cannot be opened, `settings` for a provider
 * address that is neither https nor loopback.
 */
export async function createRelay(settings: Settings, options: RelayOptions = {}): Promise<Relay> {
  const { log, clock, seams, onDelivery } = options
  await using opened = new Disposal()
  const taken = await takeProfile(settings)
  opened.defer(async () => taken?.[Symbol.dispose]())
  let isMade = false
  opened.defer(async () => {
    if (!isMade) await taken?.discard()
  })
  const given = { ...(log && { log }), ...(clock && { clock }), seams, ...(onDelivery && { onDelivery }) }
  const parts = opened.use(await joinParts(settings, isolateCallbacks(given)))
  isMade = true
  const owner = opened.move()
  return viewOf(parts, owner)
}

/** @internal What a program may use of a relay, also at run time. Disposing of it disposes of `owner`. */
export function viewOf(parts: RelayParts, owner: AsyncDisposable): Relay {
  const { app, database, clock } = parts
  return {
    app,
    journal: new JournalQueries(database.sql, clock),
    get address() {
      return parts.address
    },
    set address(address) {
      parts.address = address
    },
    [Symbol.asyncDispose]: async () => owner[Symbol.asyncDispose](),
  }
}

/**
 * @internal Puts the parts together; how they are joined is read here and nowhere else.
 * @throws RelayError `storage` when the profile's data cannot be opened, `settings` for a provider address that is
 * neither https nor loopback.
 */
export async function joinParts(settings: Settings, options: PartOptions = {}): Promise<RelayParts> {
  const { log = silentLog, seams = {}, prove = () => undefined, sendOnce, running, onDelivery } = options
  const { clock = seams.clock ?? systemClock, ready = () => Promise.resolve() } = options
  const limits = { ...TIME_LIMITS, ...seams.limits }
  const { provider: name, providerUrl: url, hostRefusal: refusal } = settings
  const { store: kind, profile, folder, maxBody } = settings
  const host = openHost({ name, url, refusal, timeLimit: limits.codeHost, ...(sendOnce && { sendOnce }) })
  await using opened = new Disposal()
  const onSlow = (text: string): void => log.info(text)
  const data = { kind, folder, clock, fault: seams.storage, onSlow, migrate: true }
  const database = options.database ?? opened.use(await openDatabase(data))
  let live: Inspector | undefined
  const stop = new AbortController()
  const { changes, changed } = announcer(stop.signal, () => live)
  /** For what only this machine may see: loopback names, whatever else the service answers to. */
  const ownHosts = hostCheck({ host: 'localhost', allowed: settings.inspectHosts ?? [] })
  const publicUrl = (): string => settings.publicUrl ?? relay.address
  const { place = { profile, sandbox: running?.sandbox?.() === true, isNamed: false } } = options
  const command = commandsOf(place)
  const common: Common = { settings, host, database, log, clock, changed, running, ready, ownHosts, command }
  const { metrics, ...receiving } = await createReceiving(common, onDelivery)
  const signingIn = { ...common, onAccount: options.onAccount, onOutcome: () => changes.changed('sign-in') }
  const signIn = createSignIn(signingIn, publicUrl, limits.tokenEndpoint)
  const shared = { ...receiving, host, maxBody, tokens: signIn.tokens, clock, log, command }
  /** Loaded when it is first asked for: without one, relay starts as fast, and takes no more memory. */
  const loadInspector = async (parts: Running): Promise<Inspector> => {
    const { createInspector } = await import('./inspector/inspector.js')
    const onCodeUsed = (): void => changes.changed('inspector')
    const own = { place, url: () => relay.address, running: parts, hostAllowed: ownHosts, onCodeUsed }
    return (live = await createInspector({ ...shared, ...own, store: database.store, stopped: stop.signal }))
  }
  const inspector =
    running && settings.inspect !== false ? createCached(Infinity, () => loadInspector(running)) : undefined
  const app = createApp({
    ...shared,
    signIn,
    hostAllowed: hostCheck({ host: settings.host, allowed: allowedHosts(settings) }),
    baseUrl: () => settings.baseUrl ?? `${publicUrl()}/`,
    prove,
    ready,
    instance: options.status && { status: options.status, changes },
    inspector,
    metrics,
    routes: () => routesOf(receiving, running),
  })
  const owner = opened.move()
  const relay: RelayParts = {
    ...shared,
    limits,
    app,
    database,
    owner: (userId, cancellable) => renewToken(signIn, userId, cancellable),
    changed,
    inspector,
    closeInspector: () => stop.abort(),
    address: `http://${settings.host}:${settings.port}`,
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
  return relay
}

async function routesOf({ routing, journal }: Pick<RelayParts, 'routing' | 'journal'>, running?: Running) {
  return liveRoutes(routing, running?.targets() ?? [], await journal.counts())
}

/** What every part needs. */
interface Common extends Required<Pick<PartOptions, 'log' | 'clock' | 'ready'>> {
  readonly settings: Settings
  readonly host: CodeHost
  readonly database: Database
  readonly changed: (change: Change) => void
  readonly running: Running | undefined
  readonly ownHosts: HostCheck
  readonly command: Command
}

/** How deliveries come in, where they are stored, which targets each is for, and what is measured of that. */
async function createReceiving(common: Common, onDelivery: RelayOptions['onDelivery']) {
  const { settings, host, database, changed, running, ready, ownHosts, log, clock, command } = common
  const { webhookSecrets: secrets, maxBody, onDuplicate } = settings
  const routing = new Routing(settings.routes)
  const journal = new Journal(database.sql, { onChange: changed, observer: () => metrics?.observer, clock })
  const ofHost: Source = { name: host.name, schemeText: host.name, scheme: host.webhook, secrets }
  const all = [ofHost, ...(settings.sources ?? []).map(createSource)]
  const sources: Sources = new Map(all.map((source) => [source.name, source]))
  const onRefused = (): void => changed({ type: 'refused' })
  const refusals = new Refusals({ sources, maxBody, onRefused, log, clock, command })
  const plan = (delivery: Delivery): Plan => ({
    // Without an instance that sends, a forward would wait for ever.
    targets: running ? routing.targetsOf(delivery) : [],
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
  return { routing, journal, sources, intake, refusals, metrics }
}

/** How users sign in, and tokens are renewed. */
function createSignIn(
  common: Common & Pick<PartOptions, 'onAccount'> & Pick<SignInParts, 'onOutcome'>,
  publicUrl: () => string,
  timeLimit: number,
) {
  const { settings, host, database, log, clock, onOutcome, onAccount = logAccounts(log) } = common
  const { oauthClient: client, tokenTtl } = settings
  const { store, secrets } = database
  const tokens = new Tokens(secrets, clock)
  const redirectUri = (): string => `${publicUrl()}/auth/${host.name}/callback`
  const reports = { log, throttle: createLogThrottle(log), onAccount, onOutcome }
  const starts = new SignInLimiter()
  return { host, client, store, tokens, redirectUri, tokenTtl, clock, ...reports, starts, timeLimit }
}

/** Tells open inspectors, and the commands that follow, what has changed. */
function announcer(stopped: AbortSignal, live: () => Inspector | undefined) {
  const changes = new ChangeStreams(stopped)
  const changed = (change: Change): void => {
    live()?.changed(change)
    changes.changed(topicOf(change))
  }
  return { changes, changed }
}

/** What those that follow are to read again after a change. */
function topicOf({ type }: Change): Topic {
  return type === 'state' || type === 'refused' ? 'status' : 'journal'
}

function allowedHosts({ allowedHosts, inspectHosts = [], publicUrl }: Settings): readonly string[] {
  const names = [...allowedHosts, ...inspectHosts]
  return publicUrl === undefined ? names : [...names, new URL(publicUrl).hostname]
}
