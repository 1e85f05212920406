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
export const SINCE = '1h (ago), yesterday, monday 9:00, 2026-01-31T12:00, or now'
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

// Actions at the code host

export const ACTION = {
  ...USER_COMMAND,
  exits: [4, [6, 'the delivery of --from names no issue or pull request'], 8, 130],
} as const

export const DRY_RUN: FlagSpec = ['--dry-run', 'print what would happen, and do nothing']
export const FROM: FlagSpec = [
  '--from <entry|->',
  'issue or pull request of this delivery: its number in the journal, last, or - (standard input)',
]
export const TARGET_HELP =
  'owner/repo#12, or the web address of an issue, pull request or comment; omit with --from'

// Commands that send deliveries

export const SEND = {
  options: [
    ['--to <url>', 'send to this URL, or port of this machine', { defaultText: 'the running relay serve' }],
    SECRET_ENV,
    ['--set <path=value>', 'change a field, its copies and addresses, and sign again', { repeatable: true }],
    ['--set-only <path=value>', 'the same, but change nothing else', { repeatable: true }],
    ['--tamper <part>', 'part to change after signing, to be rejected', { choices: ['signature', 'body'] }],
    ['--keep-id', 'send the recorded delivery id', { defaultText: 'a new id each time' }],
    ['--expect <status>', 'expected status: 2xx, 401, …', { defaultText: '2xx, or 4xx with --tamper' }],
    ['--stop', 'stop at the first unexpected status'],
  ],
  env: ['home', 'store', 'webhookSecret'],
  exits: [[3, 'a status was not the expected one'], 130],
} as const satisfies Partial<Declaration>
