import type { Cancellable } from '../../base/abort.js'
import { RelayError } from '../../base/errors.js'
import type { TokenOwner, Unconfirmed } from '../../tokens/tokens.js'
import { tokenPlace } from '../output/display-path.js'
import { localTime } from '../output/time.js'
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
 * @throws RelayError as `Provider.whoAmI`.
 */
export async function describeAccount(
  session: Session,
  owner: TokenOwner,
  options: Cancellable,
): Promise<SignedIn> {
  const { login } = await session.provider.whoAmI(owner.accessToken, options)
  return signedIn(session, owner, login)
}

/** The same for a token whose owner the code host has named. */
export function signedIn(
  { provider, settings }: Session,
  { userId: user, expiresAt }: Pick<TokenOwner, 'userId' | 'expiresAt'>,
  login: string,
): SignedIn {
  return {
    user,
    login,
    provider: provider.name,
    providerUrl: provider.url,
    store: tokenPlace(settings),
    expiresAt: new Date(expiresAt).toISOString(),
  }
}

/**
 * Prints the account that the command acts as, the first time after a sign-in that `relay login` did not make. If the code
 * host cannot be asked, it prints that, and asks again the next time. Never throws.
 */
export async function announce(
  { provider, tokens, output }: Session,
  { userId, accessToken }: TokenOwner,
  seen: Unconfirmed,
  options: Cancellable,
): Promise<void> {
  const origin = `${userId} was signed in at ${localTime(Date.parse(seen.since))}, and not by relay login`
  try {
    const { login } = await provider.whoAmI(accessToken, options)
    output.log.warn(
      `Acting as ${login} at ${provider.url}: ${origin}. If that is not your account, run relay revoke.`,
    )
    // An unconfirmed sign-in is announced again.
    await tokens.confirm(userId, seen).catch(() => false)
  } catch (error) {
    const why = error instanceof RelayError ? error.message : 'unknown reason'
    output.log.warn(`${origin}; relay could not ask for its account (${why})`)
  }
}
