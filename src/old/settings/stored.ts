import { readStoredClient, type StoredClient } from '../../setup/record.js'
import { mayHaveData, openDatabase } from '../../store/open.js'
import { profileFolder, storeOf } from './complete.js'
import type { OptionValues } from './options.js'
import type { Origin } from './origin.js'
import type { LoadedOptions } from './read.js'

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
