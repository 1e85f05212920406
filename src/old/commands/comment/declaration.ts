import type { CommandSpec } from '../../command.js'
import { ACTION_COMMAND, DRY_RUN, FROM, TARGET_HELP } from '../../session/user-command.js'

export const comment: CommandSpec = {
  ...ACTION_COMMAND,
  name: 'comment',
  summary: 'comment on an issue or pull request',
  description: `Comments on an issue or pull request as a signed-in user, and prints the address of the comment. With --sticky it
edits the comment that it made there before with the same key, instead of adding another.`,
  examples: [
    'relay comment octo/demo#1 "Looks good"',
    'git log -1 --stat | relay comment octo/demo#1 -',
    'relay comment https://github.com/octo/demo/pull/2 --body-file notes.md',
    'relay comment --from last "On it"',
    '{ relay wait check_suite --json; cat report.md; } | relay comment --from - --sticky ci -',
  ],
  details: () => `Standard input:
  If both --from and the text are -, the first line is the delivery and the rest is the text.`,
  arguments: [
    { name: '[target]', help: TARGET_HELP },
    { name: '[text]', help: 'text of the comment; - reads standard input' },
  ],
  options: [
    FROM,
    { flags: '--body-file <file>', help: 'read the comment from a file' },
    { flags: '--sticky <key>', help: 'edit the comment made before with this key, if there is one' },
    DRY_RUN,
  ],
  load: async () => (await import('./comment.js')).runComment,
}
