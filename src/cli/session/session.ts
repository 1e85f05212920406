import { renew } from '../../auth/renew.js'
import type { Cancellable } from '../../base/abort.js'
import { Disposal } from '../../base/disposal.js'
import { silentLog } from '../../base/log.js'
import { LIMITS, type Limits } from '../../base/seams.js'
import type { OAuthClient, Settings } from '../../base/settings.js'
import type { CodeHost } from '../../codehost/host.js'
import { openHost } from '../../codehost/hosts.js'
import { Journal } from '../../journal/journal.js'
import { createClient, type RelayClient } from '../../client/client.js'
import type { RunningInstance } from '../../instance/running.js'
import { createLoopbackClient } from '../../net/loopback.js'
import { findSandboxClient } from '../../sandbox/client.js'
import type { Store } from '../../store/kv.js'
import type { Sql } from '../../store/sql.js'
import type { Database } from '../../store/open.js'
import { mayHaveData, openDatabase } from '../../store/open.js'
import { type TokenOwner, Tokens } from '../../tokens/tokens.js'
import type { Context } from '../context.js'
import type { CommonFlags } from '../settings/prepare.js'
import { readWebhookSecret, unusedWebhookSecret } from '../settings/webhook-secret.js'
import { attach, type Attached, type AttachOptions, notRunning } from './attach.js'
import { ownerThrough } from './owner.js'
import { IN_PROCESS, sendInProcess } from './in-process.js'
import { onlyInMemory } from './instance-settings.js'
import type { Output } from '../output/output.js'
import { completeSettings, profileFolder, storeOf } from '../settings/complete.js'
import type { OptionValues } from '../settings/options.js'
import { readStoredClient, withStoredClient } from '../settings/stored.js'
import { type OnTaken, publish, remember } from './publish.js'
import { readUser } from './user.js'

/**
 * What a command that acts for a user needs: the profile's data, its provider, and the service, which is the running instance
 * or, if there is none, the same application in this process.
 */
export interface Session extends AsyncDisposable {
  readonly output: Output
  /** With the provider and address of the running instance, if there is one. */
  readonly settings: Settings
  readonly host: CodeHost
  readonly limits: Limits
  readonly store: Store
  /** For tokens and other secrets. */
  readonly secrets: Store
  /** The database with the profile's journal; one in memory where the profile has no data. */
  readonly sql: Sql
  /** What the settings are made of. */
  readonly options: OptionValues
  readonly tokens: Tokens
  /** The profile's deliveries; none if it has no data yet. */
  readonly journal: Journal
  /** The running instance, which has proved itself. */
  readonly instance: RunningInstance | undefined
  /** Registers a service that the command itself starts, and has the profile remember it. */
  readonly onTaken: OnTaken
  /** Has the profile remember its store and code host, as a service does that runs. */
  remember(): void
  /** `--user`, RELAY_USER, or the name on this machine. */
  readonly user: string
  /** The OAuth application: that of the settings, or the one a sandbox instance of this profile made. */
  readonly client: OAuthClient | undefined
  /**
   * The user's token. An expired token, or one about to expire, is renewed: by the instance, if it has an OAuth client.
   * @throws RelayError as {@link renew}: `unauthenticated` names `relay login`.
   */
  owner(options?: Cancellable): Promise<TokenOwner>
  /** Calls to the service as that user. */
  api(owner: TokenOwner): RelayClient
}

/**
 * Finds the instance and opens its profile's data. Sends nothing to the code host. A profile without data is not made.
 * @throws RelayError as {@link attach}; `settings` when settings are missing, or the data is in the instance's memory; `usage` for
 * the user's name; `unavailable` when the profile is a sandbox's that does not run; `storage`.
 */
export async function openSession(
  context: Context,
  flags: CommonFlags,
  attachOptions: Pick<AttachOptions, 'mayCreate'> = {},
): Promise<Session> {
  await using closing = new Disposal()
  const loopback = createLoopbackClient()
  closing.defer(async () => loopback[Symbol.dispose]())
  const { send } = loopback
  const attached = await attach(context, flags, { ...attachOptions, send })
  const { output, options, instance, saved } = attached
  const { log } = output
  const user = readUser(options)
  checkData(attached)
  const { mayCreate } = attachOptions
  const signsIn = mayCreate === 'with client' && !instance
  const creates = (signsIn && hasClient(options)) || (mayCreate === 'always' && !instance)
  const data = { store: storeOf(options), folder: profileFolder(options) }
  const database = closing.use(await openData(data, creates))
  const { store, secrets } = database
  const complete = await withClient(attached, secrets)
  const serves = signsIn && hasClient(complete)
  const settings = completeSettings(complete, serves ? readWebhookSecret : unusedWebhookSecret)
  const limits = { ...LIMITS, ...context.seams?.limits }
  const host = openHost({ name: settings.provider, url: settings.providerUrl, timeLimit: limits.codeHost })
  const tokens = new Tokens(secrets)
  const client = (await clientOfSandbox(attached, secrets)) ?? settings.oauthClient
  const resources = closing.move()
  return {
    output,
    settings,
    host,
    limits,
    store,
    secrets,
    sql: database.sql,
    options,
    tokens,
    journal: new Journal(database.sql),
    instance,
    onTaken: publish(attached),
    remember() {
      if (!instance) remember(attached, settings, saved?.sandbox ?? false)
    },
    user,
    client,
    owner: (options) =>
      instance?.clientId
        ? ownerThrough(instance, { host, tokens, user }, options)
        : renew({ host, client, store, tokens, tokenTtl: settings.tokenTtl, log }, user, options),
    api: ({ accessToken: bearer }) => {
      if (instance) return createClient({ url: instance.url, bearer, send })
      // The command itself reports what the service refuses.
      const parts = { database, log: flags.verbose ? log : silentLog, signal: context.signal }
      return createClient({ url: IN_PROCESS, bearer, send: sendInProcess(settings, parts) })
    },
    [Symbol.asyncDispose]: () => resources[Symbol.asyncDispose](),
  }
}

/** The client of the running instance's own sandbox, if it has one. */
async function clientOfSandbox({ instance }: Attached, secrets: Store): Promise<OAuthClient | undefined> {
  return instance?.provider === 'sandbox' ? findSandboxClient(secrets, instance.providerUrl) : undefined
}

function checkData({ options, origins, instance, saved }: Attached): void {
  if (instance?.store === 'memory') throw onlyInMemory(instance, 'its tokens')
  if (!instance && saved?.sandbox && !origins.provider) throw notRunning(options.profile)
}

async function withClient({ options, origins, instance }: Attached, store: Store): Promise<OptionValues> {
  // With an instance, its client counts.
  const stored = instance?.clientId ? undefined : await readStoredClient(store)
  return withStoredClient({ options, origins }, stored).options
}

function hasClient({ clientId, clientSecret }: OptionValues): boolean {
  return clientId !== undefined && clientSecret !== undefined
}

/** The profile's data. Where it has none and may not be made: an empty database in memory. */
async function openData(
  { store, folder }: Pick<Settings, 'store' | 'folder'>,
  creates: boolean,
): Promise<Database> {
  return openDatabase({
    kind: creates || mayHaveData(store, folder) ? store : 'memory',
    folder,
    create: creates,
  })
}
