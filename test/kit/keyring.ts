import type { Env } from './folder.js'
import { part } from './parts.js'

export { startKeyring as ownKeyring, startSession, startSilentSession } from './keyring-daemon.js'

/** The environment of the run's one keyring, unlocked. Other tests use it at the same time. */
export async function keyring(): Promise<{ readonly env: Env }> {
  return { env: await part('keyring') }
}
