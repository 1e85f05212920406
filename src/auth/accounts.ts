import type { Log } from '../base/log.js'
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

/** `ada is signed in as octo at https://github.com, no longer as mona` */
export function accountText({ userId, origin, account, before }: AccountChange): string {
  if (account === undefined)
    return `${userId} is signed out of ${origin}: the token of ${accountName(before ?? null)} is deleted`
  const replaced = before !== undefined && before !== account ? `, no longer as ${accountName(before)}` : ''
  return `${userId} is signed in as ${accountName(account)} at ${origin}${replaced}`
}

/** Whether nothing has changed that a user would have to know: it is a sign-in, of a known account, and of the one before. */
export function isExpected({ account, before }: AccountChange): boolean {
  return account !== undefined && account !== null && (before ?? account) === account
}

/** Reports changes to a log, where nothing else takes them. */
export function logAccounts(log: Log): AccountParts['onAccount'] {
  return (change) => log[isExpected(change) ? 'info' : 'warn'](accountText(change))
}

export function accountName(account: string | null): string {
  return account ?? 'an account that the code host does not name'
}

/** What is said before relay acts for an account that the user may not have chosen. `relay login` replaces it. */
export function otherAccountText(
  { userId, origin }: Pick<TokenOwner, 'userId' | 'origin'>,
  { account, lastLogin }: OtherAccount,
): string {
  const last = lastLogin === null ? '' : `, which last signed in as ${lastLogin}`
  return `${userId} acts as ${accountName(account)} at ${origin}. relay login did not sign that account in${last}`
}
