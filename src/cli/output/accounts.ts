import { type AccountChange, accountName } from '../../auth/accounts.js'
import { bold, type Line, t } from './text.js'

// As which account a user acts. Any program of this machine can sign a user in over HTTP, so a person must see that it happened.

/** `ada is signed in as octo at https://github.com, no longer as mona` */
export function accountText({ userId, origin, account, before }: AccountChange): Line {
  if (account === undefined)
    return t`${bold(userId)} is signed out of ${origin}: the token of ${accountName(before ?? null)} is deleted`
  const replaced = before !== undefined && before !== account ? `, no longer as ${accountName(before)}` : ''
  return t`${bold(userId)} is signed in as ${bold(accountName(account))} at ${origin}${replaced}`
}

/** The same as an object of `--json`. */
export function accountObject({ userId: user, origin, account, before }: AccountChange) {
  const state = account === undefined ? 'signed out' : 'signed in'
  return { type: 'account', state, user, origin, account: account ?? null, before: before ?? null } as const
}
