import type { Command } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import type { OAuthClient, ProviderName } from '../base/settings.js'
import type { AppAccount, AppIdentity, AppOptions, CodeHost, Repo } from '../codehost/host.js'
import { checkReachable, sameAddress } from '../codehost/hooks.js'
import { isNotFound } from '../codehost/refusal.js'
import type { Store, StoreReader, StoreUpdater } from '../store/kv.js'
import type { Tx } from '../store/sql.js'

/** Result of `relay setup`, without secrets. Every command reads it, even while the keychain is locked. */
export type Setup = {
  readonly provider: ProviderName
  /**
   * Code host that knows the client. The client's secret is sent to no other, since a checkout's settings could name
   * one.
   */
  readonly providerUrl: string
  readonly clientId: string
  /** App that the client belongs to, if it is one. */
  readonly app?: { readonly id: number; readonly slug: string }
  /**
   * The App's webhook, if it is active: its last address set by relay, and the one before, which it still has if the
   * change was interrupted.
   */
  readonly hook?: { readonly url: string; readonly former: string }
}

/** Values that `relay setup` stores. */
export interface NewSetup extends Pick<Setup, 'provider' | 'providerUrl'> {
  readonly client: OAuthClient
  readonly app: AppIdentity | undefined
  /** Address of the App's webhook, if it is active. */
  readonly hookUrl: string | undefined
}

/** Key of the only record that is not encrypted in the store of secrets: see store/open.ts. */
const SETUP_KEY = 'setup'
const SECRETS_KEY = 'setup-secrets'

interface SetupSecrets {
  /** Client that the secrets belong to. They never apply to another one. */
  readonly clientId: string
  readonly clientSecret: string
  /** The App's private key, PEM. */
  readonly privateKey?: string
}

/** Reads the result of `relay setup`. Undefined if it has not run. @throws RelayError `storage` */
export function loadSetup(secrets: StoreReader): Promise<Setup | undefined> {
  return secrets.get<Setup>(SETUP_KEY)
}

/**
 * Reads the client with its secret. The keychain may ask the user to unlock it.
 * @throws RelayError `storage`, also if another `relay setup` has replaced the client meanwhile
 */
export async function readClient(
  secrets: StoreReader,
  { clientId: id }: { readonly clientId: string },
  command: Command,
): Promise<OAuthClient> {
  const { clientSecret } = await readSecrets(secrets, id, command)
  return { id, secret: new Secret(clientSecret) }
}

async function readSecrets(secrets: StoreReader, clientId: string, command: Command): Promise<SetupSecrets> {
  const found = await secrets.get<SetupSecrets>(SECRETS_KEY)
  if (found?.clientId === clientId) return found
  throw new RelayError(
    'storage',
    `The secret of the client ${clientId} is not stored. Run ${command('setup')} again`,
  )
}

/**
 * Stores a result that replaces `before`, the value of {@link loadSetup} when the user agreed.
 * @throws RelayError `conflict` if the stored result has changed since; `storage`
 */
export async function saveSetup(
  secrets: StoreUpdater,
  { provider, providerUrl, client, app, hookUrl: url }: NewSetup,
  before: { readonly providerUrl: string; readonly clientId: string } | undefined,
  command: Command,
): Promise<void> {
  const { id: clientId, secret } = client
  const setup: Setup = {
    provider,
    providerUrl,
    clientId,
    ...(app && { app: { id: app.id, slug: app.slug } }),
    ...(url !== undefined && { hook: { url, former: url } }),
  }
  const privateKey = app && { privateKey: app.privateKey.reveal() }
  const isSaved = await secrets.update(function* (records): Tx<boolean> {
    const current = yield* records.get<Setup>(SETUP_KEY)
    if (current?.clientId !== before?.clientId || current?.providerUrl !== before?.providerUrl) return false
    yield* records.put(SETUP_KEY, setup)
    yield* records.put(SECRETS_KEY, { clientId, clientSecret: secret.reveal(), ...privateKey })
    return true
  })
  if (isSaved) return
  throw new RelayError(
    'conflict',
    `Nothing was stored: another ${command('setup')} has stored a client meanwhile. Run it again to replace that`,
  )
}

/** Removes the result of `relay setup`. @throws RelayError `storage` */
export async function removeSetup(secrets: Store): Promise<void> {
  for (const key of [SETUP_KEY, SECRETS_KEY]) await secrets.delete(key)
}

export type OwnApp = NonNullable<Awaited<ReturnType<typeof findOwnApp>>>

/**
 * Finds the App whose webhook sends deliveries here, as registered by `relay setup --app-hook`. Undefined if the
 * profile has none at this code host, or its webhook is inactive. Its calls reject like those of `AppAccount`, and
 * `signal` cancels them.
 * @throws RelayError `storage`
 */
export async function findOwnApp(
  secrets: StoreReader & StoreUpdater,
  { url: hostUrl, apps }: Pick<CodeHost, 'url' | 'apps'>,
  options: AppOptions,
) {
  const { app, hook: saved, providerUrl, clientId = '' }: Partial<Setup> = (await loadSetup(secrets)) ?? {}
  if (!app || !saved || providerUrl !== hostUrl || !apps) return undefined
  const { privateKey = '' } = await readSecrets(secrets, clientId, options.command)
  const account = apps.as({ ...app, privateKey: new Secret(privateKey) }, options)
  const { slug } = app

  /** Reads the current webhook. @throws RelayError `gone` if the App has none any more */
  const hook = async (): ReturnType<AppAccount['hook']> => {
    const found = await account.hook().catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
    if (found && found.url !== '') return found
    throw new RelayError(
      'gone',
      `The App ${slug} has no webhook at ${hostUrl} any more. Enter ${saved.url} in its settings there`,
    )
  }
  return {
    slug,
    /** Last address that relay gave to its webhook. */
    savedUrl: saved.url,
    log: account.log,
    describe: () => account.describe(),
    hook,
    /** False also for an App that cannot be called any more. */
    async isInstalledOn(repo: Repo): Promise<boolean> {
      return account.isInstalled(repo).catch((error: unknown) => {
        if (error instanceof RelayError && (error.kind === 'forbidden' || error.kind === 'gone')) return false
        throw error
      })
    },
    /**
     * Makes its webhook send JSON to `url`, signed with `secret`. Resolves to the corrected settings.
     * @throws RelayError `conflict` if somebody set another address; `settings` if the code host cannot reach `url`
     */
    async repair(url: string, secret: Secret): Promise<readonly string[]> {
      checkReachable(url, hostUrl, options.command)
      const before = await hook()
      if (![url, saved.url, saved.former].some((ours) => sameAddress(ours, before.url)))
        throw new RelayError(
          'conflict',
          `The webhook of the App ${slug} leads to ${before.url}, which somebody entered there. To have it here, enter ${url} in the settings of the App`,
        )
      // Saved first, so that either address that an interrupted change leaves there is known as relay's.
      await saveHook(secrets, slug, { url, former: before.url })
      await account.changeHook({ url, secret })
      return [
        ...(sameAddress(before.url, url) ? [] : [`it led to ${before.url}`]),
        ...(before.contentType === 'json' ? [] : [`it sent ${before.contentType}`]),
        ...(before.hasSecret ? [] : ['it had no secret']),
      ]
    },
  }
}

/** Saves the webhook's addresses, unless another App has been set up. */
function saveHook(secrets: StoreUpdater, slug: string, hook: Setup['hook']): Promise<void> {
  return secrets.update(function* (records): Tx<void> {
    const setup = yield* records.get<Setup>(SETUP_KEY)
    if (setup?.app?.slug === slug) yield* records.put(SETUP_KEY, { ...setup, ...(hook && { hook }) })
  })
}
