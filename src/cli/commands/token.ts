import { USER_COMMAND } from '../options.js'
import { define, type Flags, type Shell } from '../command.js'
import { timeField } from '../output/outside.js'
import { openUserProfile } from '../user-profile.js'

export const tokenCommand = define({
  ...USER_COMMAND,
  description: `Prints the access token of a signed-in user, renewed if necessary, for programs that call the service or the code host.`,
  examples: `relay token --header | curl -H @- http://127.0.0.1:8787/api/comment …
relay token --user ada --json`,
  options: [['--header', 'print "Authorization: Bearer …", for curl -H @-']],
  run: runToken,
  print: ({ accessToken, isHeader }, out) =>
    out.result(isHeader ? `Authorization: Bearer ${accessToken}` : accessToken),
  json: ({ user, accessToken, expiresAt }) => ({ user, accessToken, expiresAt: timeField(expiresAt) }),
})

type TokenInput = Flags & { readonly header?: boolean }

async function runToken(shell: Shell, flags: TokenInput) {
  await using profile = await openUserProfile(shell, flags)
  const { accessToken, expiresAt } = await profile.owner()
  return { user: profile.user, accessToken, expiresAt, isHeader: flags.header === true }
}
