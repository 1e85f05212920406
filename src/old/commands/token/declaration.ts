import type { CommandSpec } from '../../command.js'
import { USER_COMMAND } from '../../session/user-command.js'

export const token: CommandSpec = {
  ...USER_COMMAND,
  name: 'token',
  group: 'Signing in:',
  summary: "print a user's access token",
  description: `Prints the access token of a signed-in user, renewed if necessary, for programs that call the service or the
code host themselves.`,
  examples: [
    'relay token --header | curl -H @- http://127.0.0.1:8787/api/comment …',
    'relay token --user ada --json',
  ],
  options: [{ flags: '--header', help: 'print "Authorization: Bearer …", for curl -H @-' }],
  load: async () => (await import('./token.js')).runToken,
}
