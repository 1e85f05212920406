import { RelayError } from '../../base/errors.js'
import { USER_COMMAND } from '../options.js'
import { define, type Flags, type Shell } from '../command.js'
import { signedIn } from '../account.js'
import type { Output } from '../output/output.js'
import { tilde } from '../output/text.js'
import { spokenInstant } from '../output/time.js'
import { openUserProfile } from '../user-profile.js'

export const whoamiCommand = define({
  ...USER_COMMAND,
  description: `Shows the account of the user's token at the code host, where the token is stored, when it expires, and its scopes where the code
host names them.`,
  examples: 'relay whoami\nrelay whoami --json | jq -r .login',
  run: runWhoami,
  print,
  json: ({ account }) => account,
})

async function runWhoami(shell: Shell, flags: Flags) {
  const { signal } = shell
  await using profile = await openUserProfile(shell, flags)
  const { host, user } = profile
  const owner = await profile.owner()
  const facts = await host
    .as(owner.accessToken, { signal })
    .facts()
    .catch((error: unknown) => {
      if (!(error instanceof RelayError) || !error.kind.startsWith('provider_')) throw error
      // The token may still be valid.
      const message = `Could not get the account of ${user}: ${error.message}`
      throw new RelayError(error.kind, message, { cause: error })
    })
  const { scopes = null } = facts
  return { account: { ...signedIn(profile, owner, facts.login), scopes }, expiresAt: owner.expiresAt }
}

function print({ account, expiresAt }: Awaited<ReturnType<typeof runWhoami>>, out: Output): void {
  const expiry = out.isTerminal ? spokenInstant(expiresAt, Date.now()) : account.expiresAt
  const lines = [
    ['account', account.login],
    ['code host', account.providerUrl],
    ['user', account.user],
    ['token', `in ${tilde(account.store)}, expires ${expiry}`],
    // Not every code host names them.
    ...(account.scopes ? [['scopes', account.scopes.join(', ') || 'none'] as const] : []),
  ] as const
  for (const [name, text] of lines) out.result(`${name.padEnd(11)}${text}`)
}
