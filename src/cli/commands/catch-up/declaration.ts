import type { CommandSpec } from '../../command.js'
import { REPO_ARGUMENT } from '../../session/repo.js'
import { DRY_RUN, USER_COMMAND } from '../../session/user-command.js'

export const catchUp: CommandSpec = {
  ...USER_COMMAND,
  name: 'catch-up',
  group: 'Journal:',
  summary: 'get what was sent while relay was away',
  description: `Reads the code host's log of what it sent through the hook of a repository, and asks for what the journal lacks,
oldest first, each once the one before has arrived. The running relay serve receives them as usual. What retention has
removed from the journal is left out. Without a repository: the webhook of the profile's App (relay setup --app-hook) and all
hooks that this profile made. The log of GitHub has 3 days; Gitea has none.`,
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
