import type { CommandSpec } from '../../command.js'
import { USER_COMMAND } from '../../session/user-command.js'

export const login: CommandSpec = {
  ...USER_COMMAND,
  name: 'login',
  group: 'Signing in:',
  summary: 'sign in at the code host',
  description: `Signs a user in at the code host, in the browser, and stores the token. Uses the running relay serve of the
profile. Without one, this command receives the code host's callback itself, on the same port.`,
  examples: [
    'relay login',
    'relay login --no-browser  print the address to open, also over SSH',
    'relay login --user ada --json | jq -r .login',
  ],
  options: [{ flags: '--no-browser', help: 'print the address instead of opening it' }],
  settings: ['port', 'publicUrl', ...USER_COMMAND.settings],
  exitCodes: [[0, 'signed in'], [4, 'sign-in denied or failed'], [7, 'no sign-in within 5 minutes'], 8, 130],
  load: async () => (await import('./login.js')).runLogin,
}
