import { REACTIONS } from '../../../codehost/host.js'
import type { CommandSpec } from '../../command.js'
import { ACTION_COMMAND, DRY_RUN, FROM, TARGET_HELP } from '../../session/user-command.js'

export const react: CommandSpec = {
  ...ACTION_COMMAND,
  name: 'react',
  summary: 'react to an issue, pull request or comment',
  description: `Reacts to an issue, a pull request, or the comment with the given web address, as a signed-in user, and prints
the name of the reaction. A repeated reaction has no effect.`,
  examples: [
    'relay react octo/demo#1 +1',
    'relay react octo/demo#1 🚀',
    'relay react https://github.com/octo/demo/issues/1#issuecomment-5 heart',
    'relay wait issues.opened --json | relay react --from - eyes',
  ],
  arguments: [
    { name: '[target]', help: TARGET_HELP },
    { name: '[reaction]', help: `${REACTIONS.join(', ')}, or the emoji` },
  ],
  options: [FROM, DRY_RUN],
  load: async () => (await import('./react.js')).runReact,
}
