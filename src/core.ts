import type { RenewParts } from './auth/renew.js'
import type { SignInParts } from './auth/sign-in.js'
import { SignInLimiter } from './auth/starts.js'
import { type Command, type CommandPlace, commandsOf } from './base/command-line.js'
import { createLogThrottle, type Log } from './base/log.js'
import type { Limits } from './base/seams.js'
import type { LiveSettings, ReadSettings } from './base/settings.js'
import type { Clock } from './base/time.js'
import type { CodeHost } from './codehost/host.js'
import { openHost } from './codehost/hosts.js'
import { Routing } from './dispatch/routes.js'
import type { Events } from './events/events.js'
import { type HostCheck, hostCheck } from './http/router.js'
import { Journal } from './journal/journal.js'
import type { Delivery, Plan } from './journal/types.js'
import type { Metrics } from './metrics/metrics.js'
import type { SendOnce } from './net/client.js'
import type { ServiceParts } from './server/parts.js'
import type { Database } from './store/open.js'
import { Tokens } from './tokens/tokens.js'
import { createIntake, type Intake } from './webhook/intake.js'
import { Refusals } from './webhook/refusals.js'
import { type Source, createSource, SourceTable } from './webhook/signature.js'

/** What a relay is made of that needs no running process: whoever listens, and whether anybody does, it is the same. */
export interface Core {
  /** As they were at the start. {@link sources} and {@link routing} have what counts now. */
  readonly settings: ReadSettings
  readonly database: Database
  readonly limits: Limits
  readonly clock: Clock
  readonly log: Log
  /** Where all of it is announced. */
  readonly events: Events
  readonly journal: Journal
  /** Which deliveries go where; replaced while relay runs. */
  readonly routing: Routing
  /** The code host, and every other source of deliveries; replaced while relay runs. */
  readonly sources: SourceTable
  readonly host: CodeHost
  readonly tokens: Tokens
  /** Where all deliveries come in, over HTTP or not. */
  readonly intake: Intake
  readonly refusals: Refusals
  /** What the commands that it names have to be written for. */
  readonly place: CommandPlace
  /** Completes the commands that it names. */
  readonly command: Command
  /** Counts what the journal does; undefined where nothing is measured. */
  readonly metrics: Metrics | undefined
}

export interface CoreOptions extends Pick<
  Core,
  'database' | 'limits' | 'clock' | 'log' | 'events' | 'place'
> {
  /** Whether a process forwards what is stored: without one, a delivery has no targets, since a forward would wait for ever. */
  readonly forwards: boolean
  /** How the code host is called. Default: over the network. */
  readonly sendOnce?: SendOnce | undefined
}

/**
 * Makes the core of a relay from its settings and its data, which stays the caller's to close.
 * @throws RelayError `settings` for a provider address that is neither https nor loopback, or an invalid route
 */
export async function openCore(settings: ReadSettings, options: CoreOptions): Promise<Core> {
  const { database, limits, clock, log, events, place, forwards, sendOnce } = options
  const command = commandsOf(place)
  const { provider: name, providerUrl: url, hostRefusal: refusal, maxBody, onDuplicate } = settings
  const host = openHost({ name, url, refusal, timeLimit: limits.codeHost, ...(sendOnce && { sendOnce }) })
  const routing = new Routing(settings.routes)
  const sources = new SourceTable(sourcesOf(settings, host))
  // Loads prom-client, which nothing else needs.
  const measure = forwards && settings.metrics === true ? await import('./metrics/metrics.js') : undefined
  const metrics = measure?.createMetrics(() => routing.routes)
  const journal = new Journal(database.sql, { onChange: events.emit, observer: metrics?.observer, clock })
  const onRefused = (): void => events.emit({ type: 'refused' })
  const refusals = new Refusals({ sources, maxBody, onRefused, log, clock, command })
  const plan = (delivery: Delivery): Plan => ({
    targets: forwards ? routing.targetsOf(delivery) : [],
    ignoredBy: routing.ignoredBy(delivery),
    onDuplicate,
  })
  const intake = createIntake({
    journal,
    plan,
    clock,
    onDelivery: (delivery, receipt) => events.emit({ type: 'delivery', delivery, receipt }),
  })
  const tokens = new Tokens(database.secrets, clock)
  const shared = { settings, database, limits, clock, log, events, place, command }
  return { ...shared, journal, routing, sources, host, tokens, intake, refusals, metrics }
}

/** The code host, and the other sources that settings name. @throws RelayError `settings` for a scheme that is not valid */
export function sourcesOf(
  { webhookSecrets: secrets, sources = [] }: LiveSettings,
  { name, webhook: scheme }: Pick<CodeHost, 'name' | 'webhook'>,
): readonly Source[] {
  return [{ name, schemeText: name, scheme, secrets }, ...sources.map(createSource)]
}

/** How users sign in, and tokens are renewed. */
export type SignIn = SignInParts & RenewParts

/** The sign-in of a relay that is reached at this address, unless the settings name a public one. */
export function signInAt(core: Core, address: string): SignIn {
  const { settings, host, database, tokens, limits, events, log, clock } = core
  const { oauthClient: client, tokenTtl, publicUrl = address } = settings
  return {
    host,
    client,
    store: database.store,
    tokens,
    redirectUri: () => `${publicUrl}/auth/${host.name}/callback`,
    tokenTtl,
    clock,
    log,
    throttle: createLogThrottle(log),
    onAccount: (account) => events.emit({ type: 'account', account }),
    onOutcome: () => events.emit({ type: 'sign-in ended' }),
    starts: new SignInLimiter(),
    timeLimit: limits.tokenEndpoint,
  }
}

/** What every HTTP application of a relay is made of, whether or not an instance runs. */
export function servicePartsOf(core: Core, address: string, signIn: SignIn): ServiceParts {
  const { host, tokens, sources, intake, refusals, log, settings, command } = core
  const { maxBody, publicUrl = address, baseUrl: page = `${publicUrl}/` } = settings
  const baseUrl = (): string => page
  const hostAllowed = hostCheck({ host: settings.host, allowed: allowedHosts(settings) })
  return { host, tokens, sources, intake, refusals, log, command, maxBody, signIn, baseUrl, hostAllowed }
}

/** The check of the Host header for what only this machine may see: loopback names, whatever else the service answers to. */
export function ownHostCheck({ inspectHosts = [] }: Pick<ReadSettings, 'inspectHosts'>): HostCheck {
  return hostCheck({ host: 'localhost', allowed: inspectHosts })
}

function allowedHosts({ allowedHosts, inspectHosts = [], publicUrl }: ReadSettings): readonly string[] {
  const names = [...allowedHosts, ...inspectHosts]
  return publicUrl === undefined ? names : [...names, new URL(publicUrl).hostname]
}
