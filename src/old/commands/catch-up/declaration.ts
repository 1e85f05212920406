import type { CommandSpec } from '../../command.js'
import { REPO_ARGUMENT } from '../../session/repo.js'
import { DRY_RUN, USER_COMMAND } from '../../session/user-command.js'

export const catchUp: CommandSpec = {
  ...USER_COMMAND,
  name: 'catch-up',
  group: 'Journal:',
  summary: 'get what was sent while relay was away',
  description: `Compares the journal with the code host's log of a repository's hook. Has the code host send again what is missing, oldest
first, one after the other; the running relay serve receives it. Leaves out what retention has removed. Without a
repository, catches up through the webhook of the profile's App (relay setup --app-hook) and all hooks that this profile
created. GitHub's log covers 3 days; Gitea has none.`,
  examples: ['relay catch-up octo/demo', 'relay catch-up --since 2h --dry-run'],
  arguments: [{ ...REPO_ARGUMENT, name: '[owner/repo]' }],
  options: [
    {
      flags: '--since <time>',
      help: 'sent since then: a duration ago (2h), or a time',
      defaultText: '3 days ago',
    },
    { ...DRY_RUN, help: 'list what is missing, and ask for nothing' },
  ],
  exitCodes: [4, 6, 8, 130],
  load: async () => (await import('./catch-up.js')).runCatchUp,
}
