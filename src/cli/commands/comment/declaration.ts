import type { CommandSpec } from '../../command.js'
import { ACTION_COMMAND, DRY_RUN, TARGET_HELP } from '../../session/user-command.js'

export const comment: CommandSpec = {
  ...ACTION_COMMAND,
  name: 'comment',
  summary: 'comment on an issue or pull request',
  description: `Comments on an issue or pull request as a signed-in user, and prints the address of the new comment.`,
  examples: [
    'relay comment octo/demo#1 "Looks good"',
    'git log -1 --stat | relay comment octo/demo#1 -',
    'relay comment https://github.com/octo/demo/pull/2 --body-file notes.md',
  ],
  arguments: [
    { name: '<target>', help: TARGET_HELP },
    { name: '[text]', help: 'text of the comment; - reads standard input' },
  ],
  options: [{ flags: '--body-file <file>', help: 'read the comment from a file' }, DRY_RUN],
  load: async () => (await import('./comment.js')).runComment,
}
