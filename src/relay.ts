import { Disposal } from './base/disposal.js'
import { systemClock, type Clock } from './base/time.js'
import { silentLog, type Log } from './base/log.js'
import type { Settings } from './base/settings.js'
import type { TargetStatus } from './dispatch/dispatcher.js'
import { liveRoutes } from './dispatch/live-routes.js'
import { createRouting, type Routing } from './dispatch/routing.js'
import { hostCheck } from './http/host.js'
import type { Delivery, Receipt } from './journal/delivery.js'
import type { Journal } from './journal/journal.js'
import { type Guard, openJournal } from './journal/open.js'
import { createOAuth } from './oauth/oauth.js'
import { renew } from './oauth/refresh.js'
import { revokeEverywhere } from './oauth/revoke.js'
import type { SendOnce } from './net/send-once.js'
import { createProvider } from './providers/open.js'
import type { Provider } from './providers/provider.js'
import { createApp } from './server/app.js'
import type { Database } from './store/database.js'
import { openDatabase } from './store/open.js'
import { createTokens, type Tokens } from './tokens/tokens.js'
import { createIntake, type Intake } from './webhook/intake.js'
import { createRefusals, type Refusals } from './webhook/refusals.js'

export interface RelayOptions {
  readonly log?: Log
  readonly clock?: Clock
  /** Called for each delivery once it is in the journal. */
  readonly onDelivery?: (delivery: Delivery, receipt: Receipt) => void
  /** Proves to a caller that this is the instance of its profile; nothing where no instance runs. */
  readonly prove?: (challenge: string) => string | undefined
  /** The state of each target; none where nothing is forwarded. */
  readonly targets?: () => readonly TargetStatus[]
  /** Fails every write to the journal when the profile belongs to another process. Default: it is not shared. */
  readonly guard?: Guard
  /** The profile's data, where the caller has it open; it then also closes it. */
  readonly database?: Database
  /** Opens the profile's data in a thread of its own, so that waiting for the disk does not block this one. Default: false. */
  readonly thread?: boolean
  /** How the code host is called for the actions. Default: over the network. */
  readonly sendOnce?: SendOnce
}

/** A relay that is put together and answers requests through `app.fetch`, but does not listen. */
export interface Relay extends AsyncDisposable {
  readonly app: ReturnType<typeof createApp>
  readonly database: Database
  readonly journal: Journal
  /** Which deliveries go where; may be replaced while it runs. */
  readonly routing: Routing
  readonly tokens: Tokens
  /** Where deliveries come in that do not come over HTTP. */
  readonly intake: Intake
  readonly refusals: Refusals
  readonly provider: Pick<Provider, 'name' | 'webhook'>
  /** The address it is reached at unless the settings name one; `serve` says once it listens. */
  address: string
}

/**
 * Puts the parts together; how they are joined is read here and nowhere else.
 * @throws RelayError `storage` when the profile's data cannot be opened, `settings` for a provider address that is
 * neither https nor loopback.
 */
export async function createRelay(settings: Settings, options: RelayOptions = {}): Promise<Relay> {
  const { log = silentLog, clock = systemClock, onDelivery, prove = () => undefined, sendOnce } = options
  const { guard, thread = false, targets = () => [] } = options
  const provider = createProvider({
    name: settings.provider,
    url: settings.providerUrl,
    ...(sendOnce && { sendOnce }),
  })
  await using opened = new Disposal()
  const database =
    options.database ??
    opened.use(await openDatabase({ kind: settings.store, folder: settings.folder, clock, thread }))
  const { store } = database
  const routing = createRouting(settings.routes)
  const journal = openJournal(database.sql, {
    targetsOf: (delivery) => routing.targetsOf(delivery),
    onDuplicate: settings.onDuplicate,
    ...(guard && { guard }),
    clock,
    log,
  })
  const tokens = createTokens(store, clock)
  const publicUrl = (): string => settings.publicUrl ?? relay.address
  const oauth = createOAuth({
    provider,
    client: settings.oauthClient,
    store,
    tokens,
    redirectUri: () => `${publicUrl()}/auth/${provider.name}/callback`,
    tokenTtl: settings.tokenTtl,
    clock,
    log,
  })
  const { webhookSecrets: secrets, maxBody } = settings
  const refusals = createRefusals({ scheme: provider.webhook, secrets, maxBody, log, clock })
  const intake = createIntake({
    provider,
    secrets,
    journal,
    clock,
    ...(onDelivery && { onDelivery }),
  })
  const baseUrl = (): string => settings.baseUrl ?? `${publicUrl()}/`
  const { oauthClient: client, tokenTtl } = settings
  const renewal = { provider, client, store, tokens, tokenTtl, clock, log }
  const app = createApp({
    intake,
    refusals,
    maxBody,
    provider,
    hostAllowed: hostCheck({ host: settings.host, allowed: allowedHosts(settings) }),
    log,
    oauth,
    tokens,
    baseUrl,
    prove,
    routes: async () => liveRoutes(routing, targets(), await journal.counts()),
    renew: (userId) => renew(renewal, userId),
    revoke: (userId) => revokeEverywhere({ provider, client, tokens }, userId),
  })
  const relay: Relay = {
    app,
    database,
    journal,
    routing,
    tokens,
    intake,
    refusals,
    provider,
    address: `http://${settings.host}:${settings.port}`,
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
  const owner = opened.move()
  return relay
}

function allowedHosts({ allowedHosts, publicUrl }: Settings): readonly string[] {
  return publicUrl === undefined ? allowedHosts : [...allowedHosts, new URL(publicUrl).hostname]
}
