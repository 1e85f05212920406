import { readClient, readSetup as readRecord, type Setup } from '../../auth/setup.js'
import type { OAuthClient } from '../../base/settings.js'
import type { Store } from '../../store/kv.js'
import { mayHaveData, openDatabase } from '../../store/open.js'
import { profileFolder, storeOf } from './complete.js'
import type { OptionValues } from './options.js'
import type { Origin } from './origin.js'
import type { LoadedOptions } from './read.js'

/** What `relay setup` stored, with the client's secret. */
export type StoredClient = Setup & { readonly client: OAuthClient }

/** @throws RelayError `storage` */
export async function readStoredClient(secrets: Pick<Store, 'get'>): Promise<StoredClient | undefined> {
  const setup = await readRecord(secrets)
  return setup && { ...setup, client: await readClient(secrets, setup) }
}

const SETUP: Origin = { kind: 'setup', text: 'setup' }

/**
 * What `relay setup` stored in the profile. Creates no folder, and data in a shared store only with `create`.
 * @throws RelayError `storage`, and `settings` for a shared store without its key
 */
export async function readSetup(
  options: OptionValues,
  { create }: { readonly create: boolean },
): Promise<StoredClient | undefined> {
  const [folder, kind] = [profileFolder(options), storeOf(options)]
  if (!mayHaveData(kind, folder)) return undefined
  await using database = await openDatabase({ kind, folder, create })
  return await readStoredClient(database.secrets)
}

/** The settings with the code host of `relay setup`, unless another is set. */
export function withStoredHost<Loaded extends LoadedOptions>(
  loaded: Loaded,
  stored: StoredClient | undefined,
): Loaded {
  const { options, origins } = loaded
  if (!stored || origins.provider || origins.providerUrl) return loaded
  const { provider, providerUrl } = stored
  return {
    ...loaded,
    options: { ...options, provider, providerUrl },
    origins: { ...origins, provider: SETUP, providerUrl: SETUP },
  }
}

/**
 * The settings with the OAuth client of `relay setup`, unless one is set. Only for the code host that the client is of: its
 * secret must reach no other.
 */
export function withStoredClient<Loaded extends LoadedOptions>(
  loaded: Loaded,
  stored: StoredClient | undefined,
): Loaded {
  const { options, origins } = loaded
  const { clientId, clientSecret, provider, providerUrl } = options
  if (!stored || clientSecret !== undefined) return loaded
  const { id, secret } = stored.client
  const isOther = clientId !== undefined && clientId !== id
  if (isOther || stored.provider !== provider || stored.providerUrl !== providerUrl) return loaded
  return {
    ...loaded,
    options: { ...options, clientId: id, clientSecret: secret.reveal() },
    origins: { ...origins, clientId: origins.clientId ?? SETUP, clientSecret: SETUP },
  }
}
