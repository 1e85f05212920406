import type { CommandSpec } from '../../command.js'

export const setup: CommandSpec = {
  name: 'setup',
  group: 'Setup:',
  summary: 'register relay at the code host, for signing in',
  description: `Registers relay at the code host and stores the client in the profile. At GitHub, a page in your browser leads to
creating an App. At Gitea and Forgejo, relay asks for an access token, registers an OAuth application with it, and forgets
it. Asks before it replaces a client. Ends with the checks of relay doctor.`,
  examples: [
    'relay setup',
    'relay setup --app-hook   receive from all repositories of the App',
    'relay setup --provider gitea --provider-url https://git.example.com < token.txt',
    'relay setup --oauth-app  an OAuth app instead, registered by hand',
  ],
  options: [
    { flags: '--app-hook', help: "let the App's own webhook send deliveries here" },
    { flags: '--org <name>', help: 'organization that will own the App (default: your account)' },
    {
      flags: '--oauth-app',
      help: 'show the values of an OAuth app to register, then ask for its id and secret',
    },
    { flags: '--no-browser', help: 'print the address instead of opening it' },
    { flags: '--yes', help: 'replace a client that an earlier setup stored, without asking' },
  ],
  settings: ['provider', 'providerUrl', 'port', 'host', 'publicUrl', 'store'],
  environment: ['clientId', 'clientSecret', 'webhookSecret', 'home', 'user'],
  exitCodes: [[7, 'no App was registered within 15 minutes'], 8, 130],
  load: async () => (await import('./setup.js')).runSetup,
}
