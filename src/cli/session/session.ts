import type { Cancellable } from '../../base/abort.js'
import { Disposal } from '../../base/disposal.js'
import { RelayError } from '../../base/errors.js'
import { silentLog } from '../../base/log.js'
import type { OAuthClient, Settings } from '../../base/settings.js'
import { createClient, type RelayClient } from '../../client/client.js'
import { findInstance, type InstanceRecord } from '../../instance/instance.js'
import { createLoopbackClient } from '../../net/loopback-client.js'
import { renew } from '../../oauth/refresh.js'
import { createProvider } from '../../providers/open.js'
import type { Provider } from '../../providers/provider.js'
import { findSandboxClient } from '../../sandbox/client.js'
import type { Store } from '../../store/contract.js'
import { openDatabase } from '../../store/open.js'
import { createTokens, type TokenOwner, type Tokens } from '../../tokens/tokens.js'
import type { Context } from '../context.js'
import { type CommonFlags, prepare } from '../settings/prepare.js'
import { ownerThrough } from './owner.js'
import { IN_PROCESS, sendInProcess } from './in-process.js'
import { servedSettings } from './instance-settings.js'
import type { Output } from '../output/output.js'
import { completeSettings, profileFolder } from '../settings/complete.js'
import { readUser } from './user.js'

/**
 * What a command that acts for a user needs: the profile's data, its provider, and the service, which is the running instance
 * or, if there is none, the same application in this process.
 */
export interface Session extends AsyncDisposable {
  readonly output: Output
  /** With the provider and address of the running instance, if there is one. */
  readonly settings: Settings
  readonly provider: Provider
  readonly store: Store
  readonly tokens: Tokens
  /** The running instance, which has proved itself. */
  readonly instance: InstanceRecord | undefined
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
 * Opens the profile's data and finds its instance. Sends nothing to the code host.
 * @throws RelayError `settings` when settings are missing, or a flag or variable contradicts the instance; `usage` for the
 * user's name; `unavailable` when the sandbox's own profile has no instance; `storage`.
 */
export async function openSession(context: Context, flags: CommonFlags): Promise<Session> {
  const prepared = prepare(context, flags)
  const { output, options, origins } = prepared
  const user = readUser(options)
  await using closing = new Disposal()
  const { log } = output
  const database = closing.use(await openDatabase({ kind: options.store, folder: profileFolder(options) }))
  const { store } = database
  const loopback = createLoopbackClient()
  closing.defer(async () => loopback[Symbol.dispose]())
  const { send } = loopback
  const instance = await findInstance(store, { signal: context.signal, send })
  if (!instance && options.profile === 'sandbox' && !origins.provider)
    throw new RelayError('unavailable', 'The sandbox is not running. Start it with relay serve --sandbox')
  const settings = completeSettings(instance ? servedSettings(instance, prepared) : options)
  const provider = createProvider({ name: settings.provider, url: settings.providerUrl })
  const tokens = createTokens(store)
  const client = (instance && (await findSandboxClient(store, instance.providerUrl))) ?? settings.oauthClient
  const resources = closing.move()
  return {
    output,
    settings,
    provider,
    store,
    tokens,
    instance,
    user,
    client,
    owner: (options) =>
      instance?.clientId
        ? ownerThrough(instance, { provider, tokens, user, send }, options)
        : renew({ provider, client, store, tokens, tokenTtl: settings.tokenTtl, log }, user, options),
    api: ({ accessToken: bearer }) => {
      if (instance) return createClient({ url: instance.url, bearer, send })
      // The command itself reports what the service refuses.
      const parts = { database, log: flags.verbose ? log : silentLog, signal: context.signal }
      return createClient({ url: IN_PROCESS, bearer, send: sendInProcess(settings, parts) })
    },
    [Symbol.asyncDispose]: () => resources[Symbol.asyncDispose](),
  }
}
