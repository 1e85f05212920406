import { loadSetup, readClient } from '../auth/setup.js'
import type { Store } from '../store/kv.js'
import { Tokens } from '../tokens/tokens.js'
import { type Advised, commandFor } from './advice.js'
import { joinSettings, type Joined, type Parts, type StoredClient } from './settings/join.js'

// Settings from the data of a profile, stored by relay setup and by sign-ins.

/** Reads the client that `relay setup` stored. @throws RelayError `storage` */
export async function readStoredClient(
  secrets: Pick<Store, 'get'>,
  about: Advised,
): Promise<StoredClient | undefined> {
  const setup = await loadSetup(secrets)
  return setup && { ...setup, client: await readClient(secrets, setup, (line) => commandFor(about, line)) }
}

/**
 * Completes the settings with the profile's data: the client that `relay setup` stored and, if only the folder names the
 * code host, the code hosts at which its users have signed in. @throws RelayError `storage`
 */
export async function joinStored(parts: Parts, secrets: Store): Promise<Joined> {
  const own = { ...parts, setup: await readStoredClient(secrets, parts.own) }
  const joined = joinSettings(own)
  return joined.hostRefusal
    ? joinSettings({ ...own, signIns: await new Tokens(secrets).addresses() })
    : joined
}
