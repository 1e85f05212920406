import type { CommandSpec } from '../../command.js'
import { REPO_ARGUMENT } from '../../session/repo.js'
import { USER_COMMAND } from '../../session/user-command.js'

const COMMON = { ...USER_COMMAND, arguments: [REPO_ARGUMENT] } as const
const URL = {
  flags: '--url <url>',
  help: "the hook's address",
  defaultText: "the tunnel's, else the public address with /webhook",
} as const

export const hook: CommandSpec = {
  ...USER_COMMAND,
  settings: [],
  name: 'hook',
  group: 'Setup:',
  summary: "manage a repository's hooks",
  description: `Makes the code host send a repository's deliveries here, as the signed-in user. relay serve --hook does the same
while it runs.`,
  examples: ['relay hook add octo/demo', 'relay hook list octo/demo'],
  subcommands: [
    {
      ...COMMON,
      name: 'add',
      summary: 'create a hook, or repair it',
      description: `Creates the repository's hook with content type application/json and the profile's webhook secret. If one
already leads here, or this profile created one before, repairs that one instead.`,
      examples: ['relay hook add octo/demo', 'relay hook add octo/demo --events push,pull_request'],
      options: [
        URL,
        {
          flags: '--events <names>',
          help: 'only these events, separated by commas',
          defaultText: 'every event',
        },
      ],
      environment: [...COMMON.environment, 'webhookSecret', 'publicUrl'],
      load: async () => (await import('./add.js')).runAdd,
    },
    {
      ...COMMON,
      name: 'list',
      summary: "list a repository's hooks",
      description: `Lists all hooks of the repository with the last answer to each, and marks those that lead here. Without a
repository, lists the hooks that this profile created.`,
      examples: ['relay hook list', 'relay hook list octo/demo --json | jq .url'],
      arguments: [{ ...REPO_ARGUMENT, name: '[owner/repo]' }],
      load: async () => (await import('./list.js')).runList,
    },
    {
      ...COMMON,
      name: 'test',
      summary: 'send a ping through the hook',
      description: `Makes the code host send a ping (Gitea: a push of the last commit) and waits up to 30 seconds until it is in the
journal. Needs a running relay serve.`,
      examples: ['relay hook test octo/demo'],
      exitCodes: [4, 6, 7, 8, 130],
      load: async () => (await import('./test.js')).runTest,
    },
    {
      ...COMMON,
      name: 'remove',
      summary: 'remove the hooks that lead here',
      description: `Removes the hooks of the repository that lead here, or to --url. Others stay.`,
      examples: ['relay hook remove octo/demo'],
      options: [URL],
      exitCodes: [4, 6, 8, 130],
      load: async () => (await import('./remove.js')).runRemove,
    },
  ],
}
