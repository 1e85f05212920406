import type { AccountChange } from './auth/accounts.js'
import { createSignIn, type SignIn } from './auth/parts.js'
import { type Command, type CommandPlace, commandsOf } from './base/command-line.js'
import type { Log } from './base/log.js'
import type { Limits } from './base/seams.js'
import { pathOf } from './base/source-names.js'
import type { LiveSettings, ReadSettings } from './base/settings.js'
import { type Clock, monotonicClock } from './base/time.js'
import type { CodeHost } from './codehost/host.js'
import { openHost } from './codehost/hosts.js'
import { Routing } from './dispatch/routing.js'
import type { Events } from './events/events.js'
import { reachedAt } from './http/reached.js'
import { Journal } from './journal/journal.js'
import type { Delivery, Plan } from './journal/types.js'
import type { Metrics } from './metrics/metrics.js'
import type { SendOnce } from './net/client.js'
import type { ServiceParts } from './server/parts.js'
import type { Database } from './store/open.js'
import { Tokens } from './tokens/tokens.js'
import { ExpectedSecrets } from './webhook/expected-secrets.js'
import { createIntake, type Intake } from './webhook/intake.js'
import { type HandshakeEvent, Refusals } from './webhook/refusals.js'
import { type Source, createSource, SourceTable } from './senders/source.js'

/** The parts of a relay that need no running process. They are the same whether or not anything listens. */
export interface Core {
  /** Settings as they were at the start. {@link sources} and {@link routing} have the current ones. */
  readonly settings: ReadSettings
  readonly database: Database
  readonly limits: Limits
  readonly clock: Clock
  readonly log: Log
  /** Announces what happens in all parts. */
  readonly events: Events
  readonly journal: Journal
  /** Decides which deliveries go where. Replaced while relay runs. */
  readonly routing: Routing
  /** The code host and every other source of deliveries. Replaced while relay runs. */
  readonly sources: SourceTable
  readonly host: CodeHost
  readonly tokens: Tokens
  /** Entry of all deliveries, over HTTP or not. */
  readonly intake: Intake
  readonly refusals: Refusals
  /** Secrets that commands wait for. */
  readonly expected: ExpectedSecrets
  /** Profile and settings for the command lines in its messages. */
  readonly place: CommandPlace
  /** Completes the commands that its messages name. */
  readonly command: Command
  /** Metrics of the journal. Undefined if they are off. */
  readonly metrics: Metrics | undefined
}

export interface CoreOptions extends Pick<
  Core,
  'database' | 'limits' | 'clock' | 'log' | 'events' | 'place'
> {
  /**
   * True if a process forwards what is stored. If not, a delivery has no targets, since a forward would wait for ever.
   */
  readonly forwards: boolean
  /** Sends requests to the code host. Default: over the network. */
  readonly sendOnce?: SendOnce | undefined
}

/**
 * Makes the core of a relay from its settings and its database, which the caller closes.
 * @throws RelayError `settings` for a provider address that is neither https nor loopback, or an invalid route
 */
export async function openCore(settings: ReadSettings, options: CoreOptions): Promise<Core> {
  const { database, limits, clock, log, events, place, forwards, sendOnce } = options
  const command = commandsOf(place)
  const { provider: name, providerUrl: url, hostRefusal: refusal, maxBody, onDuplicate } = settings
  const host = await openHost({ name, url, refusal, limits, ...(sendOnce && { sendOnce }) })
  const routing = new Routing(settings.routes)
  const sources = new SourceTable(sourcesOf(settings, host))
  // Loaded only if needed, with prom-client.
  const measure = forwards && settings.metrics === true ? await import('./metrics/metrics.js') : undefined
  const metrics = measure?.createMetrics(() => routing.routes)
  const journal = new Journal(database.sql, { onChange: events.emit, observer: metrics?.observer, clock })
  const onRefused = (): void => events.emit({ type: 'refused' })
  const onHandshake = (handshake: HandshakeEvent): void => events.emit({ type: 'handshake', handshake })
  const refusals = new Refusals({ sources, maxBody, onRefused, onHandshake, log, clock, command })
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
  const expected = new ExpectedSecrets(monotonicClock)
  const shared = { settings, database, limits, clock, log, events, place, command }
  return { ...shared, journal, routing, sources, host, tokens, intake, refusals, expected, metrics }
}

/** Returns the code host and the other sources of the settings. @throws RelayError `settings` for an invalid scheme */
export function sourcesOf(
  { webhookSecrets: secrets, sources = [], publicUrl }: LiveSettings & Pick<ReadSettings, 'publicUrl'>,
  { source: name }: CodeHost,
): readonly Source[] {
  return [{ name, scheme: name, secrets }, ...sources].map((source) => createSource(source, publicUrl))
}

/** Makes the sign-in for a relay at this address, unless the settings have a public one. */
export function signInAt(core: Core, address: string): SignIn {
  const { settings, host, database, tokens, limits, events, log, clock } = core
  const { oauthClient: client, tokenTtl } = settings
  const parts = {
    host,
    client,
    store: database.store,
    tokens,
    tokenTtl,
    clock,
    log,
    onAccount: (account: AccountChange) => events.emit({ type: 'account', account }),
    onOutcome: () => events.emit({ type: 'sign-in ended' }),
    timeLimit: limits.tokenEndpoint,
  }
  return createSignIn(parts, reachedAt(settings, () => address).publicUrl)
}

/** Makes the parts of an HTTP application, whether or not an instance runs. */
export function servicePartsOf(core: Core, address: string, signIn: SignIn): ServiceParts {
  const { host, tokens, sources, intake, clock, refusals, expected, log, settings, command } = core
  const { maxBody } = settings
  const { publicUrl, baseUrl, hostAllowed } = reachedAt(settings, () => address)
  // The address of a channel lets read what it gets, and this page is for everybody.
  const payloadUrl = () =>
    settings.tunnel === undefined ? `${publicUrl()}${pathOf(host.source)}` : undefined
  const addressOf = (source: string) => `${publicUrl()}${pathOf(source)}`
  const parts = {
    host,
    tokens,
    sources,
    intake,
    clock,
    refusals,
    expected,
    log,
    command,
    maxBody,
    signIn,
    addressOf,
  }
  return { ...parts, payloadUrl, baseUrl, hostAllowed }
}
