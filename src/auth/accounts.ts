import type { Log } from '../base/log.js'
import type { AccountRef, OtherAccount, Tokens, UserAccount } from '../tokens/tokens.js'

// Any program of this machine can sign a user in or out over HTTP. Each such change is reported, and a command that
// acts for the user checks that the account is still the one that `relay login` signed in as.

/**
 * A sign-in or a revocation over HTTP. An account is null if the code host did not name it, and undefined if the
 * user is not signed in.
 */
export interface AccountChange {
  readonly userId: string
  /** Origin of the code host. */
  readonly origin: string
  /** Account that the user acts as now. */
  readonly account: string | null | undefined
  readonly before: string | null | undefined
  /** Nonce under which a program waits for the sign-in. */
  readonly login?: string | undefined
}

/** Dependencies of reporting account changes. */
export interface AccountParts {
  readonly tokens: Tokens
  readonly onAccount: (change: AccountChange) => void
}

/** Removes a user's token for an unauthenticated caller. The code host is not called. @throws RelayError `storage` */
export async function signOut({ tokens, onAccount }: AccountParts, userId: string): Promise<void> {
  const { owner, refreshable } = await tokens.revoke(userId)
  const removed = owner ?? refreshable
  if (removed) onAccount(signedOut(userId, removed))
}

/** The change that a removed token causes. */
export function signedOut(userId: string, { origin, account = null }: AccountRef): AccountChange {
  return { userId, origin, account: undefined, before: account }
}

/** Describes a change: `ada is signed in as octo at https://github.com, no longer as mona`. */
export function accountText({ userId, origin, account, before }: AccountChange): string {
  if (account === undefined)
    return `${userId} is signed out of ${origin}: the token of ${accountName(before ?? null)} is deleted`
  const replaced = before !== undefined && before !== account ? `, no longer as ${accountName(before)}` : ''
  return `${userId} is signed in as ${accountName(account)} at ${origin}${replaced}`
}

/** True if the user need not be warned: a sign-in with a known account that has not changed. */
export function isExpected({ account, before }: AccountChange): boolean {
  return account !== undefined && account !== null && (before ?? account) === account
}

/** Reports changes to a log, if no other listener is set. */
export function logAccounts(log: Log): AccountParts['onAccount'] {
  return (change) => log[isExpected(change) ? 'info' : 'warn'](accountText(change))
}

export function accountName(account: string | null): string {
  return account ?? 'an account that the code host does not name'
}

/** Warning before relay acts for an account that the user may not have chosen. `relay login` replaces the account. */
export function otherAccountText(
  { userId, origin }: UserAccount,
  { account, lastLogin }: OtherAccount,
): string {
  const last = lastLogin === null ? '' : `, which last signed in as ${lastLogin}`
  return `${userId} acts as ${accountName(account)} at ${origin}. relay login did not sign that account in${last}`
}
