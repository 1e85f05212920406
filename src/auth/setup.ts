import type { Cancellable } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { type OAuthClient, PROVIDER_NAMES, type ProviderName } from '../base/settings.js'
import type {
  AppAccount,
  AppDescription,
  AppHook,
  AppIdentity,
  CodeHost,
  DeliveryLog,
  Repo,
} from '../codehost/host.js'
import { checkReachable, sameAddress } from '../codehost/hooks.js'
import { isPositive, isText, shape } from '../json/shape.js'
import type { Json, Store } from '../store/kv.js'
import type { Tx } from '../store/sql.js'

/** What `relay setup` registered, without a secret: read by every command, also while the keychain is locked. */
export interface Setup {
  readonly provider: ProviderName
  /** The code host that knows the client. Its secret goes to no other, or a checkout's settings could send it elsewhere. */
  readonly providerUrl: string
  readonly clientId: string
  /** The App that the client belongs to, if it is one. */
  readonly app?: { readonly id: number; readonly slug: string } | undefined
  /** The App's webhook, if it is active: the address that relay gave it last, and the one before, which it still has if that was interrupted. */
  readonly hook?: { readonly url: string; readonly former: string } | undefined
}

/** One whose App has an active webhook. */
type SetupWithHook = Setup & { readonly [Name in 'app' | 'hook']: NonNullable<Setup[Name]> }

/** What `relay setup` stores. */
export interface NewSetup extends Pick<Setup, 'provider' | 'providerUrl'> {
  readonly client: OAuthClient
  readonly app: AppIdentity | undefined
  /** Address of the App's webhook, if that is active. */
  readonly hookUrl: string | undefined
}

/** The one record of the secrets' store that is not encrypted: see store/open.ts. */
const SETUP_KEY = 'setup'
const SECRETS_KEY = 'setup-secrets'

interface SetupSecrets {
  /** The secrets of one setup never apply to another. */
  readonly clientId: string
  readonly clientSecret: string
  /** The App's, PEM. */
  readonly privateKey?: string | undefined
}

const optional =
  (check: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value === undefined || check(value)
const parseApp = shape<NonNullable<Setup['app']>>({ id: isPositive, slug: isText })
const parseHook = shape<NonNullable<Setup['hook']>>({ url: isText, former: isText })
const parseSetup = shape<Setup>({
  provider: (value) => PROVIDER_NAMES.some((name) => name === value),
  providerUrl: isText,
  clientId: isText,
  app: optional((value) => parseApp(value) !== undefined),
  hook: optional((value) => parseHook(value) !== undefined),
})
const parseSecrets = shape<SetupSecrets>({
  clientId: isText,
  clientSecret: isText,
  privateKey: optional(isText),
})

/** Undefined if `relay setup` has not run. @throws RelayError `storage`, also for a record that another version wrote */
export async function readSetup(secrets: Pick<Store, 'get'>): Promise<Setup | undefined> {
  return checked(await secrets.get(SETUP_KEY), parseSetup)
}

/**
 * The client with its secret, which may have the keychain ask its user.
 * @throws RelayError `storage`, also if another `relay setup` has replaced it meanwhile
 */
export async function readClient(
  secrets: Pick<Store, 'get'>,
  { clientId: id }: Pick<Setup, 'clientId'>,
): Promise<OAuthClient> {
  const { clientSecret } = await readSecrets(secrets, id)
  return { id, secret: new Secret(clientSecret) }
}

/**
 * Stores a result in place of `before`: what {@link readSetup} gave when the user agreed.
 * @throws RelayError `conflict` if something else is stored by now; `storage`
 */
export async function saveSetup(
  secrets: Pick<Store, 'update'>,
  { provider, providerUrl, client, app, hookUrl }: NewSetup,
  before: Pick<Setup, 'providerUrl' | 'clientId'> | undefined,
): Promise<void> {
  const setup = recordOf({
    provider,
    providerUrl,
    clientId: client.id,
    app: app && { id: app.id, slug: app.slug },
    hook: hookUrl === undefined ? undefined : { url: hookUrl, former: hookUrl },
  })
  const isSaved = await secrets.update(function* (records): Tx<boolean> {
    const current = parseSetup(yield* records.get(SETUP_KEY))
    if (current?.clientId !== before?.clientId || current?.providerUrl !== before?.providerUrl) return false
    yield* records.put(SETUP_KEY, setup)
    yield* records.put(SECRETS_KEY, {
      clientId: client.id,
      clientSecret: client.secret.reveal(),
      ...(app && { privateKey: app.privateKey.reveal() }),
    })
    return true
  })
  if (isSaved) return
  throw new RelayError(
    'conflict',
    'Nothing was stored: another relay setup has stored a client meanwhile. Run relay setup again to replace it',
  )
}

/** Removes what `relay setup` stored. @throws RelayError `storage` */
export async function removeSetup(secrets: Pick<Store, 'delete'>): Promise<void> {
  for (const key of [SETUP_KEY, SECRETS_KEY]) await secrets.delete(key)
}

function recordOf({ provider, providerUrl, clientId, app, hook }: Setup): Json {
  return {
    provider,
    providerUrl,
    clientId,
    ...(app && { app: { id: app.id, slug: app.slug } }),
    ...(hook && { hook: { url: hook.url, former: hook.former } }),
  }
}

async function readSecrets(secrets: Pick<Store, 'get'>, clientId: string): Promise<SetupSecrets> {
  const found = checked(await secrets.get(SECRETS_KEY), parseSecrets)
  if (found?.clientId === clientId) return found
  throw new RelayError('storage', `The secret of the client ${clientId} is not stored. Run relay setup again`)
}

/** The value of a record; undefined if there is none. There are no migrations. */
function checked<Value>(
  record: Json | undefined,
  parse: (value: unknown) => Value | undefined,
): Value | undefined {
  const value = parse(record)
  if (record === undefined || value !== undefined) return value
  throw new RelayError(
    'storage',
    'What relay setup stored was written by another version of relay. Choose another profile with --profile, or remove this one with that version',
  )
}

/** The App whose own webhook sends deliveries here, as `relay setup --app-hook` made it. Its calls reject like those of `AppAccount`. */
export class OwnApp {
  readonly slug: string
  /** Address that relay gave to its webhook last. */
  readonly savedUrl: string
  /** What it sent. */
  readonly log: DeliveryLog
  readonly #secrets: Pick<Store, 'update'>
  readonly #account: AppAccount
  readonly #setup: SetupWithHook

  private constructor(secrets: Pick<Store, 'update'>, account: AppAccount, setup: SetupWithHook) {
    this.slug = setup.app.slug
    this.savedUrl = setup.hook.url
    this.log = account.log
    this.#secrets = secrets
    this.#account = account
    this.#setup = setup
  }

  /**
   * Undefined if the profile has none at this code host, or its webhook was left inactive. `signal` cancels all of its calls.
   * @throws RelayError `storage`
   */
  static async find(
    secrets: Pick<Store, 'get' | 'update'>,
    host: Pick<CodeHost, 'url' | 'apps'>,
    options?: Cancellable,
  ): Promise<OwnApp | undefined> {
    const setup = await readSetup(secrets)
    if (!setup?.app || !setup.hook || setup.providerUrl !== host.url || !host.apps) return undefined
    const { app, hook, clientId } = setup
    const { privateKey } = await readSecrets(secrets, clientId)
    if (privateKey === undefined) return undefined
    const account = host.apps.as({ ...app, privateKey: new Secret(privateKey) }, options)
    return new OwnApp(secrets, account, { ...setup, app, hook })
  }

  describe(): Promise<AppDescription> {
    return this.#account.describe()
  }

  /** False also for an App that cannot be asked any more. */
  async isInstalledOn(repo: Repo): Promise<boolean> {
    try {
      return await this.#account.isInstalled(repo)
    } catch (error) {
      if (error instanceof RelayError && (error.kind === 'forbidden' || error.kind === 'gone')) return false
      throw error
    }
  }

  /** Its webhook as it is. @throws RelayError `gone` if it has none any more */
  async hook(): Promise<AppHook> {
    const hook = await this.#account.hook().catch((error: unknown) => {
      if (error instanceof RelayError && error.kind === 'not_found') return undefined
      throw error
    })
    if (hook && hook.url !== '') return hook
    throw new RelayError(
      'gone',
      `The App ${this.slug} has no webhook at ${this.#setup.providerUrl} any more. Enter ${this.savedUrl} in its settings there`,
    )
  }

  /**
   * Makes its webhook send JSON to `url`, signed with `secret`. Resolves to what was wrong before.
   * @throws RelayError `conflict` if somebody gave it an address of their own; `settings` if the code host cannot reach `url`
   */
  async repair(url: string, secret: Secret): Promise<readonly string[]> {
    checkReachable(url, this.#setup.providerUrl)
    const before = await this.hook()
    const { hook } = this.#setup
    if (![url, hook.url, hook.former].some((ours) => sameAddress(ours, before.url)))
      throw new RelayError(
        'conflict',
        `The webhook of the App ${this.slug} leads to ${before.url}, which somebody entered there. To have it here, enter ${url} in the settings of the App`,
      )
    // Saved first: whichever address an interrupted change leaves there is ours.
    await saveHook(this.#secrets, this.slug, { url, former: before.url })
    await this.#account.changeHook({ url, secret })
    return [
      ...(sameAddress(before.url, url) ? [] : [`it led to ${before.url}`]),
      ...(before.contentType === 'json' ? [] : [`it sent ${before.contentType}`]),
      ...(before.hasSecret ? [] : ['it had no secret']),
    ]
  }
}

/** Not over the setup of another App, if `relay setup` ran meanwhile. */
function saveHook(secrets: Pick<Store, 'update'>, slug: string, hook: SetupWithHook['hook']): Promise<void> {
  return secrets.update(function* (records): Tx<void> {
    const setup = parseSetup(yield* records.get(SETUP_KEY))
    if (setup?.app?.slug === slug) yield* records.put(SETUP_KEY, recordOf({ ...setup, hook }))
  })
}
