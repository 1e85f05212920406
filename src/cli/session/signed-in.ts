import type { Cancellable } from '../../base/abort.js'
import type { TokenOwner } from '../../tokens/tokens.js'
import { tokenPlace } from '../output/display-path.js'
import type { Session } from './session.js'

/** The signed-in account, as `login` and `whoami` print it. */
export interface SignedIn {
  readonly user: string
  /** The account's name at the code host. */
  readonly login: string
  readonly provider: string
  readonly providerUrl: string
  /** Where the token is stored. */
  readonly store: string
  /** ISO 8601 in UTC. */
  readonly expiresAt: string
}

/**
 * Asks the code host for the account of a token.
 * @throws RelayError as `CodeHost`.
 */
export async function describeAccount(
  session: Session,
  owner: TokenOwner,
  options: Cancellable,
): Promise<SignedIn> {
  const { login } = await session.host.as(owner.accessToken, options).facts()
  return signedIn(session, owner, login)
}

/** The same for a token whose owner the code host has named. */
export function signedIn(
  { host, settings }: Session,
  { userId: user, expiresAt }: Pick<TokenOwner, 'userId' | 'expiresAt'>,
  login: string,
): SignedIn {
  return {
    user,
    login,
    provider: host.name,
    providerUrl: host.url,
    store: tokenPlace(settings),
    expiresAt: new Date(expiresAt).toISOString(),
  }
}
