import type { Cancellable } from '../base/abort.js'
import { Asker } from '../base/ask.js'
import { Disposal } from '../base/disposal.js'
import { RelayError } from '../base/errors.js'
import { silentLog } from '../base/log.js'
import type { OAuthClient, Settings } from '../base/settings.js'
import { createClient, type RelayClient } from '../client/client.js'
import { findInstance, type InstanceRow } from '../instance/instance.js'
import { renew } from '../oauth/refresh.js'
import { createProvider } from '../providers/open.js'
import type { Provider } from '../providers/provider.js'
import { findSandboxClient } from '../sandbox/client.js'
import type { Store } from '../store/contract.js'
import { openDatabase } from '../store/open.js'
import { createTokens, type Holder, type Tokens } from '../tokens/tokens.js'
import type { Context } from './context.js'
import { prepare, type RawOptions } from './globals.js'
import { IN_PROCESS, askInProcess } from './in-process.js'
import { servedSettings } from './instance-settings.js'
import type { Output } from './output.js'
import { completeSettings, profileFolder } from './settings.js'
import { readUser } from './user.js'

export type SessionFlags = RawOptions

/**
 * What a command that acts for a user works with: the profile's data, its provider, and the service, which is the
 * running instance or the same application in this process.
 */
export interface Session extends AsyncDisposable {
  readonly output: Output
  /** Provider and its address are the instance's when one runs. */
  readonly settings: Settings
  readonly provider: Provider
  readonly store: Store
  readonly tokens: Tokens
  /** Has proved itself in this command. */
  readonly instance: InstanceRow | undefined
  /** `--user`, RELAY_USER, or the name on this machine. */
  readonly user: string
  /** The OAuth application: that of the settings, or the one a sandbox instance of this profile made. */
  readonly client: OAuthClient | undefined
  /**
   * The user's token, renewed when it has ended or is about to.
   * @throws RelayError as {@link renew}: `unauthenticated` names `relay login`.
   */
  holder(options?: Cancellable): Promise<Holder>
  /** Calls to the service as that user. */
  api(holder: Holder): RelayClient
}

/**
 * Opens the profile's data and finds its instance. Nothing is sent to the code host. This file brings most of relay with
 * it, so commands load it by `import()` when they run.
 * @throws RelayError `settings` when settings are missing or a flag contradicts the instance, `usage` for the user's name,
 * `unavailable` when the sandbox's own profile has no instance, `storage`.
 */
export async function openSession(context: Context, flags: SessionFlags): Promise<Session> {
  const { output, options } = prepare(context, flags)
  const user = readUser(options)
  await using closing = new Disposal()
  const { log } = output
  const database = closing.use(
    await openDatabase({ kind: options.store ?? 'file', folder: profileFolder(options), log }),
  )
  const { store } = database
  const asker = new Asker()
  closing.defer(async () => asker.leave())
  const { ask } = asker
  const instance = await findInstance(store, { signal: context.signal, ask })
  if (!instance && options.profile === 'sandbox' && options.provider === undefined)
    throw new RelayError('unavailable', 'The sandbox does not run: start it with relay serve --sandbox')
  const settings = completeSettings(instance ? servedSettings(instance, flags, options) : options)
  const provider = createProvider({ name: settings.provider, url: settings.providerUrl })
  const tokens = createTokens(store)
  const client = (instance && (await findSandboxClient(store, instance.providerUrl))) ?? settings.oauthClient
  // What the service refuses is told once, by the command.
  const quiet = flags.verbose ? log : silentLog
  const inProcess = askInProcess(settings, { database, log: quiet, signal: context.signal })
  const owner = closing.move()
  return {
    output,
    settings,
    provider,
    store,
    tokens,
    instance,
    user,
    client,
    holder: (options) =>
      renew({ provider, client, store, tokens, tokenTtl: settings.tokenTtl, log }, user, options),
    api: ({ accessToken: bearer }) =>
      instance
        ? createClient({ url: instance.url, bearer, ask })
        : createClient({ url: IN_PROCESS, bearer, ask: inProcess }),
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
}
