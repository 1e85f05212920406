import { Disposal } from './base/disposal.js'
import { systemClock, type Clock } from './base/time.js'
import { silentLog, type Log } from './base/log.js'
import type { Settings } from './base/settings.js'
import { createRouting, type Routing } from './dispatch/routing.js'
import { hostCheck } from './http/host.js'
import type { Delivery, Receipt } from './journal/delivery.js'
import type { Journal } from './journal/journal.js'
import { openJournal } from './journal/open.js'
import { createOAuth } from './oauth/oauth.js'
import type { SendOnce } from './providers/fetch.js'
import { createProvider } from './providers/open.js'
import type { Provider } from './providers/provider.js'
import type { DirectHandler } from './http/edge.js'
import { createApp } from './server/app.js'
import { actionListener } from './server/routes/actions.js'
import { webhookListener } from './server/routes/webhook.js'
import type { Database } from './store/database.js'
import { openDatabase } from './store/open.js'
import { createTokens, type Tokens } from './tokens/tokens.js'
import { createIntake, type Intake } from './webhook/intake.js'
import { createRefusals } from './webhook/refusals.js'

export interface RelayOptions {
  readonly log?: Log
  readonly clock?: Clock
  /** Called for each delivery once it is in the journal. */
  readonly onDelivery?: (delivery: Delivery, receipt: Receipt) => void
  /** Proves to a caller that this is the instance of its profile; nothing where no instance runs. */
  readonly prove?: (challenge: string) => string | undefined
  /** The profile's data, where the caller has it open; it then also closes it. */
  readonly database?: Database
  /** How the code host is called for the actions. Default: over the network. */
  readonly fetch?: SendOnce
}

/** A relay that is put together and answers requests through `app.fetch`, but does not listen. */
export interface Relay extends AsyncDisposable {
  readonly app: ReturnType<typeof createApp>
  /** Asked before the application by who listens: takes deliveries and actions the short way. */
  readonly direct: DirectHandler
  readonly database: Database
  readonly journal: Journal
  /** Which deliveries go where; may be replaced while it runs. */
  readonly routing: Routing
  readonly tokens: Tokens
  /** Where deliveries come in that do not come over HTTP. */
  readonly intake: Intake
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
  const { log = silentLog, clock = systemClock, onDelivery, prove = () => undefined, fetch } = options
  const provider = createProvider({
    name: settings.provider,
    url: settings.providerUrl,
    ...(fetch && { fetch }),
  })
  await using opened = new Disposal()
  const database =
    options.database ??
    opened.use(await openDatabase({ kind: settings.store, folder: settings.folder, clock, log }))
  const { store } = database
  const routing = createRouting(settings.handOn)
  const journal = openJournal(database, {
    targetsOf: (delivery) => routing.targetsOf(delivery),
    onDuplicate: settings.onDuplicate,
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
  const intake = createIntake({
    provider,
    secrets: settings.webhookSecrets,
    journal,
    clock,
    ...(onDelivery && { onDelivery }),
    onRefused: createRefusals({ scheme: provider.webhook, secrets: settings.webhookSecrets, log }),
  })
  const edge = {
    intake,
    maxBody: settings.maxBody,
    hostAllowed: hostCheck({ host: settings.host, allowed: allowedHosts(settings) }),
    log,
  }
  const baseUrl = (): string => settings.baseUrl ?? `${publicUrl()}/`
  const app = createApp({ ...edge, provider, oauth, tokens, baseUrl, prove })
  const listeners = [webhookListener(edge), actionListener({ ...edge, provider, tokens })]
  const relay: Relay = {
    app,
    direct: (incoming, outgoing, id) => listeners.some((answers) => answers(incoming, outgoing, id)),
    database,
    journal,
    routing,
    tokens,
    intake,
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
