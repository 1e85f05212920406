import type { CommandSpec } from '../../command.js'
import { USER_COMMAND } from '../../session/user-command.js'

export const revoke: CommandSpec = {
  ...USER_COMMAND,
  name: 'revoke',
  group: 'Signing in:',
  summary: "delete a user's token, here and at the code host",
  description: `Deletes a user's token: first here, so that it stops working at once, then at the code host if that allows it
(GitHub does, except for personal access tokens; Gitea does not: revoke those in your settings there). Also deletes a token
that is still in the store that the profile used before. If a token may still be valid at the code host, that is an error, unless
--local is given.`,
  examples: ['relay revoke', 'relay revoke --user ada --local'],
  options: [{ flags: '--local', help: 'do not revoke the token at the code host' }],
  exitCodes: [[8, 'deleted here, but the code host did not revoke it'], 130],
  load: async () => (await import('./revoke.js')).runRevoke,
}
