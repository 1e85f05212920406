import type { CommandSpec } from '../../command.js'
import { USER_COMMAND } from '../../session/user-command.js'

export const login: CommandSpec = {
  ...USER_COMMAND,
  name: 'login',
  group: 'Signing in:',
  summary: 'sign in at the code host',
  description: `Signs a user in at the code host, in the browser, and stores the token. Uses the running relay serve of the
profile. Without one, this command receives the code host's callback itself, on the same port. Where there is no display, it
uses the device flow if the code host has it: you enter a code in a browser on any machine.`,
  examples: [
    'relay login',
    'relay login --no-browser  print the address to open, also over SSH',
    'relay login --device  enter a code in a browser anywhere (GitHub)',
    'relay login --with-token < token.txt',
    'relay login --user ada --json | jq -r .login',
  ],
  options: [
    { flags: '--no-browser', help: 'print the address instead of opening it' },
    { flags: '--device', help: 'print a code to enter in a browser on any machine' },
    { flags: '--with-token', help: 'read a personal access token from standard input' },
  ],
  settings: ['port', 'publicUrl', ...USER_COMMAND.settings],
  exitCodes: [
    [0, 'signed in'],
    [4, 'sign-in denied or failed'],
    [7, 'no sign-in within 5 minutes, or the code has expired'],
    8,
    130,
  ],
  load: async () => (await import('./login.js')).runLogin,
}
