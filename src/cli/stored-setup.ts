import { loadSetup, readClient } from '../auth/setup.js'
import type { Store } from '../store/kv.js'
import { Tokens } from '../tokens/tokens.js'
import { type Advised, commandFor } from './advice.js'
import { joinValues, type Joined, type Parts, refusalOf, type StoredClient } from './settings/join.js'

// Settings from the data of a profile, stored by relay setup and by sign-ins.

/** Settings that the data of the profile completes. */
export interface JoinedStored extends Joined {
  /** The client that `relay setup` stored. */
  readonly setup: StoredClient | undefined
}

/** Reads the client that `relay setup` stored. @throws RelayError `storage` */
export async function readStoredClient(secrets: Store, about: Advised): Promise<StoredClient | undefined> {
  const setup = await loadSetup(secrets)
  return setup && { ...setup, client: await readClient(secrets, setup, (line) => commandFor(about, line)) }
}

/**
 * Completes the settings with the profile's data: the client that `relay setup` stored and, if only the folder names the
 * code host, the code hosts at which its users have signed in. @throws RelayError `storage`
 */
export async function joinStored(parts: Parts, secrets: Store): Promise<JoinedStored> {
  const all = { ...parts, setup: await readStoredClient(secrets, parts.own) }
  const values = joinValues(all)
  const host = refusalOf(all, values)
  if (!host.hostRefusal) return { ...values, ...host, setup: all.setup }
  const signIns = await new Tokens(secrets).addresses()
  return { ...values, ...refusalOf({ ...all, signIns }, values), setup: all.setup }
}
