import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { type OAuthClient, PROVIDER_NAMES, type ProviderName } from '../base/settings.js'
import type { AppIdentity } from '../providers/registration.js'
import type { Json, Store } from '../store/kv.js'
import type { Tx } from '../store/sql.js'
import { isPositive, isText, shape } from '../json/shape.js'

/** OAuth client that `relay setup` stored, and the code host that knows it. */
export interface StoredClient {
  readonly provider: ProviderName
  readonly providerUrl: string
  readonly client: OAuthClient
}

/** What `relay setup` stores at once. */
export interface SetupResult extends StoredClient {
  /** The App that the client belongs to, if it is one. */
  readonly app: AppIdentity | undefined
  /** Address of the App's webhook, if that is active. */
  readonly hookUrl: string | undefined
}

/** Addresses that relay gave to the webhook of the App. */
export interface AppHookRecord {
  readonly url: string
  /** The one before: the webhook still has it if the change was interrupted. */
  readonly former: string
}

/** Without a secret, so that a profile without a client needs no keychain. */
const CLIENT_KEY = 'setup-client'
const SECRET_KEY = 'setup:secret'
/** A record of its own: few commands need the key. */
const APP_KEY = 'setup:app'
/** The App's webhook, if it is active. Without a secret, so that a profile without one needs no keychain. */
const APP_HOOK_KEY = 'setup-app-hook'

const isProvider = (value: unknown): boolean => PROVIDER_NAMES.some((name) => name === value)

const parseClient = shape<{ provider: ProviderName; providerUrl: string; id: string }>({
  provider: isProvider,
  providerUrl: isText,
  id: isText,
})

const parseApp = shape<{ providerUrl: string; id: number; slug: string; privateKey: string }>({
  providerUrl: isText,
  id: isPositive,
  slug: isText,
  privateKey: isText,
})

const parseAppHook = shape<AppHookRecord & { providerUrl: string }>({
  providerUrl: isText,
  url: isText,
  former: isText,
})

/** Undefined if `relay setup` has not run. @throws RelayError `storage` */
export async function readStoredClient(store: Pick<Store, 'get'>): Promise<StoredClient | undefined> {
  const record = parseClient(await store.get(CLIENT_KEY))
  const secret = record && (await store.get(SECRET_KEY))
  if (!record || typeof secret !== 'string') return undefined
  const { provider, providerUrl, id } = record
  return { provider, providerUrl, client: { id, secret: new Secret(secret) } }
}

/** The App that `relay setup` registered at this code host. @throws RelayError `storage` */
export async function readStoredApp(
  store: Pick<Store, 'get'>,
  providerUrl: string,
): Promise<AppIdentity | undefined> {
  const record = parseApp(await store.get(APP_KEY))
  if (record?.providerUrl !== providerUrl) return undefined
  return { id: record.id, slug: record.slug, privateKey: new Secret(record.privateKey) }
}

/** Addresses of the webhook of the App at this code host, if `relay setup` made it active. @throws RelayError `storage` */
export async function readAppHook(
  store: Pick<Store, 'get'>,
  providerUrl: string,
): Promise<AppHookRecord | undefined> {
  const record = parseAppHook(await store.get(APP_HOOK_KEY))
  return record?.providerUrl === providerUrl ? { url: record.url, former: record.former } : undefined
}

/** Saves the address that relay is about to give to the App's webhook. @throws RelayError `storage` */
export async function saveAppHook(
  store: Pick<Store, 'put'>,
  providerUrl: string,
  hook: AppHookRecord,
): Promise<void> {
  await store.put(APP_HOOK_KEY, { providerUrl, ...hook })
}

/**
 * Stores a result, and replaces `before` by it: what {@link readStoredClient} gave when the user agreed.
 * @throws RelayError `conflict` if it is no longer what is stored; `storage`
 */
export async function saveSetup(
  store: Pick<Store, 'update'>,
  { provider, providerUrl, client, app, hookUrl }: SetupResult,
  before: StoredClient | undefined,
): Promise<void> {
  const hook = hookUrl === undefined ? undefined : { providerUrl, url: hookUrl, former: hookUrl }
  const isSaved = await store.update(function* (records): Tx<boolean> {
    if ((yield* records.get(SECRET_KEY)) !== before?.client.secret.reveal()) return false
    yield* records.put(CLIENT_KEY, { provider, providerUrl, id: client.id })
    yield* records.put(SECRET_KEY, client.secret.reveal())
    if (app) yield* records.put(APP_KEY, appRecord(providerUrl, app))
    else yield* records.delete(APP_KEY)
    if (hook) yield* records.put(APP_HOOK_KEY, hook)
    else yield* records.delete(APP_HOOK_KEY)
    return true
  })
  if (isSaved) return
  throw new RelayError(
    'conflict',
    'Nothing was stored: another relay setup has stored a client meanwhile. Run relay setup again to replace it',
  )
}

/** Removes what `relay setup` stored. @throws RelayError `storage` */
export async function removeSetup(store: Pick<Store, 'delete'>): Promise<void> {
  for (const key of [CLIENT_KEY, SECRET_KEY, APP_KEY, APP_HOOK_KEY]) await store.delete(key)
}

function appRecord(providerUrl: string, { id, slug, privateKey }: AppIdentity): Json {
  return { providerUrl, id, slug, privateKey: privateKey.reveal() }
}
