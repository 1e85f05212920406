/** Names and summaries of all commands, by their headings in help. Every start loads this instead of the commands. */
const GROUPS = {
  'Service:': {
    serve: 'run the service',
    hub: 'run the public end of a tunnel of your own',
    mcp: 'let a coding agent see and repeat deliveries',
  },
  'Journal:': {
    inspect: 'see deliveries in the browser',
    log: 'list deliveries and the state of their forwarding',
    show: 'show one delivery and the answers of its targets',
    export: 'write a delivery as a fixture',
    wait: 'wait for a delivery',
    replay: 'send deliveries again',
    skip: 'give up a waiting delivery',
    trigger: 'send a made-up delivery of an event',
    verify: 'explain why a signature does not match',
    routes: 'show where deliveries are forwarded to',
    'catch-up': 'get deliveries that were sent while relay was away',
  },
  'Setup:': {
    setup: 'register relay at the code host, for signing in',
    hook: "manage a repository's hooks",
    source: 'manage senders other than the code host',
    config: 'show the settings and where each comes from',
    profiles: 'list the profiles on this machine',
    reset: 'remove a profile with all its data',
    doctor: 'diagnose problems and suggest fixes',
    completion: 'print a completion script for your shell',
    help: 'explain a command, or list the settings',
    version: 'print the version',
  },
  'Signing in:': {
    login: 'sign in at the code host',
    revoke: "delete a user's token, here and at the code host",
    token: "print a user's access token",
    whoami: 'show the signed-in account',
  },
  'Actions:': {
    comment: 'comment on an issue or pull request',
    merge: 'merge a pull request',
    react: 'react to an issue, pull request or comment',
  },
} as const

type Names<Group> = Group extends object ? keyof Group : never
export type CommandName = Names<(typeof GROUPS)[keyof typeof GROUPS]>

/** Names and summaries by heading, in the order of help. */
export const CATALOG: Readonly<Record<string, Readonly<Partial<Record<CommandName, string>>>>> = GROUPS

/** Summary of each command. */
export const SUMMARIES: Readonly<Record<CommandName, string>> = Object.assign({}, ...Object.values(GROUPS))

export function isCommandName(name: string): name is CommandName {
  return Object.hasOwn(SUMMARIES, name)
}

export const COMMAND_NAMES: readonly CommandName[] = Object.keys(SUMMARIES).filter(isCommandName)
