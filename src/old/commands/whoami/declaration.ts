import type { CommandSpec } from '../../command.js'
import { USER_COMMAND } from '../../session/user-command.js'

export const whoami: CommandSpec = {
  ...USER_COMMAND,
  name: 'whoami',
  group: 'Signing in:',
  summary: 'show the signed-in account',
  description: `Shows the account of the user's token at the code host, where the token is stored, and when it expires. It also
reports a sign-in that relay login did not start, since any program on this machine can start one.`,
  examples: ['relay whoami', 'relay whoami --json | jq -r .login'],
  load: async () => (await import('./whoami.js')).runWhoami,
}
