import type { ArgumentSpec, Commands, CommandSpec } from '../command.js'

/** What the declarations of the commands that act for a signed-in user have in common. */
export const USER_COMMAND = {
  settings: ['user', 'provider', 'providerUrl'],
  env: ['clientId', 'clientSecret', 'home', 'store'],
  exits: [4, 8, 130],
} as const satisfies Partial<CommandSpec>

const REPOSITORY_HELP = 'the repository, for example octo/demo'
export const REPOSITORY: ArgumentSpec = ['<owner/repo>', REPOSITORY_HELP]
export const OPTIONAL_REPOSITORY: ArgumentSpec = ['[owner/repo]', REPOSITORY_HELP]

export const SIGNING_IN: Commands = {
  login: {
    ...USER_COMMAND,
    summary: 'sign in at the code host',
    description: `Signs a user in at the code host, in the browser, and stores the token. Uses the running relay serve of the profile.
Without one, receives the code host's callback itself, on the same port. Where there is no display, uses the device flow if
the code host has it: you enter a code in a browser on any machine.`,
    examples: `relay login
relay login --no-browser  print the address to open, also over SSH
relay login --device  enter a code in a browser anywhere (GitHub)
relay login --with-token < token.txt
relay login --user ada --json | jq -r .login`,
    options: [
      ['--no-browser', 'print the address instead of opening it'],
      ['--device', 'print a code to enter in a browser on any machine'],
      ['--with-token', 'read a personal access token from standard input'],
    ],
    settings: ['port', 'publicUrl', ...USER_COMMAND.settings],
    exits: [
      [0, 'signed in'],
      [4, 'sign-in denied or failed'],
      [7, 'no sign-in within 5 minutes, or the code has expired'],
      8,
      130,
    ],
    load: async () => (await import('../commands/login.js')).runLogin,
  },

  revoke: {
    ...USER_COMMAND,
    summary: "delete a user's token, here and at the code host",
    description: `Deletes a user's token here, so that it stops working at once, then at the code host if that allows it. GitHub does,
except for personal access tokens; Gitea does not: revoke those in your settings there. If the code host may still accept the
token, that is an error, unless --local is given.`,
    examples: 'relay revoke\nrelay revoke --user ada --local',
    options: [['--local', 'do not revoke the token at the code host']],
    exits: [[8, 'deleted here, but the code host did not revoke it'], 130],
    load: async () => (await import('../commands/tokens.js')).runRevoke,
  },

  token: {
    ...USER_COMMAND,
    summary: "print a user's access token",
    description: `Prints the access token of a signed-in user, renewed if necessary, for programs that call the service or the code host.`,
    examples: `relay token --header | curl -H @- http://127.0.0.1:8787/api/comment …
relay token --user ada --json`,
    options: [['--header', 'print "Authorization: Bearer …", for curl -H @-']],
    load: async () => (await import('../commands/tokens.js')).runToken,
  },

  whoami: {
    ...USER_COMMAND,
    summary: 'show the signed-in account',
    description: `Shows the account of the user's token at the code host, where the token is stored, and when it expires.`,
    examples: 'relay whoami\nrelay whoami --json | jq -r .login',
    load: async () => (await import('../commands/tokens.js')).runWhoami,
  },
}
