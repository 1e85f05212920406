import type { OtherAccount, TokenOwner, Tokens } from '../tokens/tokens.js'

// Any program of this machine can sign a user in over HTTP, and sign the user out. Each such change is reported, and a command that acts for
// the user checks that the account is still the one that `relay login` signed in as.

/** A sign-in or a revocation over HTTP. Accounts: null where the code host named none, undefined where nobody is signed in as the user. */
export interface AccountChange {
  readonly userId: string
  /** The code host's origin. */
  readonly origin: string
  /** The account that the user acts as now. */
  readonly account: string | null | undefined
  readonly before: string | null | undefined
  /** The nonce under which a program waits for the sign-in. */
  readonly login?: string | undefined
}

/** What reports the changes. */
export interface AccountParts {
  readonly tokens: Pick<Tokens, 'revoke'>
  readonly onAccount: (change: AccountChange) => void
}

/** Removes a user's token for a caller that has proved nothing. The code host is not asked. @throws RelayError `storage` */
export async function signOut({ tokens, onAccount }: AccountParts, userId: string): Promise<void> {
  const { owner, refreshable } = await tokens.revoke(userId)
  const removed = owner ?? refreshable
  if (removed) onAccount(signedOut(userId, removed))
}

/** The change when this was removed. */
export function signedOut(
  userId: string,
  { origin, account = null }: Pick<TokenOwner, 'origin' | 'account'>,
): AccountChange {
  return { userId, origin, account: undefined, before: account }
}

export function accountName(account: string | null): string {
  return account ?? 'an account that the code host does not name'
}

/** What is said before relay acts for an account that the user may not have chosen. `login`: the command that signs in again. */
export function otherAccountText(
  { userId, origin }: Pick<TokenOwner, 'userId' | 'origin'>,
  { account, lastLogin }: OtherAccount,
  login: string,
): string {
  const last = lastLogin === null ? '' : `, which last signed in as ${lastLogin}`
  return `${userId} acts as ${accountName(account)} at ${origin}. relay login did not sign that account in${last}. ${login} replaces it`
}
