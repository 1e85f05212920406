import type { Cancellable } from '../base/abort.js'
import type { Holder } from '../tokens/tokens.js'
import { tokenPlace } from './place.js'
import type { Session } from './session.js'

/** Who is signed in, as `login` and `whoami` tell it. */
export interface SignedIn {
  readonly user: string
  /** The account's name at the code host. */
  readonly login: string
  readonly provider: string
  readonly providerUrl: string
  /** Where the token is kept. */
  readonly store: string
  /** ISO 8601 in UTC. */
  readonly expiresAt: string
}

/**
 * Asks the code host whose token it is.
 * @throws RelayError as `Provider.whoAmI`.
 */
export async function describeHolder(
  session: Session,
  holder: Holder,
  options: Cancellable,
): Promise<SignedIn> {
  const { provider, settings } = session
  const { login } = await provider.whoAmI(holder.accessToken, options)
  return {
    user: holder.userId,
    login,
    provider: provider.name,
    providerUrl: provider.url,
    store: tokenPlace(settings),
    expiresAt: new Date(holder.expiresAt).toISOString(),
  }
}
