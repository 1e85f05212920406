import type { CommandSpec } from '../command.js'

/** What the declarations of the commands that act for a signed-in user have in common. */
export const USER_COMMAND = {
  settings: ['user', 'provider', 'providerUrl'],
  environment: ['clientId', 'clientSecret', 'home', 'store'],
  exitCodes: [4, 8, 130],
} as const satisfies Partial<CommandSpec>

/** The same for those that write to the code host. */
export const ACTION_COMMAND = {
  ...USER_COMMAND,
  group: 'Actions:',
  exitCodes: [4, [6, 'the delivery of --from names no issue or pull request'], 8, 130],
} as const

export const DRY_RUN = { flags: '--dry-run', help: 'print what would happen, and do nothing' } as const

export const FROM = {
  flags: '--from <entry|->',
  help: 'issue or pull request of this delivery: its number in the journal, last, or - (standard input)',
} as const

export const TARGET_HELP =
  'owner/repo#12, or the web address of an issue, pull request or comment; omit with --from'
