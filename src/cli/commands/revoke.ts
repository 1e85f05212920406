import { USER_COMMAND } from '../options.js'
import { define, type Flags, type Shell } from '../command.js'
import { revokeUser } from '../account.js'
import type { Output } from '../output/output.js'
import { openUserProfile } from '../user-profile.js'

export const revokeCommand = define({
  ...USER_COMMAND,
  description: `Deletes a user's token here, so that it stops working at once, then at the code host if that allows it. GitHub and GitLab
allow it, except for tokens that you made; Gitea does not. Revoke those in your settings there. If the code host may still accept the
token, that is an error, unless --local is given.`,
  examples: 'relay revoke\nrelay revoke --user ada --local',
  options: [['--local', 'do not revoke the token at the code host']],
  exits: [[8, 'deleted here, but the code host did not revoke it'], 130],
  run: runRevoke,
  print,
  json: ({ user, removed, upstream }) => ({ user, removed, upstream }),
})

type RevokeInput = Flags & { readonly local?: boolean }

async function runRevoke(shell: Shell, flags: RevokeInput) {
  const { out, signal } = shell
  await using profile = await openUserProfile(shell, flags)
  const { host, client, tokens, database, user, instance, values } = profile
  const { store } = database
  const local = flags.local === true
  const parts = { host, client, store, tokens, tokenTtl: values.tokenTtl, log: out.log }
  await profile.checkAccount()
  return { user, ...(await revokeUser(parts, instance, user, { local, signal })), local, host: host.url }
}

function print({ user, removed, upstream, local, host }: Awaited<ReturnType<typeof runRevoke>>, out: Output) {
  const deleted = `the token of ${user} is deleted here`
  if (upstream === 'revoked') out.say(`${deleted}, and revoked at ${host}`)
  else if (!removed) out.say(`${user} was not signed in, so there was nothing to revoke`)
  else out.say(local ? `${deleted}, and not revoked at the code host` : `${deleted}; it had expired`)
}
