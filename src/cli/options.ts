import type { ArgumentSpec, Declaration, FlagSpec } from './command.js'

// Arguments, options, variables and exit codes that several commands share.

// Commands that act for a signed-in user

export const USER_COMMAND = {
  settings: ['user', 'provider', 'providerUrl'],
  env: ['clientId', 'clientSecret', 'home', 'store'],
  exits: [4, 8, 130],
} as const satisfies Partial<Declaration>

const REPOSITORY_HELP = 'the repository, for example octo/demo'
export const REPOSITORY: ArgumentSpec = ['<owner/repo>', REPOSITORY_HELP]
export const OPTIONAL_REPOSITORY: ArgumentSpec = ['[owner/repo]', REPOSITORY_HELP]

// Commands that read the journal

export const ENTRY: ArgumentSpec = ['<entry>', 'number of the entry, or last']
export const SINCE = '1h (ago), 2026-01-31T12:00, or now'
export const STORED = { env: ['home', 'store'], exits: [6] } as const
export const REPO_OPTION: FlagSpec = ['--repo <owner/name>', 'only deliveries of this repository']
export const SOURCE_OPTION: FlagSpec = [
  '--source <name>',
  'only deliveries of this source; events are then its own',
]
export const EVENTS = 'event or event.action, or source/event of another source; * matches any'
export const TEXT_OPTION: FlagSpec = [
  '--text <text>',
  'only deliveries with this text in the payload, in any case',
]
export const SECRET_ENV: FlagSpec = [
  '--secret-env <variable>',
  'variable that holds the webhook secret',
  { defaultText: 'RELAY_WEBHOOK_SECRET' },
]
